//! What a language's rules see while its tree is walked.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::bindings::{Bindings, is_function};
use super::language::Language;
use super::nodes::{children, contains, field, last_segment, mentions, text};
use crate::model::RepoPath;

/// One parsed file.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) language: Language,
    pub(super) source: &'a [u8],
    pub(super) path: &'a RepoPath,
    /// Whether the path says that this is test code or test data.
    pub(super) in_tests: bool,
    /// Whether the path says that this is data for tests rather than a test.
    pub(super) is_fixture: bool,
    tree: &'a Tree,
    bindings: OnceCell<Bindings<'a>>,
    mentioned: RefCell<HashMap<&'static str, bool>>,
}

/// One node of it, with its ancestors (outermost first).
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'s, 'a> {
    pub(super) scan: &'s Scan<'a>,
    pub(super) ancestors: &'s [Node<'a>],
    pub(super) node: Node<'a>,
}

/// The rules that matched and the nodes to point at.
pub(super) type Found<'a> = Vec<(&'static str, Node<'a>)>;

impl<'a> Scan<'a> {
    pub(super) fn new(
        language: Language,
        source: &'a [u8],
        path: &'a RepoPath,
        tree: &'a Tree,
    ) -> Self {
        Self {
            language,
            source,
            path,
            in_tests: is_test_path(path),
            is_fixture: is_fixture_path(path),
            tree,
            bindings: OnceCell::new(),
            mentioned: RefCell::default(),
        }
    }

    pub(super) fn bindings(&self) -> &Bindings<'a> {
        self.bindings
            .get_or_init(|| Bindings::collect(self.tree, self.source))
    }

    /// Whether the file holds `word` anywhere; looked up once.
    pub(super) fn mentions(&self, word: &'static str) -> bool {
        *self
            .mentioned
            .borrow_mut()
            .entry(word)
            .or_insert_with(|| contains(self.source, word))
    }
}

impl<'a> Site<'_, 'a> {
    pub(super) fn text(&self, node: Node<'_>) -> &'a [u8] {
        text(self.scan.source, node)
    }

    /// The text of the field `name` of this node.
    pub(super) fn field_text(&self, name: &str) -> &'a [u8] {
        field(self.node, name).map_or(&[], |node| self.text(node))
    }

    /// What `node` stands for: itself, or for a name bound once the expression it is bound to.
    pub(super) fn resolve(&self, node: Node<'a>) -> Node<'a> {
        if node.kind() != "identifier" {
            return node;
        }
        self.scan
            .bindings()
            .value(self.text(node), self.ancestors)
            .unwrap_or(node)
    }

    pub(super) fn parent(&self) -> Option<Node<'a>> {
        self.ancestors.last().copied()
    }

    /// Whether an enclosing condition mentions one of `words` (lower case), or the name of what is defined here (a function, a
    /// class, a variable) says that it is the unsafe variant: then the code does what its user asked for.
    pub(super) fn is_opted_into(&self, words: &[&str]) -> bool {
        for ancestor in self.ancestors.iter().rev() {
            let condition = match ancestor.kind() {
                "if_statement" | "if_expression" | "elif_clause" | "ternary_expression"
                | "while_statement" => field(*ancestor, "condition"),
                "match_expression" => field(*ancestor, "value"),
                "switch_expression" | "switch_statement" => {
                    field(*ancestor, "condition").or_else(|| field(*ancestor, "value"))
                }
                // `switch mode := options["sslmode"]; mode {`
                "expression_switch_statement" => {
                    field(*ancestor, "initializer").or_else(|| field(*ancestor, "value"))
                }
                // Python's `a if b else c` names no fields.
                "conditional_expression" => children(*ancestor, 3).get(1).copied(),
                "binary_expression" => field(*ancestor, "left"),
                _ => None,
            };
            if condition.is_some_and(|condition| mentions(self.text(condition), words)) {
                return true;
            }
            let named = is_function(*ancestor)
                || matches!(
                    ancestor.kind(),
                    "class_declaration" | "class_definition" | "impl_item"
                );
            let bound = match ancestor.kind() {
                "variable_declarator" | "var_spec" => field(*ancestor, "name"),
                "assignment" | "assignment_expression" | "short_var_declaration" => {
                    field(*ancestor, "left")
                }
                "let_declaration" => field(*ancestor, "pattern"),
                _ => field(*ancestor, "name").filter(|_| named),
            };
            if bound.is_some_and(|name| mentions(self.text(name), SAYS_SO)) {
                return true;
            }
        }
        false
    }

    /// The last segment of the dotted name in the field `name`.
    pub(super) fn last_of(&self, name: &str) -> &'a [u8] {
        last_segment(self.field_text(name))
    }
}

