//! The setup that ecr brings along, for repositories without one and for `ecr init`.

use crate::model::RepoPath;
use crate::tree::MemoryTree;

/// The files of a fresh setup folder: path within it, and text.
pub const FILES: &[(&str, &str)] = &[
    (
        "config.jsonc",
        include_str!("../../templates/setup/config.jsonc"),
    ),
    ("shared.md", include_str!("../../templates/setup/shared.md")),
    (
        "coordinator.md",
        include_str!("../../templates/setup/coordinator.md"),
    ),
    (
        "agents/consistency.md",
        include_str!("../../templates/setup/agents/consistency.md"),
    ),
    (
        "agents/correctness.md",
        include_str!("../../templates/setup/agents/correctness.md"),
    ),
    (
        "agents/security.md",
        include_str!("../../templates/setup/agents/security.md"),
    ),
    (
        ".gitignore",
        include_str!("../../templates/setup/.gitignore"),
    ),
];

/// The same files as a tree.
pub(super) fn tree() -> MemoryTree {
    let mut tree = MemoryTree::new();
    for (path, text) in FILES {
        if let Ok(path) = RepoPath::new(path) {
            tree.insert(path, text.as_bytes());
        }
    }
    tree
}
