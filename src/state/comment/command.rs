//! The commands that people write in comments.

use crate::model::{AgentId, Fingerprint, printable};

/// Ids in one command at most.
pub const MAX_IDS: usize = 100;
/// Characters of a reason that are kept.
pub const MAX_REASON: usize = 200;

/// Who is asked to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agents {
    /// Those that the configuration picks.
    Configured,
    /// All of them.
    All,
    /// These.
    Named(Vec<AgentId>),
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `/review [all|agents]`: review now; lifts `/skip-review`.
    Review(Agents),
    /// `/dismiss <id>… [-- reason]`.
    Dismiss {
        /// Without duplicates, in order.
        ids: Vec<Fingerprint>,
        /// One line, at most [`MAX_REASON`] characters.
        reason: Option<String>,
    },
    /// `/undismiss <id>…`.
    Undismiss(Vec<Fingerprint>),
    /// The configured break-glass marker, `/skip-review` unless changed.
    Skip,
}

/// Why a command cannot be obeyed. It then changes nothing at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Words that are no ids.
    #[error("not the id of a finding: {}: expected 12 hexadecimal digits as in `id:0123456789ab`", .0.join(", "))]
    BadIds(Vec<String>),
    /// No id at all.
    #[error("{0} needs the id of a finding: `{0} 0123456789ab`")]
    NoIds(&'static str),
    /// More than [`MAX_IDS`].
    #[error("{0} ids in one command: at most {MAX_IDS}; use several comments")]
    TooManyIds(usize),
    /// A word that is no reviewer's name.
    #[error("not a reviewer's name: {0}: expected `/review`, `/review all` or `/review name,name`")]
    BadAgent(String),
    /// `/undismiss` takes no reason.
    #[error("/undismiss takes ids only")]
    StrayReason,
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// The start of `text` for a message, printable.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    printable(&start).into_owned()
}

/// The command in the first line of a comment, if there is one: nothing below it is read, and a quoted line is none.
/// `marker` is the configured break-glass marker, which has to be the whole line.
pub fn parse(body: &str, marker: &str) -> Option<Result<Command, CommandError>> {
    // A lone carriage return ends a line as well.
    let line = body
        .split(['\n', '\r'])
        .find(|line| !line.trim_matches(is_space).is_empty())?;
    // Four spaces or a tab make it a block of code, which shows a command and gives none.
    if line.starts_with("    ") || line.starts_with('\t') {
        return None;
    }
    let mut words = line.split(is_space).filter(|word| !word.is_empty());
    let wanted = marker.split(is_space).filter(|word| !word.is_empty());
    if !marker.trim_matches(is_space).is_empty() && words.clone().eq(wanted) {
        return Some(Ok(Command::Skip));
    }
    match words.next()?.to_ascii_lowercase().as_str() {
        "/review" => Some(agents(words).map(Command::Review)),
        "/dismiss" => Some(dismiss(words)),
        "/undismiss" => Some(undismiss(words)),
        _ => None,
    }
}

fn agents<'a>(words: impl Iterator<Item = &'a str>) -> Result<Agents, CommandError> {
    let mut named: Vec<AgentId> = Vec::new();
    for word in words
        .flat_map(|word| word.split(','))
        .filter(|word| !word.is_empty())
    {
        let agent = AgentId::new(word).map_err(|_| CommandError::BadAgent(shown(word)))?;
        if !named.contains(&agent) {
            named.push(agent);
        }
    }
    Ok(match named.as_slice() {
        [] => Agents::Configured,
        [one] if one.as_str() == "all" => Agents::All,
        _ => Agents::Named(named),
    })
}

/// One id as people write it: `id:` in front and code ticks around it do no harm, everything else is an error.
pub fn parse_id(word: &str) -> Result<Fingerprint, CommandError> {
    let bare = word.trim_matches('`');
    let bare = bare.strip_prefix("id:").unwrap_or(bare);
    Fingerprint::new(&bare.to_ascii_lowercase())
        .map_err(|_| CommandError::BadIds(vec![shown(word)]))
}

fn ids(words: &[&str], command: &'static str) -> Result<Vec<Fingerprint>, CommandError> {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for word in words
        .iter()
        .flat_map(|word| word.split(','))
        .filter(|w| !w.is_empty())
    {
        match parse_id(word) {
            Ok(id) if good.contains(&id) => {}
            Ok(id) if good.len() <= MAX_IDS => good.push(id),
            Ok(_) => return Err(CommandError::TooManyIds(words.len())),
            Err(_) if bad.len() < 10 => bad.push(shown(word)),
            Err(_) => {}
        }
    }
    if !bad.is_empty() {
        return Err(CommandError::BadIds(bad));
    }
    match good.len() {
        0 => Err(CommandError::NoIds(command)),
        n if n > MAX_IDS => Err(CommandError::TooManyIds(n)),
        _ => Ok(good),
    }
}

