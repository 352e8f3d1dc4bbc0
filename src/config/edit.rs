//! Edits of configuration files that keep their comments, and that are checked before anybody writes them.
//!
//! @ref LLP 0018#edits-keep-comments — the syntax tree is edited, never the text searched

use jsonc_parser::cst::{CstInputValue, CstRootNode};

use super::auth::{is_forbidden, key_env};
use super::diagnostic::{ConfigErrors, Diagnostic, Source};
use super::jsonc::strict;
use super::resolve::parse_config;
use super::roster;
use super::routing::{RoutingManifest, folder, parse_routing};
use crate::model::{RepoPath, ScopeName};

/// A scope to be added to a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewScope {
    /// Made of the folder's name.
    pub name: ScopeName,
    /// The folder, which has the scope's setup folder in it.
    pub folder: RepoPath,
}

/// A credential of a fresh configuration: which variable is sent to which provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCredential {
    /// The variable's name.
    pub variable: String,
    /// The provider id of the entry.
    pub provider: String,
    /// The provider that `provider` is another name for.
    pub upstream: Option<String>,
    /// True when the variable's name says which provider it belongs to, false when that was assumed.
    pub certain: bool,
}

impl NewScope {
    /// The scope of a folder as a person writes it, from the root of the repository. The error is one sentence.
    pub fn of(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} cannot be a scope: {why}");
        // `a/../b` names a folder of the repository too, but nobody writes it for a good reason.
        if text.split('/').any(|part| part == "..") {
            return Err(wrong("`..` is not allowed"));
        }
        let folder = match folder(text) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Err(wrong("it is the root, which the setup folder there covers")),
            Err(()) => return Err(wrong("it is not a folder of the repository")),
        };
        let Some(plain) = folder.as_str() else {
            return Err(wrong("it is not UTF-8"));
        };
        if plain.chars().any(char::is_control) {
            return Err(wrong("it holds a control character"));
        }
        if plain.contains('*') {
            return Err(wrong("`*` in a path is a wildcard"));
        }
        let name = scope_name(plain);
        let name = ScopeName::new(&name)
            .map_err(|error| wrong(&format!("no name can be made of it ({error})")))?;
        Ok(Self { name, folder })
    }

    fn input(&self) -> CstInputValue {
        let folder = self.folder.to_lossy();
        let text = CstInputValue::String;
        CstInputValue::Object(vec![
            ("name".to_owned(), text(self.name.to_string())),
            (
                "paths".to_owned(),
                CstInputValue::Array(vec![text(format!("{folder}/**"))]),
            ),
            ("config".to_owned(), text(folder)),
        ])
    }
}

/// `Apps/My API` is `apps-my-api`.
fn scope_name(folder: &str) -> String {
    let mut name = String::new();
    for c in folder.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The manifest with the scope added behind the others, comments and layout kept; `None` when its folder is a scope
/// already. The result has been read back: it holds what it held before, and the scope.
pub fn add_scope(source: &Source, scope: &NewScope) -> Result<Option<String>, ConfigErrors> {
    let (before, _) = parse_routing(source)?;
    let has_folder = |scope: &super::Scope, folder: &RepoPath| scope.config.as_ref() == Some(folder);
    if before.scopes.iter().any(|s| has_folder(s, &scope.folder)) {
        return Ok(None);
    }
    if let Some(other) = before.scopes.iter().find(|s| s.name == scope.name) {
        let place = other.config.as_ref().map_or_else(|| ".".to_owned(), RepoPath::to_lossy);
        return Err(Diagnostic::bare(
            source.origin(),
            format!("there is already a scope `{}`, of the folder `{place}`", scope.name),
        )
        .with_help("give that scope another name in the manifest, then run this again")
        .into());
    }
    let failed = |what: &str| {
        ConfigErrors::from(
            Diagnostic::bare(source.origin(), format!("the scope cannot be added: {what}"))
                .with_help("add it to `scopes` by hand"),
        )
    };
    let root = CstRootNode::parse(source.text(), &strict())
        .map_err(|error| failed(&error.to_string()))?;
    let scopes = root
        .object_value()
        .and_then(|object| object.array_value("scopes"))
        .ok_or_else(|| failed("there is no list `scopes`"))?;
    scopes.ensure_multiline();
    scopes.append(scope.input());
    let text = root.to_string();

    let (after, _) = parse_routing(&Source::new(source.origin(), &text))?;
    let kept = RoutingManifest {
        scopes: after.scopes.get(..before.scopes.len()).unwrap_or_default().to_vec(),
        ..after.clone()
    };
    let added = after.scopes.last().is_some_and(|last| has_folder(last, &scope.folder));
    if kept != before || !added || after.scopes.len() != before.scopes.len() + 1 {
        return Err(failed("the edited manifest does not say what it should"));
    }
    Ok(Some(text))
}

/// Reads a comma-separated list of variables that are to hold credentials. The error is one sentence.
pub fn credentials(names: &[String]) -> Result<Vec<NewCredential>, String> {
    let mut found: Vec<NewCredential> = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.chars().all(upper) {
            return Err(format!(
                "{name:?} is not the name of a variable: write UPPER_SNAKE_CASE, never the key itself"
            ));
        }
        if is_forbidden(name) {
            return Err(format!(
                "{name} never holds a model credential, so it is not sent to a model provider"
            ));
        }
        if found.iter().any(|other| other.variable == name) {
            return Err(format!("{name} is a duplicate"));
        }
        let (provider, certain) = owner(name);
        let taken = found
            .iter()
            .filter(|other| other.upstream.as_deref().unwrap_or(&other.provider) == provider)
            .count();
        let (id, upstream) = match taken {
            0 => (provider.to_owned(), None),
            // One provider with two credentials needs a second name for it.
            taken => (format!("{provider}-{}", taken + 1), Some(provider.to_owned())),
        };
        found.push(NewCredential {
            variable: name.to_owned(),
            provider: id,
            upstream,
            certain,
        });
    }
    Ok(found)
}

