//! Rules for shell scripts.

use tree_sitter::Node;

use super::nodes::{children, contains, field};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.node.kind() != "command" || site.scan.in_tests {
        return;
    }
    let words = children(site.node, 48);
    let Some((name, arguments)) = words
        .iter()
        .position(|word| word.kind() == "command_name")
        .map(|at| (site.text(words[at]), &words[at + 1..]))
    else {
        return;
    };
    match name {
        b"curl" | b"wget" => download(site, name, arguments, found),
        b"ssh" | b"scp" | b"sftp" | b"rsync" => host_key(site, arguments, found),
        b"eval" => evaluated(site, arguments, found),
        b"sh" | b"bash" | b"dash" | b"zsh" => {
            if let [flag, command, ..] = arguments
                && matches!(site.text(*flag), b"-c" | b"-lc" | b"-ec")
            {
                evaluated(site, &[*command], found);
            }
        }
        _ => {}
    }
}

/// `curl -k https://…` and `wget --no-check-certificate https://…` with the address in the text: a local one is fine.
fn download<'a>(site: &Site<'_, 'a>, name: &[u8], arguments: &[Node<'a>], found: &mut Found<'a>) {
    let insecure = arguments.iter().copied().find(|argument| {
        let word = site.text(*argument);
        if name == b"wget" {
            return word == b"--no-check-certificate";
        }
        word == b"--insecure"
            || (word.len() > 1
                && word.starts_with(b"-")
                && word[1..].iter().all(|b| b"fsSLkvig".contains(b))
                && word.contains(&b'k'))
    });
    let foreign = arguments.iter().any(|argument| {
        let word = site.text(*argument);
        contains(word, "https://")
            && ![
                "localhost",
                "127.0.0.1",
                "[::1]",
                "://$",
                "://{",
                ".local",
                ".svc",
                ".internal",
            ]
            .iter()
            .any(|own| contains(word, own))
    });
    if let Some(flag) = insecure
        && foreign
        && !site.is_opted_into(OPTED_OUT)
    {
        found.push((rules::TLS, flag));
    }
}

fn host_key<'a>(site: &Site<'_, 'a>, arguments: &[Node<'a>], found: &mut Found<'a>) {
    for argument in arguments {
        let word = site.text(*argument);
        let word = word.strip_prefix(b"-o").unwrap_or(word);
        let off = matches!(
            word,
            b"StrictHostKeyChecking=no" | b"StrictHostKeyChecking=off"
        ) || matches!(
            word,
            b"\"StrictHostKeyChecking=no\"" | b"'StrictHostKeyChecking=no'"
        );
        let local = arguments.iter().any(|other| {
            let other = site.text(*other);
            contains(other, "localhost") || contains(other, "127.0.0.1")
        });
        if off && !local && !site.is_opted_into(OPTED_OUT) {
            found.push((rules::SSH_HOST_KEY, *argument));
            return;
        }
    }
}

/// Variables that a stranger fills: what a web server, sshd or a CI takes from a request.
const FOREIGN: &[&[u8]] = &[
    b"QUERY_STRING",
    b"REQUEST_URI",
    b"PATH_INFO",
    b"SSH_ORIGINAL_COMMAND",
    b"GITHUB_HEAD_REF",
    b"CI_COMMIT_MESSAGE",
    b"CI_COMMIT_TITLE",
    b"CI_COMMIT_REF_NAME",
    b"CI_MERGE_REQUEST_TITLE",
    b"BITBUCKET_BRANCH",
    b"CHANGE_TITLE",
    b"CHANGE_BRANCH",
    b"PR_TITLE",
    b"PR_BODY",
    b"ISSUE_TITLE",
    b"ISSUE_BODY",
    b"COMMENT_BODY",
    b"COMMIT_MESSAGE",
];

fn evaluated<'a>(site: &Site<'_, 'a>, arguments: &[Node<'a>], found: &mut Found<'a>) {
    for argument in arguments {
        if holds_foreign(site, *argument) {
            found.push((rules::SHELL, *argument));
            return;
        }
    }
}

/// Whether `node` expands one of the variables, directly or inside double quotes (single quotes do not expand).
fn holds_foreign(site: &Site<'_, '_>, node: Node<'_>) -> bool {
    let is_foreign = |node: Node<'_>| {
        field(node, "name")
            .into_iter()
            .chain(children(node, 2))
            .filter(|name| name.kind() == "variable_name")
            .map(|name| site.text(name))
            .any(|name| FOREIGN.contains(&name) || name.starts_with(b"HTTP_"))
    };
    match node.kind() {
        "simple_expansion" | "expansion" => is_foreign(node),
        "string" | "concatenation" => children(node, 32).into_iter().any(|part| {
            matches!(part.kind(), "simple_expansion" | "expansion") && is_foreign(part)
                || part.kind() == "string" && children(part, 32).into_iter().any(is_foreign)
        }),
        _ => false,
    }
}
