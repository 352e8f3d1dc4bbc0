//! `${{ … }}` expressions: which of them paste text that a stranger chose.

/// Contexts whose text a stranger chooses freely, in lower case; `*` stands for any index. Branch names count: git allows
/// `$(…)`, quotes and semicolons in them.
const UNTRUSTED: &[&str] = &[
    "github.head_ref",
    "github.event.issue.title",
    "github.event.issue.body",
    "github.event.pull_request.title",
    "github.event.pull_request.body",
    "github.event.pull_request.head.ref",
    "github.event.pull_request.head.label",
    "github.event.pull_request.head.repo.default_branch",
    "github.event.pull_request.head.repo.description",
    "github.event.pull_request.head.repo.homepage",
    "github.event.comment.body",
    "github.event.review.body",
    "github.event.review_comment.body",
    "github.event.discussion.title",
    "github.event.discussion.body",
    "github.event.pages.*.page_name",
    "github.event.pages.*.title",
    "github.event.commits.*.message",
    "github.event.commits.*.author.name",
    "github.event.commits.*.author.email",
    "github.event.head_commit.message",
    "github.event.head_commit.author.name",
    "github.event.head_commit.author.email",
    "github.event.head_commit.committer.name",
    "github.event.head_commit.committer.email",
    "github.event.workflow_run.head_branch",
    "github.event.workflow_run.display_title",
    "github.event.workflow_run.head_commit.message",
    "github.event.workflow_run.head_commit.author.name",
    "github.event.workflow_run.head_commit.author.email",
    "github.event.workflow_run.pull_requests.*.head.ref",
    "github.event.workflow_run.head_repository.description",
];

/// Whole objects that hold such text: untrusted when they are turned into JSON.
const UNTRUSTED_OBJECTS: &[&str] = &[
    "github",
    "github.event",
    "github.event.issue",
    "github.event.pull_request",
    "github.event.pull_request.head",
    "github.event.comment",
    "github.event.review",
    "github.event.discussion",
    "github.event.commits",
    "github.event.head_commit",
    "github.event.workflow_run",
];

/// Functions whose result is a truth value, whatever their arguments are.
const PREDICATES: &[&str] = &["contains", "startswith", "endswith", "hashfiles"];

#[derive(Debug, PartialEq)]
enum Token {
    /// A context path or function name, normalised.
    Path(String),
    /// `==`, `!=`, `<`, `<=`, `>`, `>=`, `!`, `&&`, `||`, one character otherwise.
    Op(&'static str),
    Open,
    Close,
    Comma,
    Literal,
}

/// The expressions of a text: the inside of each `${{ … }}`.
pub(super) fn expressions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${{") {
        let inner = &rest[start + 3..];
        let Some(end) = inner.find("}}") else {
            break;
        };
        found.push(&inner[..end]);
        rest = &inner[end + 2..];
    }
    found
}

/// The first context in `expression` whose text, chosen by a stranger, becomes part of the result.
pub(super) fn untrusted(expression: &str) -> Option<String> {
    let tokens = tokens(expression);
    let mut functions: Vec<&str> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Open => {
                let name = match index.checked_sub(1).map(|i| &tokens[i]) {
                    Some(Token::Path(name)) => name.as_str(),
                    _ => "",
                };
                functions.push(name);
            }
            Token::Close => {
                functions.pop();
            }
            Token::Path(path) if tokens.get(index + 1) != Some(&Token::Open) => {
                let dumped =
                    functions.contains(&"tojson") && UNTRUSTED_OBJECTS.contains(&path.as_str());
                if !dumped && !UNTRUSTED.contains(&path.as_str()) {
                    continue;
                }
                let only_tested = functions.iter().any(|f| PREDICATES.contains(f))
                    || matches!(
                        tokens.get(index + 1),
                        Some(Token::Op("==" | "!=" | "<" | "<=" | ">" | ">=" | "&&"))
                    )
                    || matches!(
                        index.checked_sub(1).map(|i| &tokens[i]),
                        Some(Token::Op("==" | "!=" | "<" | "<=" | ">" | ">=" | "!"))
                    );
                if !only_tested {
                    return Some(path.clone());
                }
            }
            _ => {}
        }
    }
    None
}

/// True when the expression gives the commit, branch or repository of the pull request or of the run that triggered this one.
pub(super) fn names_untrusted_head(expression: &str) -> bool {
    tokens(expression).iter().any(|token| {
        matches!(token, Token::Path(path) if matches!(path.as_str(),
            "github.head_ref"
            | "github.event.pull_request.head.sha"
            | "github.event.pull_request.head.ref"
            | "github.event.pull_request.merge_commit_sha"
            | "github.event.pull_request.head.repo.full_name"
            | "github.event.pull_request.head.repo.clone_url"
            | "github.event.workflow_run.head_sha"
            | "github.event.workflow_run.head_branch"
            | "github.event.workflow_run.head_commit.id"
            | "github.event.workflow_run.head_repository.full_name"))
    })
}

