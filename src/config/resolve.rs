//! From the file as written to the configuration as it holds.

use std::collections::BTreeMap;

use super::auth::{AuthEntry, normalise};
use super::check::Refusal;
use super::diagnostic::{ConfigErrors, Diagnostic, Source};
use super::jsonc::{Document, read};
use super::raw::{RawAuth, RawConfig};
use super::schema;
use super::settings::{Checks, Chunk, Noise, Policy, ReviewConfig, ReviewGate, Verify};
use crate::diff::glob::Glob;
use crate::model::{ModelId, RuleId};

/// Why a scope's configuration may not have a key that the root's has.
const ROOT_LOCKED: &[Refusal] = &[
    (
        "auth",
        "which credentials are used is for the whole repository",
    ),
    (
        "breakGlass",
        "how a review is stopped is for the whole repository",
    ),
    (
        "commentTag",
        "the comment is shared; a scope's tag is made from the root's",
    ),
    ("engines", "which engines run is for the whole repository"),
    ("feedback", "how replies count is for the whole repository"),
    ("inline", "inline comments are for the whole pull request"),
    (
        "jev",
        "a third party that code is sent to is for the whole repository",
    ),
    ("login", "which logins are used is for the whole repository"),
    (
        "policy.maxCostUsd",
        "the spending limit is for the whole review",
    ),
    ("prices", "prices are for the whole repository"),
    (
        "research",
        "what leaves the machine is for the whole repository",
    ),
    (
        "sandbox",
        "how engines are confined is for the whole repository",
    ),
    (
        "send",
        "what leaves the machine is for the whole repository",
    ),
    ("stack", "the stack is one for the whole pull request"),
];

/// Reads a root `config.jsonc`. The second value is the warnings.
pub fn parse_config(source: &Source) -> Result<(ReviewConfig, Vec<Diagnostic>), ConfigErrors> {
    parse(source, None)
}

/// Reads a scope's `config.jsonc` over the root's configuration, which decides all that is locked to it.
pub fn parse_scope(
    source: &Source,
    root: &ReviewConfig,
) -> Result<(ReviewConfig, Vec<Diagnostic>), ConfigErrors> {
    parse(source, Some(root))
}

fn parse(
    source: &Source,
    root: Option<&ReviewConfig>,
) -> Result<(ReviewConfig, Vec<Diagnostic>), ConfigErrors> {
    let locked = if root.is_some() { ROOT_LOCKED } else { &[] };
    let mut document: Document<'_, RawConfig> =
        read(source, schema::config_ref(), locked).map_err(ConfigErrors::all)?;
    let raw = std::mem::take(&mut document.value);
    let mut said = ignored(&document, &raw, root.is_some());

    let defaults = ReviewConfig::default();
    let mut config = match root {
        // What a scope may not declare comes from the root; what it may starts at the defaults again.
        Some(root) => ReviewConfig {
            policy: Policy {
                max_cost_usd: root.policy.max_cost_usd,
                ..defaults.policy
            },
            chunk: defaults.chunk,
            noise: defaults.noise,
            verify: defaults.verify,
            checks: defaults.checks,
            ..root.clone()
        },
        None => defaults,
    };
    if let Some(model) = &raw.model {
        match ModelId::new(model) {
            Ok(model) => config.model = Some(model),
            Err(error) => said.push(document.error(&["model"], error.to_string())),
        }
    }
    shared(&mut config, &raw);
    globs(
        &document,
        ["noise", "additionalIgnores"],
        &config.noise.additional_ignores,
        &mut said,
    );
    if let Some(checks) = raw.checks {
        config.checks = self::checks(&document, checks.enabled, checks.rules, &mut said);
    }
    if root.is_none() {
        config.auth = auth(&document, &["auth"], raw.auth, &mut said);
        config.engines = raw.engines.unwrap_or_default();
        config.prices = raw.prices.unwrap_or_default();
        let set = |slot: &mut String, value: Option<String>| {
            if let Some(value) = value {
                *slot = value;
            }
        };
        set(
            &mut config.break_glass_marker,
            raw.break_glass.and_then(|b| b.marker),
        );
        set(&mut config.comment_tag, raw.comment_tag);
        if let Some(review) = raw.review {
            let gate: &mut ReviewGate = &mut config.review;
            gate.trigger = review.trigger.unwrap_or(gate.trigger);
            gate.drafts = review.drafts.unwrap_or(gate.drafts);
            set(&mut gate.label, review.label);
            set(&mut gate.skip_label, review.skip_label);
        }
        config.sandbox_require = raw
            .sandbox
            .and_then(|s| s.require)
            .unwrap_or(config.sandbox_require);
        config.login_allow = raw
            .login
            .and_then(|l| l.allow)
            .unwrap_or(config.login_allow);
        config.send_never = raw.send.and_then(|s| s.never).unwrap_or_default();
        globs(&document, ["send", "never"], &config.send_never, &mut said);
        config.runs_kept = raw.runs.and_then(|r| r.keep).unwrap_or(config.runs_kept);
    }
    Ok((config, ConfigErrors::check(said)?))
}