/// The provider whose key a variable holds, as far as its name tells; `anthropic` when it tells nothing.
fn owner(variable: &str) -> (&'static str, bool) {
    const WORDS: [(&str, &str); 7] = [
        ("ANTHROPIC", "anthropic"),
        ("CLAUDE", "anthropic"),
        ("OPENROUTER", "openrouter"),
        ("OPENAI", "openai"),
        ("CODEX", "openai"),
        ("GEMINI", "google"),
        ("GOOGLE", "google"),
    ];
    WORDS
        .iter()
        .find(|(word, provider)| variable.contains(word) || key_env(provider) == Some(variable))
        .map_or(("anthropic", false), |(_, provider)| (provider, true))
}

/// The embedded `config.jsonc` with these credentials, each served by ecr's own engine, so that a job has nothing
/// else to install. The result has been read back.
pub fn fresh_config(credentials: &[NewCredential]) -> Result<String, ConfigErrors> {
    let text = roster::FILES
        .iter()
        .find(|(name, _)| *name == "config.jsonc")
        .map_or("", |(_, text)| *text);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let bare = line.trim_start();
        if !credentials.is_empty() && bare.starts_with("// e.g. \"auth\":") {
            lines.push(auth_block(credentials));
        } else if !credentials.is_empty() && bare.starts_with("// \"engines\":") {
            lines.push("  // `api` is ecr's own: a job has to install nothing else.".to_owned());
            lines.push(engines_line(credentials));
        } else {
            lines.push(line.to_owned());
        }
    }
    let text = lines.join("\n") + "\n";
    let (config, _) = parse_config(&Source::new("config.jsonc", &text))?;
    let declared = config.auth.iter().filter_map(|entry| entry.token_env.as_deref());
    let mut declared: Vec<_> = declared.collect();
    let mut wanted: Vec<_> = credentials.iter().map(|c| c.variable.as_str()).collect();
    declared.sort_unstable();
    wanted.sort_unstable();
    let served = credentials.iter().all(|c| {
        is_subscription(&c.variable) || config.engines.contains_key(&c.provider)
    });
    if declared != wanted || !served {
        return Err(Diagnostic::bare(
            "config.jsonc",
            "the embedded template has no place for credentials; this is a bug in ecr",
        )
        .into());
    }
    Ok(text)
}

/// The token of a subscription, which only the provider's own tool may use.
fn is_subscription(variable: &str) -> bool {
    variable == "CLAUDE_CODE_OAUTH_TOKEN"
}

fn auth_block(credentials: &[NewCredential]) -> String {
    let entries: Vec<_> = credentials
        .iter()
        .map(|credential| {
            let mode = if is_subscription(&credential.variable) {
                "oauth"
            } else {
                "api-key"
            };
            let upstream = credential
                .upstream
                .as_ref()
                .map_or_else(String::new, |id| format!(", \"upstream\": \"{id}\""));
            format!(
                "      \"{}\": {{ \"mode\": \"{mode}\", \"tokenEnv\": \"{}\"{upstream} }},",
                credential.provider, credential.variable
            )
        })
        .collect();
    format!("  \"auth\": {{\n    \"providers\": {{\n{}\n    }},\n  }},", entries.join("\n"))
}

