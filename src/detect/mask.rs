//! Hiding credentials in text that leaves the program.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::secrets::{FORMATS, is_placeholder, private_key_block, secrets, url_password_at};

/// What stands for the hidden part. No token alphabet holds it, so that masking is idempotent.
const ELLIPSIS: &str = "…";
/// The fewest characters after a provider's prefix that are hidden.
const MIN_BODY: usize = 8;

/// A part of the text to hide; `keep` bytes at its front stay, as a hint of what it was.
struct Hidden {
    range: Range<usize>,
    keep: usize,
}

/// Replaces everything in `text` that is or may be a credential. A provider's prefix stays as a hint (`ghp_…`), never
/// enough to use; a private key keeps its `BEGIN` line. Masks also what [`secrets`] is too strict to report: tokens with a wrong
/// checksum, the values of secret-named assignments, `Authorization` headers, every password in a URL.
///
/// `mask(mask(x)) == mask(x)`, and no [`secrets`] match survives. Returns the text itself where there is nothing to hide.
pub fn mask(text: &str) -> Cow<'_, str> {
    mask_with(text, false)
}

/// As [`mask`], but what spans several lines leaves its line feeds behind, so that every line keeps its number.
pub fn mask_lines(text: &str) -> Cow<'_, str> {
    mask_with(text, true)
}

/// As [`mask_lines`], for the unified diff of one file: each side of a hunk is masked as the text it is, since a key of
/// several lines is not one with marks before its lines or between the lines of the other side.
pub fn mask_patch(patch: &str) -> Cow<'_, str> {
    let start = match patch.find("\n@@ ") {
        Some(at) => at + 1,
        None if patch.starts_with("@@ ") => 0,
        None => return mask_lines(patch),
    };
    let (head, hunks) = patch.split_at(start);
    let mut out = mask_lines(head).into_owned();
    let mut rest = hunks;
    while !rest.is_empty() {
        let end = rest[1..].find("\n@@ ").map_or(rest.len(), |at| at + 2);
        let (hunk, next) = rest.split_at(end);
        mask_hunk(hunk, &mut out);
        rest = next;
    }
    if out == patch {
        Cow::Borrowed(patch)
    } else {
        Cow::Owned(out)
    }
}

fn mask_hunk(hunk: &str, out: &mut String) {
    let (heading, body) = hunk.split_at(hunk.find('\n').map_or(hunk.len(), |at| at + 1));
    out.push_str(&mask_lines(heading));
    let side = |without: char| {
        let mut text = String::with_capacity(body.len());
        for line in body.split_inclusive('\n') {
            if !line.starts_with(['\\', without]) {
                let line = line.strip_suffix('\n').unwrap_or(line);
                text.push_str(&line[mark(line)..]);
                text.push('\n');
            }
        }
        mask_lines(&text).into_owned()
    };
    let (old, new) = (side('+'), side('-'));
    let (mut old, mut new) = (old.split('\n'), new.split('\n'));
    for line in body.split_inclusive('\n') {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        let text = match line.chars().next() {
            Some('\\') => {
                out.push_str(line);
                continue;
            }
            Some('-') => old.next(),
            Some('+') => new.next(),
            _ => {
                old.next();
                new.next()
            }
        };
        let line = line.strip_suffix('\n').unwrap_or(line);
        out.push_str(&line[..mark(line)]);
        out.push_str(text.unwrap_or_default());
        out.push_str(end);
    }
}

/// Bytes of the mark of a line of a hunk; none where a tool stripped the space of an empty line.
fn mark(line: &str) -> usize {
    line.chars().next().map_or(0, char::len_utf8)
}

fn mask_with(text: &str, keep_lines: bool) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    // What is hidden may lay bare another match (a boundary becomes clean): at most a few rounds.
    for _ in 0..4 {
        match mask_once(&masked, keep_lines) {
            Some(next) if next != *masked => masked = Cow::Owned(next),
            _ => break,
        }
    }
    masked
}

fn mask_once(text: &str, keep_lines: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut hidden = Vec::new();
    hidden.extend(secrets(bytes).into_iter().map(|m| Hidden {
        keep: prefix_len(&bytes[m.range.clone()]),
        range: m.range,
    }));
    prefixed(bytes, &mut hidden);
    named_values(bytes, &mut hidden);
    for at in memchr::memmem::find_iter(bytes, b"://") {
        if let Some(url) = url_password_at(bytes, at)
            && !is_template(&bytes[url.range.clone()])
        {
            hidden.push(Hidden {
                range: url.range,
                keep: 0,
            });
        }
    }
    let mut done = 0;
    for at in memchr::memmem::find_iter(bytes, b"-----BEGIN ") {
        if at < done {
            continue;
        }
        if let Some(block) = private_key_block(bytes, at) {
            done = block.range.end;
            hidden.push(Hidden {
                range: block.range,
                keep: 0,
            });
        }
    }
    if hidden.is_empty() {
        None
    } else {
        Some(replace(text, hidden, keep_lines))
    }
}

