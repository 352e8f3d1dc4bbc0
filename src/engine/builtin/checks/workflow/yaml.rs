//! YAML as a plain tree with line numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Larger workflows are not read; GitHub's own limit is 512 kB.
const MAX_BYTES: usize = 512 * 1024;
/// Deeper nesting is nobody's workflow.
const MAX_DEPTH: usize = 64;
/// Every node, those that aliases repeat included.
const MAX_EVENTS: usize = 100_000;

/// A value and the line where it begins, 1-based; for a block scalar its first line of text.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) line: u32,
    pub(super) node: Node,
}

/// A YAML value; scalars are kept as text.
#[derive(Debug)]
pub(super) enum Node {
    Scalar(String),
    Seq(Vec<Item>),
    Map(Vec<(String, u32, Item)>),
}

/// Reads one document; `None` when it is not valid YAML or exceeds the limits. GitHub does not run such a file either.
pub(super) fn parse(content: &[u8]) -> Option<Item> {
    if content.len() > MAX_BYTES {
        return None;
    }
    let mut budget = serde_saphyr::Budget::default();
    budget.max_depth = MAX_DEPTH;
    budget.max_events = MAX_EVENTS;
    budget.max_nodes = MAX_EVENTS;
    let mut options = serde_saphyr::options! { budget: Some(budget), with_snippet: false };
    options.alias_limits.max_total_replayed_events = MAX_EVENTS;
    serde_saphyr::from_slice_with_options(content, options).ok()
}

impl Item {
    /// The value of `key` in a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(k, ..)| k == key)
            .map(|(.., item)| item)
    }

    /// The entries of a mapping: key, the key's line, value; empty for anything else.
    pub(super) fn entries(&self) -> &[(String, u32, Item)] {
        match &self.node {
            Node::Map(entries) => entries,
            Node::Scalar(_) | Node::Seq(_) => &[],
        }
    }

    /// The items of a sequence; empty for anything else.
    pub(super) fn items(&self) -> &[Item] {
        match &self.node {
            Node::Seq(items) => items,
            Node::Scalar(_) | Node::Map(_) => &[],
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.node {
            Node::Scalar(text) => Some(text),
            Node::Seq(_) | Node::Map(_) => None,
        }
    }

    /// Calls `see` with every scalar below, in order.
    pub(super) fn each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str, u32)) {
        match &self.node {
            Node::Scalar(text) => see(text, self.line),
            Node::Seq(items) => items.iter().for_each(|item| item.each_text(see)),
            Node::Map(entries) => entries.iter().for_each(|(.., item)| item.each_text(see)),
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Self {
            line: line_of(&spanned.referenced),
            node: spanned.value,
        })
    }
}

fn line_of(location: &serde_saphyr::Location) -> u32 {
    u32::try_from(location.line()).unwrap_or(u32::MAX)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Scalar(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(String::new()))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(String::new()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            entries.push((key.value, line_of(&key.referenced), access.next_value()?));
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_lines() {
        let root = parse(b"on: push\njobs:\n  a:\n    steps:\n      - run: |\n          echo one\n          echo two\n      - uses: x/y@v1\n").unwrap();
        assert_eq!(root.get("on").unwrap().text(), Some("push"));
        let steps = root
            .get("jobs")
            .unwrap()
            .get("a")
            .unwrap()
            .get("steps")
            .unwrap();
        let run = steps.items()[0].get("run").unwrap();
        assert_eq!((run.line, run.text()), (6, Some("echo one\necho two\n")));
        assert_eq!(steps.items()[1].get("uses").unwrap().line, 8);
    }

    #[test]
    fn hostile_documents_are_refused_quickly() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let row = vec![format!("*a{}", level - 1); 9].join(",");
            bomb = format!("{bomb}a{level}: &a{level} [{row}]\n");
        }
        assert!(parse(bomb.as_bytes()).is_none());
        assert!(parse("[".repeat(100_000).as_bytes()).is_none());
        assert!(parse(b"a: [1\n b: }").is_none());
        assert!(parse(b"\xff\xfe").is_none());
    }
}