/// Words in a condition or a name that show that skipping a check is an option and not the rule.
pub(super) const OPTED_OUT: &[&str] = &[
    "insecure",
    "unverified",
    "verif",
    "valid",
    "skip",
    "trust",
    "selfsigned",
    "self_signed",
    "unsafe",
    "danger",
    "strict",
    "ssl",
    "tls",
    "cert",
    "local",
    "debug",
    "dev",
    "test",
    "host_key",
    "hostkey",
    "reject",
    "auto_add",
];

/// Words in the name of a deliberately unsafe variant.
const SAYS_SO: &[&str] = &[
    "insecure",
    "unverified",
    "noverif",
    "no_verif",
    "skipverif",
    "skip_verif",
    "skiptls",
    "skip_tls",
    "trustall",
    "trust_all",
    "acceptall",
    "accept_all",
    "unsafe",
    "danger",
    "selfsigned",
    "self_signed",
    "allowall",
    "allow_all",
    "ignorecert",
    "ignore_cert",
    "ignoressl",
    "ignore_ssl",
    "noop",
    "local",
    "loopback",
    "anyhost",
    "setdebug",
    "set_trace",
    "settrace",
    "break",
];

/// Whether the path is that of test code or test data, by the customs of the languages linked in.
fn is_test_path(path: &RepoPath) -> bool {
    let path = path.to_lossy().to_ascii_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let in_folder = folders.split('/').any(|folder| {
        matches!(
            folder,
            "test"
                | "tests"
                | "__tests__"
                | "testing"
                | "testdata"
                | "spec"
                | "specs"
                | "e2e"
                | "fixtures"
                | "__fixtures__"
                | "__mocks__"
                | "mocks"
                | "cypress"
                | "integration_tests"
                | "unittests"
                | "functional"
        ) || folder.contains("bench")
            || folder.ends_with("-test")
            || folder.ends_with("-tests")
            || folder.ends_with("_test")
            || folder.ends_with("_tests")
    });
    let stem = name.split('.').next().unwrap_or(name);
    in_folder
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || matches!(stem, "test" | "tests" | "conftest")
        || name.contains(".test.")
        || name.contains(".spec.")
        || name.contains(".cy.")
        || (name.strip_suffix(".java").is_some()
            && (stem.ends_with("test") || stem.ends_with("tests")))
}

fn is_fixture_path(path: &RepoPath) -> bool {
    mentions(path.parent(), &["fixture", "testdata", "__mocks__"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_paths() {
        for (path, expected) in [
            ("src/app.py", false),
            ("src/latest.py", false),
            ("src/contest/app.js", false),
            ("tests/it/main.rs", true),
            ("pkg/server_test.go", true),
            ("web/app.spec.ts", true),
            ("web/__tests__/app.js", true),
            ("src/main/java/FooTest.java", true),
            ("test_app.py", true),
            ("attest.rs", false),
        ] {
            assert_eq!(
                is_test_path(&RepoPath::new(path).unwrap()),
                expected,
                "{path}"
            );
        }
    }
}
