//! Small questions about syntax nodes, shared by the languages.

use tree_sitter::Node;

/// Bytes of a called name; what is longer is a chain of calls, whose links are looked at one by one.
pub(super) const MAX_CALLEE: usize = 200;

/// The verbatim text of `node`.
pub(super) fn text<'a>(source: &'a [u8], node: Node<'_>) -> &'a [u8] {
    source.get(node.byte_range()).unwrap_or_default()
}

/// The child in the field `name`.
pub(super) fn field<'t>(node: Node<'t>, name: &str) -> Option<Node<'t>> {
    node.child_by_field_name(name)
}

/// The first `limit` named children that are not comments.
pub(super) fn children(node: Node<'_>, limit: usize) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.is_extra())
        .take(limit)
        .collect()
}

/// The named children of the field `arguments`, up to 16.
pub(super) fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    field(call, "arguments").map_or_else(Vec::new, |list| children(list, 16))
}

/// The expression inside any number (up to 8) of parentheses.
pub(super) fn bare(mut node: Node<'_>) -> Node<'_> {
    for _ in 0..8 {
        if node.kind() != "parenthesized_expression" {
            break;
        }
        match children(node, 1).first() {
            Some(inner) => node = *inner,
            None => break,
        }
    }
    node
}

/// What follows the last `.` or `::` of a dotted name.
pub(super) fn last_segment(name: &[u8]) -> &[u8] {
    name.rsplit(|b| matches!(b, b'.' | b':'))
        .next()
        .unwrap_or(name)
}

/// Whether `haystack` holds `needle`.
pub(super) fn contains(haystack: &[u8], needle: &str) -> bool {
    memchr::memmem::find(haystack, needle.as_bytes()).is_some()
}

/// Whether `haystack` holds one of `needles`, in any ASCII case; only the first 400 bytes are looked at.
pub(super) fn mentions(haystack: &[u8], needles: &[&str]) -> bool {
    let head = haystack[..haystack.len().min(400)].to_ascii_lowercase();
    needles.iter().any(|needle| contains(&head, needle))
}

/// Exactly one of them: what compares NaN with NaN demonstrates the very fact that the rule is about.
pub(super) fn one_of_two([left, right]: [bool; 2]) -> bool {
    left != right
}
