//! The routing manifest of a monorepo: which part is reviewed with which setup.

use std::collections::HashMap;

use super::auth::AuthEntry;
use super::diagnostic::{ConfigErrors, Diagnostic, Source, quoted};
use super::jsonc::{Document, read};
use super::raw::{CommentMode, RawRouting};
use super::resolve::auth;
use super::schema;
use super::settings::COMMENT_TAG;
use crate::model::{AgentId, RepoPath, ScopeName};

/// Default of `budget.totalPassesMinutes`.
pub(super) const TOTAL_PASSES_MINUTES: u32 = 55;
/// Default of `budget.minScopeMinutes`.
pub(super) const MIN_SCOPE_MINUTES: u32 = 5;

/// A checked `routing.jsonc` with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingManifest {
    /// How many comments a pull request gets.
    pub comment: CommentMode,
    /// Minutes for the passes of all scopes together.
    pub total_passes_minutes: u32,
    /// Minutes that every scope gets at least.
    pub min_scope_minutes: u32,
    /// Replaces the root configuration's entries as a whole, where given.
    pub auth: Option<Vec<AuthEntry>>,
    /// Agents of the root setup that review every scope.
    pub enforce_agents: Vec<AgentId>,
    /// The tag the manifest names; the root configuration's wins.
    pub comment_tag: String,
    /// The scopes in order; never empty.
    pub scopes: Vec<Scope>,
}

/// A part of the repository with a setup of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Unique in the manifest.
    pub name: ScopeName,
    /// Globs of its files, from the root of the repository; never empty.
    pub paths: Vec<String>,
    /// The folder that has the setup folder; `None` is the root setup. Unique in the manifest.
    pub config: Option<RepoPath>,
}

/// Reads a `routing.jsonc`. The second value is the warnings.
pub fn parse_routing(source: &Source) -> Result<(RoutingManifest, Vec<Diagnostic>), ConfigErrors> {
    let document: Document<'_, RawRouting> =
        read(source, schema::routing_ref(), &[]).map_err(ConfigErrors::all)?;
    let mut said = Vec::new();
    let scopes = scopes(&document, &mut said);
    let Document { value: raw, .. } = &document;
    let budget = raw.budget.as_ref();
    let defaults = raw.defaults.as_ref();
    let mut enforce_agents = Vec::new();
    for (index, id) in defaults
        .and_then(|d| d.enforce_agents.as_deref())
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match AgentId::new(id) {
            Ok(id) => enforce_agents.push(id),
            Err(error) => said.push(document.error(
                &["defaults", "enforceAgents", &index.to_string()],
                error.to_string(),
            )),
        }
    }
    let manifest = RoutingManifest {
        comment: raw.comment.unwrap_or_default(),
        total_passes_minutes: budget
            .and_then(|b| b.total_passes_minutes)
            .unwrap_or(TOTAL_PASSES_MINUTES),
        min_scope_minutes: budget
            .and_then(|b| b.min_scope_minutes)
            .unwrap_or(MIN_SCOPE_MINUTES),
        auth: defaults.and_then(|d| d.auth.as_ref()).map(|raw| {
            auth(
                &document,
                &["defaults", "auth"],
                Some(raw.clone()),
                &mut said,
            )
        }),
        enforce_agents,
        comment_tag: defaults
            .and_then(|d| d.comment_tag.clone())
            .unwrap_or_else(|| COMMENT_TAG.to_owned()),
        scopes,
    };
    Ok((manifest, ConfigErrors::check(said)?))
}

