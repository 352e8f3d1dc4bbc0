//! Which name stands for which expression, where that is plain: a name bound exactly once in its function.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::nodes::{children, field, text};
use super::syntax::walk_all;

/// Names bound in one file, by the function they are bound in (0: the file itself).
#[derive(Debug, Default)]
pub(super) struct Bindings<'t> {
    by_scope: HashMap<(usize, &'t [u8]), Binding<'t>>,
}

#[derive(Debug, Clone, Copy)]
struct Binding<'t> {
    times: u32,
    value: Option<Node<'t>>,
}

impl<'t> Bindings<'t> {
    pub(super) fn collect(tree: &'t Tree, source: &'t [u8]) -> Self {
        let mut all = Self::default();
        walk_all(tree, |ancestors, node| {
            for (name, value) in bound_by(node) {
                if matches!(name.kind(), "identifier" | "type_identifier") {
                    let scope = scope_of(ancestors, node);
                    let entry = all
                        .by_scope
                        .entry((scope, text(source, name)))
                        .or_insert(Binding { times: 0, value });
                    entry.times += 1;
                }
            }
        });
        all
    }

    /// The one expression that `name` stands for at a place with these `ancestors`; `None` for a parameter, for a
    /// name assigned twice, and for one that the file does not bind.
    pub(super) fn value(&self, name: &[u8], ancestors: &[Node<'t>]) -> Option<Node<'t>> {
        let scopes = ancestors
            .iter()
            .rev()
            .filter(|node| is_function(**node))
            .map(Node::id)
            .chain(std::iter::once(0));
        for scope in scopes {
            if let Some(binding) = self.by_scope.get(&(scope, name)) {
                return binding.value.filter(|_| binding.times == 1);
            }
        }
        None
    }

    /// Whether the file binds `name` anywhere, as a function too.
    pub(super) fn binds(&self, name: &[u8]) -> bool {
        self.by_scope.keys().any(|(_, bound)| *bound == name)
    }
}

/// Function-like nodes of all languages: what a local name lives in.
pub(super) fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_declaration"
            | "function_expression"
            | "generator_function"
            | "generator_function_declaration"
            | "arrow_function"
            | "method_definition"
            | "function_definition"
            | "lambda"
            | "method_declaration"
            | "func_literal"
            | "function_item"
            | "closure_expression"
            | "constructor_declaration"
            | "lambda_expression"
    )
}

fn scope_of(ancestors: &[Node<'_>], node: Node<'_>) -> usize {
    // A function's own name belongs to what is around it; its parameters are below it.
    let own = is_function(node);
    ancestors
        .iter()
        .rev()
        .find(|ancestor| is_function(**ancestor) && !(own && ancestor.id() == node.id()))
        .map_or(0, Node::id)
}

/// The names that `node` itself binds, each with the expression where it is known.
fn bound_by<'t>(node: Node<'t>) -> Vec<(Node<'t>, Option<Node<'t>>)> {
    let pair = |name: &str, value: &str| {
        field(node, name)
            .map(|bound| (bound, field(node, value)))
            .into_iter()
            .collect()
    };
    match node.kind() {
        "variable_declarator" | "const_item" | "static_item" => pair("name", "value"),
        "assignment" | "assignment_expression" => pair("left", "right"),
        "let_declaration" => pair("pattern", "value"),
        "short_var_declaration" | "assignment_statement" => {
            parallel(field(node, "left"), field(node, "right"))
        }
        "const_spec" | "var_spec" => parallel(field(node, "name"), field(node, "value")),
        "augmented_assignment"
        | "augmented_assignment_expression"
        | "compound_assignment_expr"
        | "for_statement"
        | "for_in_statement"
        | "for_in_clause"
        | "enhanced_for_statement"
        | "for_expression" => ["left", "pattern", "name"]
            .iter()
            .filter_map(|name| field(node, name))
            .flat_map(names_in)
            .map(|name| (name, None))
            .collect(),
        "formal_parameters"
        | "parameters"
        | "parameter_list"
        | "lambda_parameters"
        | "closure_parameters"
        | "inferred_parameters" => children(node, 64)
            .into_iter()
            .flat_map(names_in)
            .map(|name| (name, None))
            .collect(),
        "arrow_function" => field(node, "parameter")
            .map(|name| (name, None))
            .into_iter()
            .collect(),
        "function_declaration" | "function_definition" => field(node, "name")
            .map(|name| (name, None))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// `a, b = x, y`: pairs them where the numbers agree.
fn parallel<'t>(
    left: Option<Node<'t>>,
    right: Option<Node<'t>>,
) -> Vec<(Node<'t>, Option<Node<'t>>)> {
    let Some(left) = left else { return Vec::new() };
    let names = if left.kind() == "expression_list" {
        children(left, 16)
    } else {
        vec![left]
    };
    let values = right.map_or_else(Vec::new, |right| {
        if right.kind() == "expression_list" {
            children(right, 16)
        } else {
            vec![right]
        }
    });
    let matching = names.len() == values.len();
    names
        .into_iter()
        .enumerate()
        .map(|(at, name)| (name, values.get(at).copied().filter(|_| matching)))
        .collect()
}

/// `node` where it is a name, else the names among its children.
fn names_in(node: Node<'_>) -> Vec<Node<'_>> {
    if node.kind() == "identifier" {
        return vec![node];
    }
    children(node, 16)
        .into_iter()
        .filter(|child| child.kind() == "identifier")
        .collect()
}