/// True when the expression gives the number of an issue or pull request.
pub(super) fn names_number(expression: &str) -> bool {
    tokens(expression).iter().any(|token| {
        matches!(token, Token::Path(path) if matches!(path.as_str(),
            "github.event.number" | "github.event.issue.number" | "github.event.pull_request.number"
            | "github.event.workflow_run.pull_requests.*.number"))
    })
}

/// True when the expression turns all secrets into text.
pub(super) fn dumps_secrets(expression: &str) -> bool {
    tokens(expression).windows(3).any(|t| matches!(t, [Token::Path(f), Token::Open, Token::Path(s)] if f == "tojson" && s == "secrets"))
}

fn tokens(expression: &str) -> Vec<Token> {
    let bytes = expression.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' => {
                at = end_of_string(bytes, at);
                out.push(Token::Literal);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let (path, end) = path(expression, at);
                out.push(Token::Path(path));
                at = end;
            }
            b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_alphanumeric() || **b == b'.')
                    .count();
                out.push(Token::Literal);
            }
            b'(' => {
                out.push(Token::Open);
                at += 1;
            }
            b')' => {
                out.push(Token::Close);
                at += 1;
            }
            b',' => {
                out.push(Token::Comma);
                at += 1;
            }
            _ => {
                let two = expression.get(at..at + 2).unwrap_or_default();
                let op = ["==", "!=", "<=", ">=", "&&", "||"]
                    .into_iter()
                    .find(|op| *op == two);
                at += if op.is_some() { 2 } else { 1 };
                let one = match byte {
                    b'<' => Some("<"),
                    b'>' => Some(">"),
                    b'!' => Some("!"),
                    _ => None,
                };
                out.extend(op.or(one).map(Token::Op));
            }
        }
    }
    out
}

/// Where the string that opens at `start` ends; `''` within it is a quote.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'\'' {
            if bytes.get(at) != Some(&b'\'') {
                break;
            }
            at += 1;
        }
    }
    at
}

/// A path such as `github.event['issue'].title` in lower case with dots; an index or `*` becomes `*`.
fn path(expression: &str, start: usize) -> (String, usize) {
    let bytes = expression.as_bytes();
    let name_len = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            .count()
    };
    let mut end = start + name_len(start);
    let mut path = expression[start..end].to_ascii_lowercase();
    loop {
        match bytes.get(end) {
            Some(b'.') if bytes.get(end + 1) == Some(&b'*') => {
                path.push_str(".*");
                end += 2;
            }
            Some(b'.') => {
                let len = name_len(end + 1);
                if len == 0 {
                    break;
                }
                path.push('.');
                path.push_str(&expression[end + 1..end + 1 + len].to_ascii_lowercase());
                end += 1 + len;
            }
            Some(b'[') => {
                let inner_start =
                    end + 1 + bytes[end + 1..].iter().take_while(|b| **b == b' ').count();
                if bytes.get(inner_start) == Some(&b'\'') {
                    let close = end_of_string(bytes, inner_start);
                    let name = expression
                        .get(inner_start + 1..close.saturating_sub(1))
                        .unwrap_or_default();
                    path.push('.');
                    path.push_str(&name.to_ascii_lowercase());
                    end = close;
                } else {
                    path.push_str(".*");
                    end = inner_start;
                }
                match bytes[end.min(bytes.len())..]
                    .iter()
                    .position(|b| *b == b']')
                {
                    Some(skip) => end += skip + 1,
                    None => return (path, bytes.len()),
                }
            }
            _ => break,
        }
    }
    (path, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_text() {
        for expression in [
            " github.event.issue.title ",
            "github.event['issue']['title']",
            "GitHub.Event.Issue.Title",
            "github.event.commits[0].message",
            "github.event.commits.*.author.email",
            "format('x{0}', github.event.comment.body)",
            "github.event.inputs.x || github.event.issue.body",
            "toJSON(github.event)",
            "toJSON( github.event.issue )",
            "github.head_ref || github.run_id",
            "github.event_name == 'x' && github.head_ref || 'y'",
        ] {
            assert!(untrusted(expression).is_some(), "{expression}");
        }
    }

    #[test]
    fn what_does_not() {
        for expression in [
            "github.event.issue.number",
            "github.event.pull_request.head.sha",
            "contains(github.event.comment.body, '/ok')",
            "startsWith(github.head_ref, 'dependabot/')",
            "github.event.comment.body == '/run'",
            "'x' != github.head_ref",
            "github.head_ref && 'pr' || 'push'",
            "'github.event.issue.title'",
            "'it''s github.head_ref'",
            "inputs.title",
            "steps.a.outputs.body",
            "github.event.label.name",
            "github.sha",
            "toJSON(matrix)",
            "!github.head_ref",
            "",
            "(((",
            "a[",
            "a['",
            "github.event[",
        ] {
            assert_eq!(untrusted(expression), None, "{expression}");
        }
    }

    #[test]
    fn finds_the_expressions() {
        assert_eq!(expressions("a ${{ x }} b ${{y}} ${{ z"), [" x ", "y"]);
        assert!(dumps_secrets(" toJSON(secrets) ") && !dumps_secrets("toJSON(secrets.A)"));
    }
}
