//! What citations need to know of a Markdown text: headings, comments, code spans, links and code blocks.

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A heading and the anchor that GitHub gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) text: String,
    pub(super) slug: String,
    pub(super) line: u32,
}

/// The parts of a page; lines are 1-based.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) headings: Vec<Heading>,
    /// Every line inside `<!-- … -->`, without the marks.
    pub(super) comments: Vec<(u32, String)>,
    /// The text of every `code span`.
    pub(super) code_spans: Vec<(u32, String)>,
    /// The destination of every link.
    pub(super) links: Vec<(u32, String)>,
    /// Byte ranges of code blocks, fences included.
    pub(super) code_blocks: Vec<Range<usize>>,
}

/// Line numbers of byte offsets.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn new(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    /// The 1-based line that holds byte `offset`.
    pub(super) fn of(&self, offset: usize) -> u32 {
        self.0.partition_point(|end| *end < offset) as u32 + 1
    }
}

impl Page {
    pub(super) fn parse(text: &str) -> Self {
        let lines = Lines::new(text);
        let mut page = Self::default();
        let mut slugs = HashMap::new();
        let mut heading: Option<(String, u32)> = None;
        let mut in_comment = false;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = lines.of(range.start);
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some((String::new(), line)),
                Event::End(TagEnd::Heading(_)) => {
                    if let Some((text, line)) = heading.take() {
                        let slug = unique(&mut slugs, slug(&text));
                        page.headings.push(Heading { text, slug, line });
                    }
                }
                Event::Start(Tag::CodeBlock(_)) => page.code_blocks.push(range),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Code(code) => {
                    if let Some((text, _)) = &mut heading {
                        text.push_str(&code);
                    }
                    page.code_spans.push((line, code.into_string()));
                }
                Event::Text(part) => {
                    if let Some((text, _)) = &mut heading {
                        text.push_str(&part);
                    }
                }
                Event::SoftBreak | Event::HardBreak => {
                    if let Some((text, _)) = &mut heading {
                        text.push(' ');
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    in_comment = comments(&html, line, in_comment, &mut page.comments);
                }
                _ => {}
            }
        }
        page
    }

    /// True when byte `offset` lies in a code block.
    pub(super) fn in_code_block(&self, offset: usize) -> bool {
        let after = self
            .code_blocks
            .partition_point(|block| block.start <= offset);
        after > 0 && self.code_blocks[after - 1].contains(&offset)
    }
}

/// Collects the lines of `html` that are inside comments; gives whether a comment is still open at its end.
fn comments(html: &str, first: u32, mut open: bool, out: &mut Vec<(u32, String)>) -> bool {
    for (line, text) in (first..).zip(html.lines()) {
        let mut rest = text;
        loop {
            let mark = if open { "-->" } else { "<!--" };
            let (before, after) = match rest.split_once(mark) {
                Some((before, after)) => (before, Some(after)),
                None => (rest, None),
            };
            if open && !before.trim().is_empty() {
                out.push((line, before.to_owned()));
            }
            let Some(after) = after else { break };
            open = !open;
            rest = after;
        }
    }
    open
}

// @ref LLP 0007#anchors — headings that code cites are an interface
/// The anchor GitHub makes of a heading: lower case, punctuation dropped, spaces to hyphens.
pub(super) fn slug(heading: &str) -> String {
    let mut out = String::with_capacity(heading.len());
    for c in heading.trim().chars() {
        match c {
            ' ' => out.push('-'),
            '-' | '_' => out.push(c),
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ => {}
        }
    }
    out
}

/// Repeated anchors get `-1`, `-2`, … as on GitHub.
fn unique(seen: &mut HashMap<String, u32>, slug: String) -> String {
    let count = seen.entry(slug.clone()).or_default();
    let unique = match *count {
        0 => slug,
        n => format!("{slug}-{n}"),
    };
    *count += 1;
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_those_of_github() {
        for (heading, expected) in [
            ("The `@ref` Grammar", "the-ref-grammar"),
            ("Exit codes (0–143)", "exit-codes-0143"),
            ("A & B", "a--b"),
            ("Überblick_x", "überblick_x"),
            ("  trimmed  ", "trimmed"),
            ("retry / budget", "retry--budget"),
        ] {
            let page = Page::parse(&format!("# {heading}\n"));
            assert_eq!(page.headings[0].slug, expected, "{heading}");
        }
    }

    #[test]
    fn repeated_headings_are_numbered_and_code_is_no_heading() {
        let page = Page::parse("# A\n\n## A\n\n```\n# A\n```\n\nA\n=\n");
        let slugs: Vec<_> = page
            .headings
            .iter()
            .map(|h| (h.slug.as_str(), h.line))
            .collect();
        assert_eq!(slugs, [("a", 1), ("a-1", 3), ("a-2", 9)]);
    }

    #[test]
    fn comments_are_found_inline_in_blocks_and_over_lines() {
        let page = Page::parse(
            "a <!-- one --> b <!-- two -->\n\n<!--\n three\n\n four -->\n\n`<!-- no -->`\n",
        );
        let found: Vec<_> = page
            .comments
            .iter()
            .map(|(line, text)| (*line, text.trim()))
            .collect();
        assert_eq!(found, [(1, "one"), (1, "two"), (4, "three"), (6, "four")]);
    }

    #[test]
    fn code_spans_and_links_have_their_lines() {
        let page = Page::parse(
            "`a/b.ts` here\n\n```\n`c/d.ts` sample\n```\n\nsee [x](y.md#z) and `e/f.ts`\n",
        );
        assert_eq!(
            page.code_spans,
            [(1, "a/b.ts".to_owned()), (7, "e/f.ts".to_owned())]
        );
        assert_eq!(page.links, [(7, "y.md#z".to_owned())]);
        assert!(page.in_code_block(16) && !page.in_code_block(0));
    }
}
