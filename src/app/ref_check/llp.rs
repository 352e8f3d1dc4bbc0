//! LLP documents: `llp/NNNN-slug.type.md`, their header lines, and the references between them.

use std::collections::BTreeMap;

use super::citation::normalised;
use super::index::{Broken, Index, nearest};
use super::markdown::{Heading, Lines, Page};
use super::report::{Problem, ProblemKind};
use crate::model::RepoPath;
use crate::tree::TreeError;

/// Where the documents live.
pub(super) const FOLDER: &str = "llp";

const TYPES: &[&str] = &[
    "explainer",
    "design",
    "spec",
    "decision",
    "principles",
    "guide",
];
const STATUSES: &[&str] = &["draft", "active", "superseded", "retired"];
const HEADER: &[&str] = &["Type", "Status", "Systems", "Author", "Date"];

/// The documents of a tree by number.
#[derive(Default)]
pub(super) struct Documents {
    by_number: BTreeMap<String, Document>,
    /// False when the tree has no such folder: references to LLPs are then somebody else's.
    folder: bool,
}

struct Document {
    path: RepoPath,
    headings: Vec<Heading>,
}

impl Documents {
    /// Reads the folder; problems of the documents themselves go to `problems`.
    pub(super) fn load(index: &Index<'_>, problems: &mut Vec<Problem>) -> Result<Self, TreeError> {
        let mut documents = Self::default();
        let mut open = Vec::new();
        for entry in index.entries() {
            let is_markdown = entry.path.extension() == Some(b"md");
            if entry.path.parent() != FOLDER.as_bytes() || !is_markdown {
                continue;
            }
            documents.folder = true;
            let mut report = |line, problem: String| {
                problems.push(Problem {
                    file: entry.path.clone(),
                    line,
                    kind: ProblemKind::Document,
                    problem,
                    target: None,
                    suggestion: None,
                });
            };
            let name = String::from_utf8_lossy(entry.path.file_name()).into_owned();
            let Some(name) = FileName::parse(&name) else {
                report(
                    1,
                    format!(
                        "the file name is not NNNN-slug.type.md (types: {})",
                        TYPES.join(", ")
                    ),
                );
                continue;
            };
            let Some(text) = index.text(&entry.path)? else {
                report(1, "not a text file of a size written by hand".to_owned());
                continue;
            };
            let page = Page::parse(&text);
            for (line, problem) in header_problems(&name, &text, &page) {
                report(line, problem);
            }
            if let Some(first) = documents.by_number.get(name.number) {
                report(
                    1,
                    format!(
                        "the number {} is taken by {}",
                        name.number,
                        first.path.to_lossy()
                    ),
                );
            } else {
                let document = Document {
                    path: entry.path.clone(),
                    headings: page.headings.clone(),
                };
                documents.by_number.insert(name.number.to_owned(), document);
            }
            open.push((entry.path.clone(), text, page));
        }
        for (path, text, page) in &open {
            documents.check_references(index, (path, text, page), problems);
        }
        Ok(documents)
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn exist(&self) -> bool {
        self.folder
    }

    /// Checks `0001` or `0001#anchor`; without an LLP folder everything holds.
    pub(super) fn resolve(&self, reference: &str) -> Result<(), Broken> {
        if !self.folder {
            return Ok(());
        }
        let (number, anchor) = match reference.split_once('#') {
            Some((number, anchor)) => (number, Some(anchor)),
            None => (reference, None),
        };
        if !is_number(number) {
            return Err(Broken::new(
                format!("`LLP {reference}` is not LLP and four digits"),
                None,
            ));
        }
        let Some(document) = self.by_number.get(number) else {
            return Err(Broken::new(format!("there is no LLP {number}"), None));
        };
        let Some(anchor) = anchor else { return Ok(()) };
        if document.headings.iter().any(|h| h.slug == anchor) {
            return Ok(());
        }
        let near = nearest(anchor, document.headings.iter().map(|h| h.slug.as_str()));
        Err(Broken::new(
            format!(
                "LLP {number} ({}) has no heading `#{anchor}`",
                document.path.to_lossy()
            ),
            near.map(|slug| format!("LLP {number}#{slug}")),
        ))
    }

    fn check_references(
        &self,
        index: &Index<'_>,
        (path, text, page): (&RepoPath, &str, &Page),
        problems: &mut Vec<Problem>,
    ) {
        let mut report = |line, target: String, broken: Broken| {
            problems.push(Problem {
                file: path.clone(),
                line,
                kind: broken.kind,
                problem: broken.problem,
                target: Some(target),
                suggestion: broken.suggestion,
            });
        };
        let lines = Lines::new(text);
        for (at, reference) in references(text) {
            if page.in_code_block(at) {
                continue;
            }
            if let Err(broken) = self.resolve(reference) {
                report(lines.of(at), format!("LLP {reference}"), broken);
            }
        }
        for (line, link) in &page.links {
            let Some(target) = link_target(link, path) else {
                continue;
            };
            if let Err(broken) = index.resolve(&target, self) {
                report(*line, link.clone(), broken);
            }
        }
    }
}

/// A link's target from the repository root; `None` for one that leads elsewhere.
fn link_target(link: &str, from: &RepoPath) -> Option<String> {
    let is_address = link
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.contains(['/', '.', '#']));
    if is_address || link.starts_with('/') {
        return None;
    }
    if link.starts_with('#') {
        return Some(format!("{}{link}", from.to_lossy()));
    }
    let (file, fragment) = match link.split_once('#') {
        Some((file, fragment)) => (file, format!("#{fragment}")),
        None => (link, String::new()),
    };
    // One that leaves the repository is left as it is, and refused.
    let path = normalised(&format!("{FOLDER}/{file}")).unwrap_or_else(|| link.to_owned());
    Some(format!("{path}{fragment}"))
}