fn dismiss<'a>(words: impl Iterator<Item = &'a str>) -> Result<Command, CommandError> {
    let words: Vec<&str> = words.collect();
    // Keyboards turn two hyphens into a dash.
    let at = words
        .iter()
        .position(|word| matches!(*word, "--" | "\u{2013}" | "\u{2014}"));
    let (named, reason) = match at {
        Some(at) => (&words[..at], words[at + 1..].join(" ")),
        None => (&words[..], String::new()),
    };
    Ok(Command::Dismiss {
        ids: ids(named, "/dismiss")?,
        reason: clean_reason(&reason),
    })
}

fn undismiss<'a>(words: impl Iterator<Item = &'a str>) -> Result<Command, CommandError> {
    let words: Vec<&str> = words.collect();
    if words.contains(&"--") {
        return Err(CommandError::StrayReason);
    }
    ids(&words, "/undismiss").map(Command::Undismiss)
}

/// A reason as it is kept: one line, printable, not too long; `None` when nothing is left.
pub(super) fn clean_reason(text: &str) -> Option<String> {
    let folded = text
        .split(is_space)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let kept: String = printable(&folded).chars().take(MAX_REASON).collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "/skip-review";

    fn id(text: &str) -> Fingerprint {
        Fingerprint::new(text).unwrap()
    }

    fn dismissed(reason: Option<&str>) -> Command {
        Command::Dismiss {
            ids: vec![id("0123456789ab"), id("abcdefabcdef")],
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn commands() {
        let named = |names: &[&str]| {
            Command::Review(Agents::Named(
                names.iter().map(|n| AgentId::new(n).unwrap()).collect(),
            ))
        };
        for (body, expected) in [
            ("/review", Command::Review(Agents::Configured)),
            ("/review all\r\n\r\nthanks", Command::Review(Agents::All)),
            (
                "\n /Review security, correctness",
                named(&["security", "correctness"]),
            ),
            ("/dismiss 0123456789ab abcdefabcdef", dismissed(None)),
            (
                "/dismiss\u{a0}id:0123456789AB,\u{3000}`id:abcdefabcdef` 0123456789ab -- a\u{2003}test\r\nmore",
                dismissed(Some("a test")),
            ),
            (
                "/dismiss 0123456789ab, abcdefabcdef \u{2014} ok",
                dismissed(Some("ok")),
            ),
            ("/dismiss 0123456789ab abcdefabcdef --", dismissed(None)),
            (
                "/undismiss abcdefabcdef",
                Command::Undismiss(vec![id("abcdefabcdef")]),
            ),
            ("/skip-review \r\nbecause", Command::Skip),
        ] {
            assert_eq!(parse(body, MARKER), Some(Ok(expected)), "{body:?}");
        }
        assert_eq!(
            parse("  No  AI today", "no AI  today"),
            None,
            "the marker is taken as written"
        );
        assert_eq!(
            parse("no  AI today", "no AI  today"),
            Some(Ok(Command::Skip))
        );
    }

    #[test]
    fn no_commands() {
        for body in [
            "",
            "\r\n",
            "> /dismiss 0123456789ab",
            "> quoted\n/dismiss 0123456789ab",
            "please\n/review",
            "    /review",
            "`/review`",
            "/reviewer",
            "/dismissal 0123456789ab",
            "/skip-reviews",
            "/skip-review now",
            "use /skip-review",
            "/other",
        ] {
            assert_eq!(parse(body, MARKER), None, "{body:?}");
        }
        assert_eq!(parse("/skip-review", ""), None);
        assert_eq!(parse("/skip-review", "/no-ai"), None);
    }

    #[test]
    fn bad_ids_are_errors_and_nothing_is_mended() {
        let error = |body: &str| parse(body, MARKER).unwrap().unwrap_err();
        assert_eq!(
            error("/dismiss 0123456789ab id:xyz, 0123456789abc"),
            CommandError::BadIds(vec!["id:xyz".to_owned(), "0123456789abc".to_owned()])
        );
        assert_eq!(error("/dismiss -- why"), CommandError::NoIds("/dismiss"));
        assert_eq!(error("/undismiss"), CommandError::NoIds("/undismiss"));
        assert_eq!(
            error("/undismiss 0123456789ab -- why"),
            CommandError::StrayReason
        );
        assert!(matches!(
            error("/dismiss 0123456789\u{200b}ab"),
            CommandError::BadIds(_)
        ));
        assert!(matches!(error("/review ../x"), CommandError::BadAgent(_)));
        let ids: Vec<_> = (0..=MAX_IDS).map(|n| format!("{n:012x}")).collect();
        let many = format!(" {}", ids.join(" "));
        assert!(matches!(
            error(&format!("/dismiss{many}")),
            CommandError::TooManyIds(_)
        ));
        let text = error("/dismiss \u{1b}[31m@octocat").to_string();
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn reasons_are_short_and_printable() {
        let body = format!("/dismiss 0123456789ab -- \u{202e}{}", "é".repeat(400));
        let Some(Ok(Command::Dismiss {
            reason: Some(why), ..
        })) = parse(&body, MARKER)
        else {
            unreachable!("a command");
        };
        assert_eq!(why.chars().count(), MAX_REASON);
        assert!(why.starts_with("\\u{202e}é"), "{why}");
    }
}
