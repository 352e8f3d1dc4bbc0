//! Rules that a repository brings along: ast-grep YAML files in the setup folder's `rules/`.
//!
//! Severities: `error` and `warning` give a warning, `info` and `hint` a suggestion, `off` nothing; `metadata.severity`
//! (`critical`, `warning`, `suggestion`) and `metadata.category` say otherwise. `message` is the title, `note` the
//! consequence; `fix` and meta-variables in texts are not applied.
//!
//! @ref LLP 0005#rules-of-a-repository — trusted, bounded, never silently off

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ast_grep_config::{
    GlobalRules, RuleCollection, RuleConfig, SerializableRuleConfig, Severity as AstGrepSeverity,
    from_multiple,
};
use ast_grep_core::AstGrep;
use ast_grep_core::matcher::{Matcher, MatcherExt};
use ast_grep_core::tree_sitter::StrDoc;

use super::super::{CheckedFile, Hit};
use super::check::{MAX_HITS, MAX_TIME, NODES_PER_LOOK, hit};
use super::dialect::Dialect;
use super::language::Language;
use super::rules::RULES;
use super::syntax::{self, Deadline, MAX_DEPTH, Unparsed};
use crate::diff::FileMode;
use crate::model::{Category, RuleId, Severity};

/// Bytes of one rule file.
const MAX_FILE: usize = 64 * 1024;
/// Rule files, and rules in all of them.
const MAX_FILES: usize = 100;
const MAX_RULES: usize = 200;
/// Levels of syntax in one pattern: ast-grep matches by recursion.
const MAX_PATTERN_DEPTH: usize = 100;

/// The documented entry of a repository rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryRule {
    /// `[a-z0-9][a-z0-9-]*`, different from every other rule's.
    pub id: String,
    /// Severity unless the configuration says otherwise.
    pub severity: Severity,
    /// Category of its findings.
    pub category: Category,
    /// One line: what is wrong.
    pub title: String,
    /// What breaks, for whom, when.
    pub consequence: String,
}

/// Why a rule file is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct RuleFileError {
    /// The file's name as it was given.
    pub file: String,
    /// 1-based line and column, where known.
    pub position: Option<(u32, u32)>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub next_step: String,
}

/// The rules of a repository, ready to run.
pub struct RepositoryRules {
    rules: Vec<RepositoryRule>,
    collection: RuleCollection<Dialect>,
}

impl std::fmt::Debug for RepositoryRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepositoryRules")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl RepositoryRules {
    /// Compiles rule files, each a name (for messages) and its YAML, which may hold several documents. `taken` are the
    /// ids of other rules; those of the built-in structural rules are taken in any case. All errors are collected.
    pub fn compile(files: &[(&str, &[u8])], taken: &[&str]) -> Result<Self, Vec<RuleFileError>> {
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        let mut configs = Vec::new();
        let mut ids: BTreeSet<String> = RULES
            .iter()
            .map(|rule| rule.id)
            .chain(taken.iter().copied())
            .map(str::to_owned)
            .collect();
        if files.len() > MAX_FILES {
            let (name, _) = files[MAX_FILES];
            errors.push(error(
                name,
                None,
                format!("more than {MAX_FILES} rule files"),
                "merge files: one may hold many documents",
            ));
        }
        for (name, bytes) in files.iter().take(MAX_FILES) {
            match compile_file(name, bytes) {
                Ok(compiled) => {
                    for config in compiled {
                        match entry(name, bytes, &config, &mut ids) {
                            Ok(Some(rule)) => {
                                rules.push(rule);
                                configs.push(config);
                            }
                            Ok(None) => {}
                            Err(problem) => errors.push(problem),
                        }
                    }
                }
                Err(problem) => errors.push(problem),
            }
        }
        if rules.len() > MAX_RULES {
            let name = files.last().map_or("rules", |(name, _)| name);
            errors.push(error(
                name,
                None,
                format!("{} rules; the limit is {MAX_RULES}", rules.len()),
                "remove rules that no longer find anything",
            ));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let collection = RuleCollection::try_new(configs).map_err(|problem| {
            vec![error(
                "rules",
                None,
                problem.to_string(),
                "correct the glob in `files` or `ignores`",
            )]
        })?;
        Ok(Self { rules, collection })
    }

    /// The entries, in the order of the files.
    pub fn rules(&self) -> &[RepositoryRule] {
        &self.rules
    }

    /// Reports what the rules find in the added lines of `file`; see [`super::check()`].
    pub fn check(&self, file: &CheckedFile<'_>, sink: &mut dyn FnMut(Hit)) -> Result<(), Unparsed> {
        let Some(language) = Language::of(file) else {
            return Ok(());
        };
        if file.mode == FileMode::SYMLINK || file.added.is_empty() {
            return Ok(());
        }
        let path = file.path.to_lossy();
        let rules = self
            .collection
            .get_rule_from_lang(Path::new(&path), Dialect(language));
        if rules.is_empty() {
            return Ok(());
        }
        let Some(content) = file.content.get() else {
            return Ok(());
        };
        let mut hits = Vec::new();
        // ast-grep is not written for hostile sources: a panic in it costs this file's rules, not the run.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run(&rules, language, file, content, &mut hits)
        }));
        hits.into_iter().for_each(sink);
        outcome.unwrap_or(Err(Unparsed::TooContorted))
    }
}