/// What stands between `${`, `<` or `{{` and its end stands for a value; the mask itself does too.
fn is_template(value: &[u8]) -> bool {
    value.is_empty()
        || matches!(value[0], b'$' | b'<' | b'{' | b'%' | b'*')
        || value.starts_with(ELLIPSIS.as_bytes())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The length of the provider's prefix that `value` begins with; 0 without one.
fn prefix_len(value: &[u8]) -> usize {
    FORMATS
        .iter()
        .map(|f| f.prefix)
        .filter(|p| p.len() < value.len() && value.starts_with(p.as_bytes()))
        .map(str::len)
        .max()
        .unwrap_or(0)
}

static PREFIXES: LazyLock<Option<aho_corasick::AhoCorasick>> = LazyLock::new(|| {
    let short_and_common = ["cio", "pat", "dapi", "SG."];
    let prefixes = FORMATS
        .iter()
        .map(|f| f.prefix)
        .filter(|p| !short_and_common.contains(p));
    aho_corasick::AhoCorasick::builder()
        .match_kind(aho_corasick::MatchKind::LeftmostLongest)
        .build(prefixes.chain([
            "AKIA", "ASIA", "sk_test_", "rk_test_", "sk-ant-", "eyJ", "ya29.",
        ]))
        .ok()
});

/// Anything that starts like a provider's token and goes on like one.
fn prefixed(bytes: &[u8], hidden: &mut Vec<Hidden>) {
    let Some(automaton) = PREFIXES.as_ref() else {
        return;
    };
    // A dotted run may hold many prefixes: what is hidden already is not read again.
    let mut done = 0;
    for hit in automaton.find_iter(bytes) {
        let (start, body) = (hit.start(), hit.end());
        if start < done || (start > 0 && is_token_byte(bytes[start - 1])) {
            continue;
        }
        let prefix = &bytes[start..body];
        let is_url = prefix.ends_with(b"/");
        let len = bytes[body..]
            .iter()
            .take_while(|b| {
                is_token_byte(**b)
                    || **b == b'.'
                    || (**b == b'/' && is_url)
                    || (prefix.ends_with(b"=") && matches!(**b, b'+' | b'/' | b'='))
            })
            .count();
        done = body + len;
        let value = &bytes[body..body + len];
        let named_enough =
            prefix.len() >= 6 || value.iter().any(u8::is_ascii_digit) || value.len() >= 20;
        let enough = len
            >= if prefix == b"sk-" || prefix == b"eyJ" {
                20
            } else {
                MIN_BODY
            };
        if enough && named_enough {
            hidden.push(Hidden {
                range: start..body + len,
                keep: body - start,
            });
        }
    }
}

/// `password = …`, `"api_key": "…"`, `Authorization: Bearer …`, `_authToken=…`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i-u)(?:",
        r"(?:[a-z0-9_.-]{0,40}(?:passwd|password|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key|client[_-]?secret|credential|_token|token)[a-z0-9_-]{0,20})",
        r#"["'\]]{0,2}[ \t]*(?:=>|:=|=|:)[ \t]*(?:[rbuf]?["'`]([^"'`\n]{4,})["'`]|([A-Za-z0-9_/+=.~!@#%^&*-]{8,}))"#,
        r"|authorization['\x22]?[ \t]*[:=,][ \t]*['\x22]?(?:bearer|basic|token)[ \t]+([A-Za-z0-9_/+=.~-]{8,})",
        r"|(?:authorization|x-api-key)['\x22]?[ \t]*[:=,][ \t]*['\x22]?([A-Za-z0-9_/+=.~-]{8,})",
        r"|\b(?:bearer|basic)[ \t]+([A-Za-z0-9_/+=.~-]{16,})",
        r")"
    ))
    .ok()
});

/// The values of assignments and headers whose name says that they are secret.
fn named_values(bytes: &[u8], hidden: &mut Vec<Hidden>) {
    let Some(named) = NAMED.as_ref() else {
        return;
    };
    for groups in named.captures_iter(bytes) {
        // Quoted, or behind the name of a scheme: a value for certain. Otherwise it is an expression as often, and only what
        // no identifier looks like is hidden.
        let certain = groups.get(1).or_else(|| groups.get(3));
        let Some(value) = certain
            .or_else(|| groups.get(2))
            .or_else(|| groups.get(4))
            .or_else(|| groups.get(5))
        else {
            continue;
        };
        let text = value.as_bytes();
        let bare = certain.is_none()
            && !(text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic));
        let is_template = is_template(text) || (is_placeholder(text) && text.contains(&b' '));
        if !bare && !is_template {
            hidden.push(Hidden {
                range: value.range(),
                keep: prefix_len(text),
            });
        }
    }
}