/// The keys that mean the same in the root's and in a scope's file.
fn shared(config: &mut ReviewConfig, raw: &RawConfig) {
    if let Some(policy) = &raw.policy {
        config.policy = Policy {
            include_suggestions: policy.include_suggestions.unwrap_or_default(),
            max_findings: policy.max_findings,
            max_cost_usd: policy.max_cost_usd.or(config.policy.max_cost_usd),
        };
    }
    if let Some(chunk) = &raw.chunk {
        config.chunk = Chunk {
            max_changed_lines: chunk
                .max_changed_lines
                .unwrap_or(config.chunk.max_changed_lines),
            max_files: chunk.max_files.unwrap_or(config.chunk.max_files),
            concurrency: chunk.concurrency,
        };
    }
    if let Some(noise) = &raw.noise {
        config.noise = Noise {
            additional_ignores: noise.additional_ignores.clone().unwrap_or_default(),
            additional_markers: noise.additional_markers.clone().unwrap_or_default(),
        };
    }
    if let Some(verify) = &raw.verify {
        config.verify = Verify {
            scope: verify.scope.unwrap_or(config.verify.scope),
            parallel: verify.parallel.unwrap_or(config.verify.parallel),
        };
    }
}

/// Says what is wrong with patterns where they stand: whoever uses them later knows no line.
fn globs(
    document: &Document<'_, RawConfig>,
    [section, key]: [&str; 2],
    patterns: &[String],
    said: &mut Vec<Diagnostic>,
) {
    for (at, pattern) in patterns.iter().enumerate() {
        if let Err(error) = Glob::new(pattern) {
            let path = [section, key, &at.to_string()];
            said.push(document.error(&path, error.to_string()));
        }
    }
}

fn checks(
    document: &Document<'_, RawConfig>,
    enabled: Option<bool>,
    levels: Option<BTreeMap<String, super::settings::RuleLevel>>,
    said: &mut Vec<Diagnostic>,
) -> Checks {
    let mut rules = BTreeMap::new();
    for (id, level) in levels.unwrap_or_default() {
        match RuleId::new(&id) {
            Ok(rule) => {
                rules.insert(rule, level);
            }
            Err(error) => said.push(document.error(&["checks", "rules", &id], error.to_string())),
        }
    }
    Checks {
        enabled: enabled.unwrap_or(true),
        rules,
    }
}

/// The normalised entries of the `auth` object at `path`; each problem is added to `said`.
pub(super) fn auth<T>(
    document: &Document<'_, T>,
    path: &[&str],
    raw: Option<RawAuth>,
    said: &mut Vec<Diagnostic>,
) -> Vec<AuthEntry> {
    let entries = match raw.map(normalise).transpose() {
        Ok(entries) => entries.unwrap_or_default(),
        Err(error) => {
            said.push(document.error(path, error.to_string()));
            return Vec::new();
        }
    };
    for (below, entry) in &entries {
        if let Some(problem) = entry.problem() {
            let mut place = path.to_vec();
            place.extend(below.iter().map(String::as_str));
            place.push(problem.field);
            said.push(
                document
                    .error(&place, problem.message)
                    .with_help(problem.help),
            );
        }
    }
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// One warning for every key that is accepted and has no effect.
fn ignored(document: &Document<'_, RawConfig>, raw: &RawConfig, is_scope: bool) -> Vec<Diagnostic> {
    let later = [
        ("stack", raw.stack.is_some()),
        ("feedback", raw.feedback.is_some()),
        ("inline", raw.inline.is_some()),
        ("research", raw.research.is_some()),
        ("jev", raw.jev.is_some()),
    ]
    .map(|(key, present)| (key, present, "ecr does not have this feature yet"));
    let root_only = [
        ("review", is_scope && raw.review.is_some()),
        ("runs", is_scope && raw.runs.is_some()),
    ]
    .map(|(key, present)| (key, present, "only the root configuration's counts"));
    later
        .into_iter()
        .chain(root_only)
        .filter(|(_, present, _)| *present)
        .map(|(key, _, why)| {
            document
                .error(&[key], format!("`{key}` is ignored: {why}"))
                .as_warning()
        })
        .collect()
}
