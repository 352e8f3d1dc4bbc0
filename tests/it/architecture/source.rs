//! What a Rust source says, read from its tokens: comments and strings cannot mislead it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::str::FromStr;
use syn::visit::Visit;

/// A path with at least two segments, groups of a `use` expanded (`a::{b, c::d}` is `a::b` and `a::c::d`).
pub(crate) struct PathUse {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) test: bool,
    /// Modules between the crate root and this place, inline ones included.
    pub(crate) depth: usize,
}

/// `name!(…)`.
pub(crate) struct MacroUse {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) test: bool,
}

/// `mod name;`, perhaps under `#[path = "…"]`.
pub(crate) struct ModDecl {
    pub(crate) name: String,
    pub(crate) path: Option<String>,
    pub(crate) test: bool,
}

/// One file's facts.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) paths: Vec<PathUse>,
    pub(crate) macros: Vec<MacroUse>,
    pub(crate) mods: Vec<ModDecl>,
    pub(crate) unsafe_lines: Vec<usize>,
    /// Line and number of parameters of every function.
    pub(crate) functions: Vec<(usize, usize)>,
    /// Line and kind of every item, `use` and `mod …;` included.
    pub(crate) items: Vec<(usize, ItemKind)>,
}

/// What an item of a file's top level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    ModDecl,
    Reexport,
    PrivateUse,
    Trait,
    Alias,
    Data,
    Other,
}

#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    test: bool,
}

impl Source {
    /// Reads `text`; `depth` is the number of modules above its top level, `test` whether all of it is test code.
    pub(crate) fn read(text: &str, depth: usize, test: bool) -> Result<Self, String> {
        let tokens = TokenStream::from_str(text).map_err(|e| e.to_string())?;
        let file: syn::File = syn::parse2(tokens.clone()).map_err(|e| e.to_string())?;
        let mut source = Self::default();
        for item in &file.items {
            source.items.push(item_kind(item));
        }
        Signatures(&mut source.functions).visit_file(&file);
        source.walk(
            &tokens.into_iter().collect::<Vec<_>>(),
            Place { depth, test },
        );
        Ok(source)
    }

    fn walk(&mut self, tokens: &[TokenTree], place: Place) {
        // Set by `#[cfg(test)]`, until the item behind it ends.
        let mut test_item = false;
        let mut module_file = None;
        for (i, token) in tokens.iter().enumerate() {
            let test = place.test || test_item;
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    let is_attribute = group.delimiter() == Delimiter::Bracket
                        && i > 0
                        && is_punct(tokens, i - 1, '#');
                    if is_attribute && group.stream().to_string().replace(' ', "") == "cfg(test)" {
                        test_item = true;
                        continue;
                    }
                    if is_attribute && is_ident(&inner, 0, "path") {
                        module_file = inner
                            .get(2)
                            .map(|path| path.to_string().trim_matches('"').to_owned());
                    }
                    let is_module = group.delimiter() == Delimiter::Brace
                        && i > 1
                        && is_ident(tokens, i - 2, "mod")
                        && ident(tokens, i - 1).is_some();
                    let depth = place.depth + usize::from(is_module);
                    self.walk(&inner, Place { depth, test });
                    if group.delimiter() == Delimiter::Brace {
                        test_item = false;
                    }
                }
                TokenTree::Punct(p) if p.as_char() == ';' => test_item = false,
                TokenTree::Ident(name) => {
                    let line = name.span().start().line;
                    let name = name.to_string();
                    if name == "unsafe" {
                        self.unsafe_lines.push(line);
                    }
                    if name == "mod"
                        && let Some(declared) = ident(tokens, i + 1)
                        && is_punct(tokens, i + 2, ';')
                    {
                        self.mods.push(ModDecl {
                            name: declared,
                            path: module_file.take(),
                            test,
                        });
                    }
                    if is_punct(tokens, i + 1, '!')
                        && matches!(tokens.get(i + 2), Some(TokenTree::Group(_)))
                    {
                        self.macros.push(MacroUse {
                            name: name.clone(),
                            line,
                            test,
                        });
                    }
                    if starts_path(tokens, i) {
                        let mut leaves = Vec::new();
                        expand(&tokens[i..], Vec::new(), &mut leaves);
                        let depth = place.depth;
                        self.paths
                            .extend(leaves.into_iter().map(|(segments, line)| PathUse {
                                segments,
                                line,
                                test,
                                depth,
                            }));
                    }
                }
                _ => {}
            }
        }
    }
}

fn item_kind(item: &syn::Item) -> (usize, ItemKind) {
    use syn::spanned::Spanned;
    let kind = match item {
        syn::Item::Mod(module) if module.content.is_none() => ItemKind::ModDecl,
        syn::Item::Use(item) if matches!(item.vis, syn::Visibility::Inherited) => {
            ItemKind::PrivateUse
        }
        syn::Item::Use(_) => ItemKind::Reexport,
        syn::Item::Trait(_) => ItemKind::Trait,
        syn::Item::Type(_) => ItemKind::Alias,
        syn::Item::Struct(_) | syn::Item::Enum(_) => ItemKind::Data,
        _ => ItemKind::Other,
    };
    (item.span().start().line, kind)
}

struct Signatures<'a>(&'a mut Vec<(usize, usize)>);

impl<'ast> Visit<'ast> for Signatures<'_> {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let line = signature.ident.span().start().line;
        self.0.push((line, signature.inputs.len()));
        syn::visit::visit_signature(self, signature);
    }
}

fn ident(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}

fn is_ident(tokens: &[TokenTree], at: usize, name: &str) -> bool {
    ident(tokens, at).is_some_and(|i| i == name)
}

fn is_punct(tokens: &[TokenTree], at: usize, c: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

/// Words that may stand in front of a path without being part of it.
const KEYWORDS: &[&str] = &[
    "use", "as", "in", "return", "impl", "dyn", "for", "mut", "ref", "else", "match", "if", "let",
    "where",
];

/// True when the identifier at `i` is the first segment of a path of two or more segments, or is renamed by `as`.
fn starts_path(tokens: &[TokenTree], i: usize) -> bool {
    if !is_colons(tokens, i + 1) && !is_ident(tokens, i + 1, "as") {
        return false;
    }
    if i < 2 || !is_colons(tokens, i - 2) {
        return true;
    }
    // `::std::fs` starts a path, `a::b` and `<T>::b` go on with one.
    match i.checked_sub(3).and_then(|at| tokens.get(at)) {
        Some(TokenTree::Ident(name)) => KEYWORDS.contains(&name.to_string().as_str()),
        Some(TokenTree::Punct(p)) => p.as_char() != '>',
        _ => true,
    }
}

fn expand(tokens: &[TokenTree], mut prefix: Vec<String>, out: &mut Vec<(Vec<String>, usize)>) {
    let mut at = usize::from(is_colons(tokens, 0)) * 2;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) => {
                prefix.push(name.to_string());
                if is_colons(tokens, at + 1) {
                    at += 3;
                    continue;
                }
                return out.push((prefix, name.span().start().line));
            }
            Some(TokenTree::Punct(p)) if p.as_char() == '*' => {
                prefix.push("*".to_owned());
                return out.push((prefix, p.span().start().line));
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                for item in inner.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ','))
                {
                    if !item.is_empty() {
                        expand(item, prefix.clone(), out);
                    }
                }
                return;
            }
            // `Vec::<u8>::new()`: what matters is in front of it.
            Some(other) => return out.push((prefix, other.span().start().line)),
            None => return,
        }
    }
}