/// Every `LLP 0001` and `LLP 0001#anchor` of a text: its offset and what follows `LLP `.
pub(super) fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("LLP ").filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let number = rest.get(..4).filter(|n| is_number(n))?;
        let after = &rest[4..];
        if text[..at].ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric) {
            return None;
        }
        let Some(anchor) = after.strip_prefix('#') else {
            return Some((at, number));
        };
        let end = anchor
            .find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
            .unwrap_or(anchor.len());
        Some((at, &rest[..5 + end]))
    })
}

fn is_number(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit())
}

struct FileName<'a> {
    number: &'a str,
    kind: &'a str,
}

impl<'a> FileName<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (number, rest) = name.strip_suffix(".md")?.split_once('-')?;
        let (slug, kind) = rest.split_once('.')?;
        let is_slug = slug.starts_with(|c: char| c.is_ascii_alphanumeric())
            && slug
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        (is_number(number) && is_slug && TYPES.contains(&kind)).then_some(Self { number, kind })
    }
}

// @ref LLP 0007#the-document-format — the header lines
/// What is wrong with the title and the header lines.
fn header_problems(name: &FileName<'_>, text: &str, page: &Page) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let title = format!("LLP {}: ", name.number);
    match page.headings.first() {
        Some(heading) if heading.line == 1 && heading.text.starts_with(&title) => {}
        _ => found.push((1, format!("the first line is not `# {title}…`"))),
    }
    let end = page
        .headings
        .get(1)
        .map_or(u32::MAX, |heading| heading.line);
    let mut seen: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    for (line, text) in (1..end).zip(text.lines()) {
        let Some((key, value)) = header_line(text) else {
            continue;
        };
        if seen.insert(key, (line, value)).is_some() {
            found.push((line, format!("a second `{key}` line")));
        }
    }
    for key in HEADER {
        match seen.get(key) {
            None => found.push((1, format!("no `**{key}:**` line before the first section"))),
            Some((line, value)) => {
                if let Some(problem) = value_problem(key, value, name.kind) {
                    found.push((*line, problem));
                }
            }
        }
    }
    found
}