/// Writes the text with the hidden parts, merged where they touch, replaced.
fn replace(text: &str, mut hidden: Vec<Hidden>, keep_lines: bool) -> String {
    let bytes = text.as_bytes();
    for part in &mut hidden {
        // A token is hidden to its very end, whatever length its format has.
        part.range.end += bytes[part.range.end..]
            .iter()
            .take_while(|b| is_token_byte(**b))
            .count();
    }
    hidden.sort_by(|a, b| {
        a.range
            .start
            .cmp(&b.range.start)
            .then(b.range.end.cmp(&a.range.end))
    });
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for part in hidden {
        if part.range.end <= at {
            continue;
        }
        let lines = if keep_lines {
            let new = part.range.start.max(at)..part.range.end;
            memchr::memchr_iter(b'\n', &bytes[new]).count()
        } else {
            0
        };
        if part.range.start >= at {
            let kept = part.range.start + part.keep;
            push(&mut out, text, at..kept);
            if bytes[part.range.clone()].starts_with(b"-----BEGIN ") {
                out.push_str("[private key ");
                out.push_str(ELLIPSIS);
                out.push(']');
            } else {
                out.push_str(ELLIPSIS);
            }
        }
        out.extend(std::iter::repeat_n('\n', lines));
        at = part.range.end;
    }
    push(&mut out, text, at..text.len());
    out
}

/// Pushes a range whose ends may stand within a character (regexes and recognisers see bytes).
fn push(out: &mut String, text: &str, range: Range<usize>) {
    out.push_str(&String::from_utf8_lossy(&text.as_bytes()[range]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_of_a_patch_is_masked_and_the_rest_stays() {
        let token = ["ghp_", &"a1B2".repeat(9)].concat();
        let begin = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
        let end = ["-----END ", "PRIVATE KEY-----"].concat();
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let patch = format!(
            "diff --git a/k b/k\n--- a/k\n+++ b/k\n@@ -1,2 +1,5 @@ fn\n one\r\n-two\n+{begin}\n-three\n+{body}\n+{end}\n\n+t = \"{token}\"\n\\ No newline at end of file\n@@ -9 +9 @@\n-x\n+y"
        );
        let masked = mask_patch(&patch);
        assert!(
            !masked.contains(body) && !masked.contains(&token),
            "{masked}"
        );
        assert_eq!(masked.lines().count(), patch.lines().count(), "{masked}");
        for kept in [
            "\n one\r\n-two\n+",
            "\n-three\n",
            "\n\\ No newline",
            "@@ -9 +9 @@\n-x\n+y",
        ] {
            assert!(masked.contains(kept), "{kept:?} in {masked}");
        }
        let marks = |text: &str| -> String {
            text.lines()
                .map(|l| l.chars().next().unwrap_or('.'))
                .collect()
        };
        assert_eq!(marks(&masked), marks(&patch));
        assert_eq!(mask_patch(&masked), masked);
        let plain = "diff --git a/k b/k\n@@ -1 +1 @@\n-x é\n+y ü\n";
        assert!(matches!(mask_patch(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn the_recognisers_build() {
        assert!(NAMED.is_some() && PREFIXES.is_some());
    }

    #[test]
    fn hides_what_may_be_a_credential() {
        let token = ["gh", "p_", "abcdefghijklmnop1234"].concat();
        for (text, expected) in [
            (format!("t = \"{token}\""), "t = \"ghp_…\""),
            ("password = 'hunter2!'".to_owned(), "password = '…'"),
            ("DB_PASSWORD=hunter22x".to_owned(), "DB_PASSWORD=…"),
            ("\"api_key\": \"k3J9vQ2p\"".to_owned(), "\"api_key\": \"…\""),
            (
                "Authorization: Bearer abcd1234efgh".to_owned(),
                "Authorization: Bearer …",
            ),
            (
                "curl -H 'authorization: basic dXNlcjpwYXNz'".to_owned(),
                "curl -H 'authorization: basic …'",
            ),
            (
                "postgres://u:pw@localhost/db".to_owned(),
                "postgres://u:…@localhost/db",
            ),
        ] {
            assert_eq!(mask(&text), expected, "{text}");
        }
    }

    #[test]
    fn repeated_prefixes_take_linear_time() {
        for piece in [
            "eyJ.",
            "ghp_abcdefgh12 ",
            "Authorization: ",
            "-----BEGIN RSA PRIVATE KEY-----",
        ] {
            mask(&piece.repeat(50_000));
        }
    }

    #[test]
    fn leaves_ordinary_text_alone() {
        for text in [
            "let token = parser.next_token();",
            "password: ${DB_PASSWORD}",
            "const secret = process.env.SECRET;",
            "the task-force asked for a bearer of news",
            "see https://example.com/a?b=c and mailto:a@b.example",
            "if token == TokenKind::Identifier {",
            "fn private_key(&self) -> PrivateKey",
            "npm_config_registry",
            "hf_hub_download(repo_id=x)",
        ] {
            assert!(
                matches!(mask(text), Cow::Borrowed(_)),
                "{text} -> {}",
                mask(text)
            );
        }
    }

    #[test]
    fn a_private_key_goes_whole_even_as_a_stub() {
        let text = [
            "a\n-----BEGIN RSA PRIV",
            "ATE KEY-----\nMIIE\nabc\n-----END RSA PRIV",
            "ATE KEY-----\nb",
        ]
        .concat();
        assert_eq!(mask(&text), "a\n[private key …]\nb");
        let numbered = mask_lines(&text);
        assert_eq!(numbered, "a\n[private key …]\n\n\n\nb");
        assert_eq!(mask_lines(&numbered), numbered);
    }
}