fn run(
    rules: &[&RuleConfig<Dialect>],
    language: Language,
    file: &CheckedFile<'_>,
    content: &[u8],
    hits: &mut Vec<Hit>,
) -> Result<(), Unparsed> {
    let source = String::from_utf8_lossy(content);
    let verbatim = matches!(source, std::borrow::Cow::Borrowed(_));
    let tree = syntax::parse(language, source.as_bytes())?;
    if syntax::is_deeper_than(&tree, MAX_DEPTH) {
        return Err(Unparsed::TooContorted);
    }
    let kinds: Vec<_> = rules
        .iter()
        .map(|rule| rule.matcher.potential_kinds())
        .collect();
    let mut counts = vec![0_usize; rules.len()];
    let root = AstGrep::doc(StrDoc {
        src: source.into_owned(),
        lang: Dialect(language),
        tree,
    });
    let top = root.root();
    let mut deadline = Deadline::after(MAX_TIME, NODES_PER_LOOK);
    let mut outcome = Ok(());
    syntax::walk(&top.get_doc().tree, file, |_, node| {
        for ((rule, kinds), count) in rules.iter().zip(&kinds).zip(&mut counts) {
            let candidate = kinds
                .as_ref()
                .is_none_or(|kinds| kinds.contains(node.kind_id().into()));
            if !candidate || *count >= MAX_HITS {
                continue;
            }
            if rule.matcher.match_node(root.adopt(node)).is_some()
                && let Some(mut hit) = hit(file, &rule.id, node)
            {
                if !verbatim {
                    hit.columns = None; // replaced bytes have moved them
                }
                *count += 1;
                hits.push(hit);
            }
        }
        if deadline.has_passed() {
            outcome = Err(Unparsed::TooContorted);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    outcome
}

fn error(
    file: &str,
    position: Option<(u32, u32)>,
    problem: String,
    next_step: &str,
) -> RuleFileError {
    RuleFileError {
        file: file.to_owned(),
        position,
        problem,
        next_step: next_step.to_owned(),
    }
}

const SEE_FORMAT: &str =
    "compare with the rule format at https://ast-grep.github.io/reference/yaml.html";

fn compile_file(name: &str, bytes: &[u8]) -> Result<Vec<RuleConfig<Dialect>>, RuleFileError> {
    if bytes.len() > MAX_FILE {
        return Err(error(
            name,
            None,
            format!("larger than {} KiB", MAX_FILE / 1024),
            "split the file",
        ));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|problem| error(name, None, problem.to_string(), "save the file as UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = from_multiple::<SerializableRuleConfig<Dialect>>(text).map_err(|problem| {
        let position = problem.location().and_then(|at| {
            Some((
                u32::try_from(at.line()).ok()?,
                u32::try_from(at.column()).ok()?,
            ))
        });
        error(
            name,
            position,
            first_line(&problem.without_snippet().to_string()),
            SEE_FORMAT,
        )
    })?;
    refuse_deep_patterns(name, text, &documents)?;
    let mut rules = Vec::new();
    for document in documents {
        let id = document.id.clone();
        let at = position_of(text, &id);
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            RuleConfig::try_from(document, &GlobalRules::default())
        }))
        .map_err(|_| {
            error(
                name,
                at,
                format!("rule {id:?} makes the rule compiler fail"),
                SEE_FORMAT,
            )
        })?;
        rules.push(compiled.map_err(|problem| {
            error(
                name,
                at,
                format!("rule {id:?}: {}", chain(&problem)),
                SEE_FORMAT,
            )
        })?);
    }
    Ok(rules)
}