fn engines_line(credentials: &[NewCredential]) -> String {
    let entries: Vec<_> = credentials
        .iter()
        .filter(|credential| !is_subscription(&credential.variable))
        .map(|credential| format!("\"{}\": \"api\"", credential.provider))
        .collect();
    format!("  \"engines\": {{ {} }},", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "{\n  // \"scopes\": [ a comment may say anything ]\n  \"scopes\": [\n    // the rest\n    { \"name\": \"default\", \"paths\": [\"**/*\"], \"config\": \".\" } // last\n  ],\n}\n";

    fn add(text: &str, folder: &str) -> Result<Option<String>, String> {
        let scope = NewScope::of(folder)?;
        add_scope(&Source::new("routing.jsonc", text), &scope).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scope_is_added_behind_the_others_and_comments_stay() {
        let text = add(MANIFEST, "apps/web/").unwrap().unwrap();
        for kept in ["// \"scopes\": [ a comment", "// the rest", "// last"] {
            assert!(text.contains(kept), "{text}");
        }
        let (manifest, _) = parse_routing(&Source::new("r", &text)).unwrap();
        let last = manifest.scopes.last().unwrap();
        assert_eq!(last.name.as_str(), "apps-web");
        assert_eq!(last.paths, ["apps/web/**"]);
        assert_eq!(add(&text, "./apps//web"), Ok(None), "a second time changes nothing");
        let more = add(&text, "apps/api").unwrap().unwrap();
        assert_eq!(more.matches("\"name\"").count(), 3, "{more}");
    }

    #[test]
    fn line_ends_and_one_line_manifests_survive() {
        let crlf = MANIFEST.replace('\n', "\r\n");
        let text = add(&crlf, "a").unwrap().unwrap();
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
        let one = "{\"scopes\":[{\"name\":\"default\",\"paths\":[\"**/*\"],\"config\":\".\"},]}";
        assert!(add(one, "a").unwrap().is_some());
    }

    #[test]
    fn what_cannot_be_a_scope_is_refused() {
        for (folder, why) in [
            ("../x", "`..`"),
            ("a/../../x", "`..`"),
            ("/abs", "not a folder of the repository"),
            (".", "it is the root"),
            ("a/.git", "not a folder of the repository"),
            ("a*b", "wildcard"),
            ("é", "no name"),
            ("a\u{7}", "control character"),
        ] {
            let error = add(MANIFEST, folder).unwrap_err();
            assert!(error.contains(why), "{folder}: {error}");
        }
        let clash = add(MANIFEST, "default").unwrap_err();
        assert!(clash.contains("already a scope `default`"), "{clash}");
        assert!(add("{ \"comment\": \"single\" }", "a").unwrap_err().contains("`scopes` is missing"));
    }

    #[test]
    fn names_of_credentials() {
        let parse = |text: &str| {
            let names: Vec<_> = text.split(',').map(str::to_owned).collect();
            credentials(&names)
        };
        let ids = |text: &str| -> Vec<String> {
            parse(text).unwrap().into_iter().map(|c| c.provider).collect()
        };
        assert_eq!(ids("A_TOKEN, B_TOKEN"), ["anthropic", "anthropic-2"]);
        assert_eq!(ids("OPENAI_API_KEY,TEAM_CLAUDE_KEY"), ["openai", "anthropic"]);
        assert!(!parse("A_TOKEN").unwrap()[0].certain);
        for (bad, why) in [
            ("lower_case", "UPPER_SNAKE_CASE"),
            ("sk-ant-123", "never the key itself"),
            ("", "UPPER_SNAKE_CASE"),
            ("A_TOKEN,A_TOKEN", "duplicate"),
            ("GITHUB_TOKEN", "never holds a model credential"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_fresh_configuration_has_its_credentials_and_engines() {
        let names = |list: &[&str]| {
            let list: Vec<_> = list.iter().map(|n| (*n).to_owned()).collect();
            credentials(&list).unwrap()
        };
        let text = fresh_config(&names(&["OPENAI_API_KEY", "A_KEY", "B_KEY"])).unwrap();
        let (config, _) = parse_config(&Source::new("c", &text)).unwrap();
        assert_eq!(config.auth.len(), 3);
        assert_eq!(config.engines.len(), 3);
        assert!(text.contains("// \"includeSuggestions\": false"), "comments stay: {text}");
        let text = fresh_config(&names(&["CLAUDE_CODE_OAUTH_TOKEN"])).unwrap();
        let (config, _) = parse_config(&Source::new("c", &text)).unwrap();
        assert!(config.engines.is_empty() && text.contains("\"oauth\""));
        let plain = fresh_config(&[]).unwrap();
        assert_eq!(plain, include_str!("../../templates/setup/config.jsonc"));
    }
}
