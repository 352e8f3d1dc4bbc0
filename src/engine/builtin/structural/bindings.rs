//! Which name stands for which expression, where that is plain: a name bound exactly once in its function.

use std::collections::{HashMap, HashSet};

use tree_sitter::{Node, Tree};

use super::nodes::{children, field, text};
use super::syntax::walk_all;

/// Names bound in one file, by the function they are bound in (0: the file itself).
#[derive(Debug, Default)]
pub(super) struct Bindings<'t> {
    by_scope: HashMap<(usize, &'t [u8]), Binding<'t>>,
    /// All names, whatever they are bound in.
    names: HashSet<&'t [u8]>,
    /// Names declared with a type that holds numbers only.
    numbers: HashSet<(usize, &'t [u8])>,
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
            if is_number_declaration(node, source) {
                let scope = scope_of(ancestors, node);
                all.numbers.extend(
                    declared(node)
                        .into_iter()
                        .map(|name| (scope, text(source, name))),
                );
            }
            for (name, value) in bound_by(node) {
                if matches!(name.kind(), "identifier" | "type_identifier") {
                    all.names.insert(text(source, name));
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
        for scope in scopes(ancestors) {
            if let Some(binding) = self.by_scope.get(&(scope, name)) {
                return binding.value.filter(|_| binding.times == 1);
            }
        }
        None
    }

    /// Whether the nearest function that declares `name` declares it a number.
    pub(super) fn is_number(&self, name: &[u8], ancestors: &[Node<'t>]) -> bool {
        scopes(ancestors)
            .find(|scope| self.by_scope.contains_key(&(*scope, name)))
            .is_some_and(|scope| self.numbers.contains(&(scope, name)))
    }

    /// Whether the file binds `name` anywhere, as a function too.
    pub(super) fn binds(&self, name: &[u8]) -> bool {
        self.names.contains(name)
    }
}

/// The functions around a place, innermost first, and the file (0).
fn scopes<'s>(ancestors: &'s [Node<'_>]) -> impl Iterator<Item = usize> + 's {
    ancestors
        .iter()
        .rev()
        .filter(|node| is_function(**node))
        .map(Node::id)
        .chain(std::iter::once(0))
}

/// `int id`, `id: number`, `id i64`: a declaration whose type holds nothing but numbers and truth values.
fn is_number_declaration(node: Node<'_>, source: &[u8]) -> bool {
    if !matches!(
        node.kind(),
        "formal_parameter"
            | "parameter_declaration"
            | "parameter"
            | "required_parameter"
            | "optional_parameter"
            | "typed_parameter"
            | "typed_default_parameter"
            | "local_variable_declaration"
            | "field_declaration"
    ) {
        return false;
    }
    let Some(declared) = field(node, "type") else {
        return false;
    };
    let declared = text(source, declared).trim_ascii();
    let declared = declared.strip_prefix(b":").unwrap_or(declared).trim_ascii();
    NUMBER_TYPES.contains(&declared)
}

const NUMBER_TYPES: &[&[u8]] = &[
    b"int",
    b"long",
    b"short",
    b"byte",
    b"double",
    b"float",
    b"boolean",
    b"Integer",
    b"Long",
    b"Short",
    b"Double",
    b"Float",
    b"Boolean",
    b"BigInteger",
    b"number",
    b"bigint",
    b"bool",
    b"int8",
    b"int16",
    b"int32",
    b"int64",
    b"uint",
    b"uint8",
    b"uint16",
    b"uint32",
    b"uint64",
    b"float32",
    b"float64",
    b"i8",
    b"i16",
    b"i32",
    b"i64",
    b"i128",
    b"u8",
    b"u16",
    b"u32",
    b"u64",
    b"u128",
    b"usize",
    b"isize",
    b"f32",
    b"f64",
    b"UUID",
    b"Uuid",
];

/// The names that a declaration declares.
fn declared(node: Node<'_>) -> Vec<Node<'_>> {
    children(node, 16)
        .into_iter()
        .flat_map(|child| match child.kind() {
            "identifier" => vec![child],
            "variable_declarator" => field(child, "name").into_iter().collect(),
            _ => Vec::new(),
        })
        .collect()
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
fn bound_by(node: Node<'_>) -> Vec<(Node<'_>, Option<Node<'_>>)> {
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