/// A pattern nested too deep would overflow the stack of ast-grep's recursive matcher.
fn refuse_deep_patterns(
    name: &str,
    text: &str,
    documents: &[SerializableRuleConfig<Dialect>],
) -> Result<(), RuleFileError> {
    let values = from_multiple::<serde_json::Value>(text).map_err(|problem| {
        error(
            name,
            None,
            first_line(&problem.without_snippet().to_string()),
            SEE_FORMAT,
        )
    })?;
    for (document, value) in documents.iter().zip(&values) {
        let mut patterns = Vec::new();
        collect_patterns(value, false, &mut patterns);
        for pattern in patterns {
            let too_deep = syntax::parse(document.language.0, pattern.as_bytes())
                .map_or(true, |tree| {
                    syntax::is_deeper_than(&tree, MAX_PATTERN_DEPTH)
                });
            if too_deep {
                let problem = format!(
                    "rule {:?}: a pattern is nested more than {MAX_PATTERN_DEPTH} levels deep",
                    document.id
                );
                return Err(error(
                    name,
                    position_of(text, &document.id),
                    problem,
                    "match the inner part with `inside` or `has`",
                ));
            }
        }
    }
    Ok(())
}

/// Every text under a key `pattern` or `context`, and every `fix`. The YAML reader bounds the depth.
fn collect_patterns<'v>(value: &'v serde_json::Value, wanted: bool, out: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) if wanted => out.push(text),
        serde_json::Value::Array(items) => items
            .iter()
            .for_each(|item| collect_patterns(item, wanted, out)),
        serde_json::Value::Object(entries) => {
            for (key, value) in entries {
                collect_patterns(
                    value,
                    matches!(key.as_str(), "pattern" | "context" | "fix" | "template"),
                    out,
                );
            }
        }
        _ => {}
    }
}

/// The entry for a compiled rule; `None` where it is switched off.
fn entry(
    name: &str,
    bytes: &[u8],
    config: &RuleConfig<Dialect>,
    ids: &mut BTreeSet<String>,
) -> Result<Option<RepositoryRule>, RuleFileError> {
    let id = config.id.clone();
    let at = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| position_of(text, &id));
    if RuleId::new(&id).is_err() {
        return Err(error(
            name,
            at,
            format!("id {id:?} is not usable"),
            "use lower-case letters, digits and `-`",
        ));
    }
    if !ids.insert(id.clone()) {
        return Err(error(
            name,
            at,
            format!("id {id:?} is taken by another rule"),
            "rename the rule; built-in rules are set in `checks.rules`",
        ));
    }
    if let Some(problem) = bad_glob(config) {
        return Err(error(
            name,
            at,
            format!("rule {id:?}: {problem}"),
            "correct the glob in `files` or `ignores`",
        ));
    }
    let metadata = config
        .metadata
        .as_ref()
        .and_then(|metadata| serde_json::to_value(metadata).ok());
    let word = |key: &str| -> Option<&str> { metadata.as_ref()?.get(key)?.as_str() };
    let bad = |problem: crate::model::ParseWordError| {
        error(
            name,
            at,
            format!("rule {id:?}: {problem}"),
            "correct the word under `metadata`",
        )
    };
    let severity = match (word("severity"), &config.severity) {
        (_, AstGrepSeverity::Off) => return Ok(None),
        (Some(word), _) => word.parse().map_err(bad)?,
        (None, AstGrepSeverity::Error | AstGrepSeverity::Warning) => Severity::Warning,
        (None, AstGrepSeverity::Info | AstGrepSeverity::Hint) => Severity::Suggestion,
    };
    let category = word("category")
        .map_or(Ok(Category::Quality), str::parse)
        .map_err(bad)?;
    let title = match config.message.trim() {
        "" => format!("Matches the repository's rule `{id}`"),
        message => first_line(message).chars().take(120).collect(),
    };
    let consequence = match config.note.as_deref().map(str::trim) {
        None | Some("") => format!("This repository's rule `{id}` does not allow it."),
        Some(note) => note.chars().take(600).collect(),
    };
    Ok(Some(RepositoryRule {
        id,
        severity,
        category,
        title,
        consequence,
    }))
}

/// What is wrong with one of the rule's globs. ast-grep keeps their type to itself, so they are read as data.
fn bad_glob(config: &RuleConfig<Dialect>) -> Option<globset::Error> {
    let globs = serde_json::to_value((&config.files, &config.ignores)).ok()?;
    let lists = globs
        .as_array()?
        .iter()
        .filter_map(serde_json::Value::as_array);
    lists
        .flatten()
        .filter_map(|glob| glob.as_str().or_else(|| glob.get("glob")?.as_str()))
        .find_map(|glob| globset::Glob::new(glob).err())
}

/// Where the document with this id starts saying so.
fn position_of(text: &str, id: &str) -> Option<(u32, u32)> {
    (1..).zip(text.lines()).find_map(|(number, line)| {
        let value = line.strip_prefix("id:")?.trim().trim_matches(['"', '\'']);
        (value == id).then_some((number, 1))
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// An error with its causes, which ast-grep keeps in `source()`.
fn chain(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    for _ in 0..8 {
        let Some(inner) = cause else { break };
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    first_line(&text)
}