/// `**Key:** value` or `Key: value` of a known key.
fn header_line(line: &str) -> Option<(&'static str, &str)> {
    let (key, value) = match line.strip_prefix("**") {
        Some(bold) => bold.split_once(":**")?,
        None => line.split_once(':')?,
    };
    let key = HEADER.iter().find(|known| **known == key)?;
    Some((key, value.trim()))
}

fn value_problem(key: &str, value: &str, kind: &str) -> Option<String> {
    let word = value
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    match key {
        _ if value.is_empty() => Some(format!("`{key}` is empty")),
        "Type" if !value.eq_ignore_ascii_case(kind) => Some(format!(
            "the type `{value}` is not the `{kind}` of the file name"
        )),
        "Status" if !STATUSES.contains(&word.as_str()) => Some(format!(
            "the status `{value}` is none of {}",
            STATUSES.join(", ")
        )),
        "Date" if value.parse::<jiff::civil::Date>().is_err() || value.len() != 10 => {
            Some(format!("the date `{value}` is not YYYY-MM-DD"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_four_digits_with_or_without_an_anchor() {
        let text =
            "LLP 0001, (LLP 0002#a-b_c.), LLP 12, LLP 00031, XLLP 0004, LLP NNNN#x, LLP 0005";
        let found: Vec<_> = references(text).map(|(_, r)| r).collect();
        assert_eq!(found, ["0001", "0002#a-b_c", "0005"]);
        assert_eq!(references("LLP 00é0").count(), 0);
    }

    #[test]
    fn file_names() {
        for good in ["0000-ecr.explainer.md", "0012-a-b2.decision.md"] {
            assert!(FileName::parse(good).is_some(), "{good}");
        }
        for bad in [
            "1-a.spec.md",
            "0001-A.spec.md",
            "0001-a.poem.md",
            "0001-a.md",
            "0001-.spec.md",
            "README.md",
        ] {
            assert!(FileName::parse(bad).is_none(), "{bad}");
        }
    }

    fn problems(text: &str) -> Vec<(u32, String)> {
        let name = FileName::parse("0001-a.spec.md").unwrap();
        header_problems(&name, text, &Page::parse(text))
    }

    const GOOD: &str = "# LLP 0001: A\n\n**Type:** Spec\n**Status:** Active\n**Systems:** x\n**Author:** y\n**Date:** 2026-01-31\n\n## S\n";

    #[test]
    fn headers() {
        assert_eq!(problems(GOOD), []);
        assert_eq!(problems(&GOOD.replace("**", "")), []);
        for (from, to, line, part) in [
            ("LLP 0001: A", "LLP 0002: A", 1, "first line"),
            ("**Type:** Spec\n", "", 1, "no `**Type:**`"),
            ("Spec", "Design", 3, "is not the `spec`"),
            ("Active", "Great", 4, "none of"),
            ("2026-01-31", "2026-02-31", 7, "YYYY-MM-DD"),
            ("2026-01-31", "2026-1-3", 7, "YYYY-MM-DD"),
            ("**Systems:** x", "**Systems:**", 5, "empty"),
            ("**Author:** y", "**Author:** y\n**Author:** z", 7, "second"),
            (
                "**Date:** 2026-01-31\n\n## S\n",
                "\n## S\n\n**Date:** 2026-01-31\n",
                1,
                "no `**Date:**`",
            ),
        ] {
            let found = problems(&GOOD.replace(from, to));
            assert_eq!(found.len(), 1, "{to}: {found:?}");
            assert!(
                found[0].0 == line && found[0].1.contains(part),
                "{to}: {found:?}"
            );
        }
    }

    #[test]
    fn links_are_relative_to_the_folder() {
        let from = RepoPath::new("llp/0001-a.spec.md").unwrap();
        for (link, target) in [
            ("0002-b.spec.md#x", Some("llp/0002-b.spec.md#x")),
            ("../README.md", Some("README.md")),
            ("#own", Some("llp/0001-a.spec.md#own")),
            ("https://example.com", None),
            ("mailto:a@example.com", None),
        ] {
            assert_eq!(link_target(link, &from).as_deref(), target, "{link}");
        }
    }
}
