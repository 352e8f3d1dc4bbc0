//! `@ref LLP NNNN#anchor — gloss` in the comments of sources.

use super::index::{Index, is_markdown};
use super::llp::{Documents, FOLDER};
use super::markdown::Page;
use super::report::{Problem, ProblemKind};
use crate::tree::TreeError;

const MARK: &str = "@ref LLP ";

/// Checks every file that is neither a document nor part of a review setup; gives the number of references.
pub(super) fn check(
    index: &Index<'_>,
    documents: &Documents,
    is_setup: impl Fn(&[u8]) -> bool,
    problems: &mut Vec<Problem>,
) -> Result<usize, TreeError> {
    let mut count = 0;
    if !documents.exist() {
        return Ok(count);
    }
    for entry in index.entries() {
        let path = entry.path.as_bytes();
        if entry.path.is_under(FOLDER.as_bytes()) || is_setup(path) {
            continue;
        }
        let Some(text) = index.text(&entry.path)? else {
            continue;
        };
        if !text.contains(MARK) {
            continue;
        }
        let found = if is_markdown(&entry.path.to_lossy()) {
            let comments = Page::parse(&text).comments;
            comments
                .iter()
                .flat_map(|(line, text)| in_line(*line, text))
                .collect()
        } else {
            in_source(&text)
        };
        for (line, reference) in found {
            count += 1;
            let result = documents.resolve(&reference);
            problems.extend(result.err().map(|broken| Problem {
                file: entry.path.clone(),
                line,
                kind: ProblemKind::BrokenRef,
                problem: broken.problem,
                target: Some(format!("LLP {reference}")),
                suggestion: broken.suggestion,
            }));
        }
    }
    Ok(count)
}

fn in_source(text: &str) -> Vec<(u32, String)> {
    let commented = |line: &str| {
        line.find(MARK)
            .is_some_and(|at| ends_in_comment(&line[..at]))
    };
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| commented(line))
        .flat_map(|(number, line)| in_line(number, line))
        .collect()
}

// @ref LLP 0007#references-in-code — why a reference is everything up to white space
/// The references of one line of comment: everything up to white space, so that a slip is reported, not overlooked.
fn in_line(line: u32, text: &str) -> Vec<(u32, String)> {
    text.match_indices(MARK)
        .filter_map(|(at, mark)| {
            let rest = text[at + mark.len()..].trim_start();
            let reference = rest.split(char::is_whitespace).next().unwrap_or_default();
            let reference = reference.trim_end_matches(['.', ',', ';', ':', ')', '`', '"']);
            let placeholder = reference.starts_with(['N', 'n', '<']) || reference.is_empty();
            (!placeholder).then(|| (line, reference.to_owned()))
        })
        .collect()
}

/// True when text that goes on behind `prefix` is inside a comment, in any of the common languages: nothing but
/// comment marks so far, or a mark outside a string.
fn ends_in_comment(prefix: &str) -> bool {
    if prefix.trim().chars().all(|c| "/*#!-;<%".contains(c)) {
        return true;
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in prefix.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => {
                let rest = &prefix[at..];
                if ["//", "/*", "#", "--", "<!--"]
                    .iter()
                    .any(|mark| rest.starts_with(mark))
                {
                    return true;
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_common_languages() {
        for prefix in [
            "// ",
            "//! ",
            "    /// ",
            "/* ",
            " * ",
            "# ",
            "-- ",
            "<!-- ",
            "; ",
            "",
            "let x = 1; // ",
            "x = '#' # ",
        ] {
            assert!(ends_in_comment(prefix), "{prefix}");
        }
        for prefix in [
            "let s = \"",
            "let s = \"// ",
            "x = '# ",
            "return ",
            "\"a\\\" // ",
        ] {
            assert!(!ends_in_comment(prefix), "{prefix}");
        }
    }

    #[test]
    fn references_are_read_up_to_white_space() {
        let mark = MARK;
        let text = format!(
            "// {mark}0001#a — why\n\nlet s = \"{mark}0002\";\n//! {mark}0003#b, {mark}NNNN#x, {mark}12\n"
        );
        let found = in_source(&text);
        let expected = [(1, "0001#a"), (4, "0003#b"), (4, "12")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