fn scopes(document: &Document<'_, RawRouting>, said: &mut Vec<Diagnostic>) -> Vec<Scope> {
    let mut scopes = Vec::new();
    let mut names = HashMap::new();
    let mut folders = HashMap::new();
    for (index, raw) in document.value.scopes.iter().enumerate() {
        let at = index.to_string();
        let mut wrong = |key: &str, message: String, help: &str| {
            let problem = document.error(&["scopes", &at, key], message);
            said.push(problem.with_help(help));
        };
        let name = match ScopeName::new(&raw.name) {
            Ok(name) => name,
            Err(error) => {
                wrong("name", error.to_string(), "choose another name");
                continue;
            }
        };
        if names.insert(name.clone(), index).is_some() {
            wrong(
                "name",
                format!("duplicate scope name: {name}"),
                "every scope needs a name of its own",
            );
        }
        let Ok(config) = folder(&raw.config) else {
            wrong(
                "config",
                format!("{} is not a folder of the repository", quoted(&raw.config)),
                "write the folder relative to the root of the repository, without `..`",
            );
            continue;
        };
        if let Some(other) = folders.insert(config.clone(), index) {
            wrong(
                "config",
                format!(
                    "duplicate scope config dir: {} is also that of scopes[{other}]",
                    quoted(&raw.config)
                ),
                "join the two scopes, or give each a folder of its own",
            );
        }
        scopes.push(Scope {
            name,
            paths: raw.paths.clone(),
            config,
        });
    }
    scopes
}

/// A folder relative to the root of the repository; `None` is the root itself.
pub(super) fn folder(text: &str) -> Result<Option<RepoPath>, ()> {
    if text.starts_with('/') || text.trim().is_empty() {
        return Err(());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or(())?;
            }
            name => parts.push(name),
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    RepoPath::new(parts.join("/")).map(Some).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RoutingManifest, String> {
        parse_routing(&Source::new("routing.jsonc", text))
            .map(|(manifest, _)| manifest)
            .map_err(|errors| errors.to_string())
    }

    const DEFAULT: &str = r#"{"name": "default", "paths": ["**/*"], "config": "."}"#;

    #[test]
    fn defaults() {
        let manifest = parse(&format!("{{\"scopes\": [{DEFAULT}]}}")).unwrap();
        assert_eq!(manifest.comment, CommentMode::Single);
        assert_eq!(
            (manifest.total_passes_minutes, manifest.min_scope_minutes),
            (55, 5)
        );
        assert_eq!(manifest.comment_tag, "expo-ai-code-reviewer");
        assert!(manifest.enforce_agents.is_empty() && manifest.auth.is_none());
        assert_eq!(manifest.scopes[0].config, None);
        let partial = parse(&format!(
            "{{\"budget\": {{\"totalPassesMinutes\": 20}}, \"scopes\": [{DEFAULT}]}}"
        ));
        let partial = partial.unwrap();
        assert_eq!(
            (partial.total_passes_minutes, partial.min_scope_minutes),
            (20, 5)
        );
    }

    #[test]
    fn refused() {
        let scope = |name: &str, config: &str| {
            format!(r#"{{"name": "{name}", "paths": ["x/**"], "config": "{config}"}}"#)
        };
        for (scopes, said) in [
            (String::new(), "`scopes` is empty"),
            (scope("Bad_Name", "."), "lower-case letters"),
            (
                format!("{}, {}", scope("a", "x"), scope("a", "y")),
                "duplicate scope name: a",
            ),
            (
                format!(
                    "{}, {}",
                    scope("a", "server/www"),
                    scope("b", "server/www/")
                ),
                "duplicate scope config dir",
            ),
            (
                scope("x", "../../outside"),
                "not a folder of the repository",
            ),
            (scope("x", "/abs"), "not a folder of the repository"),
            (scope("x", "a/.git"), "not a folder of the repository"),
            (
                r#"{"name": "a", "config": "x"}"#.to_owned(),
                "`paths` is missing",
            ),
        ] {
            let error = parse(&format!("{{\"scopes\": [{scopes}]}}")).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(parse("{}").unwrap_err().contains("`scopes` is missing"));
    }

    #[test]
    fn folders() {
        for (text, expected) in [
            (".", None),
            ("./", None),
            ("a/..", None),
            ("./a//b/", Some("a/b")),
            ("a/../b", Some("b")),
        ] {
            assert_eq!(
                folder(text),
                Ok(expected.map(|p| RepoPath::new(p).unwrap())),
                "{text}"
            );
        }
        assert!(folder("a/../..").is_err() && folder("  ").is_err());
    }
}
