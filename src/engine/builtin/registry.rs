//! All built-in rules, and what the configuration makes of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{CheckedFile, Hit, Rule, checks, structural};
use crate::model::{Category, Severity};

/// Every built-in rule, each once.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    checks::rules().chain(structural::RULES)
}

/// What a finding of a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText<'a> {
    /// Severity unless the configuration says otherwise.
    pub severity: Severity,
    /// Category of its findings.
    pub category: Category,
    /// One line: what is wrong.
    pub title: &'a str,
    /// What breaks, for whom, when.
    pub consequence: &'a str,
    /// What to do instead, where the rule says it.
    pub remedy: Option<&'a str>,
}

/// A repository's own rules, compiled.
pub trait ExtraRules: Send + Sync {
    /// What the rule says; `None` for an id that is not one of these rules.
    fn describe(&self, rule: &str) -> Option<RuleText<'_>>;

    /// Runs them on a file; an error says in one line why the file could not be examined.
    fn check(&self, file: &CheckedFile<'_>, sink: &mut dyn FnMut(Hit)) -> Result<(), String>;
}

impl ExtraRules for structural::RepositoryRules {
    fn describe(&self, rule: &str) -> Option<RuleText<'_>> {
        let rule = self.rules().iter().find(|known| known.id == rule)?;
        Some(RuleText {
            severity: rule.severity,
            category: rule.category,
            title: &rule.title,
            consequence: &rule.consequence,
            remedy: None,
        })
    }

    fn check(&self, file: &CheckedFile<'_>, sink: &mut dyn FnMut(Hit)) -> Result<(), String> {
        Self::check(self, file, sink).map_err(|error| format!("not parsed: {error}"))
    }
}

/// Which rules run and how much their findings matter.
#[derive(Clone)]
pub struct CheckSettings {
    /// False switches every check off.
    pub enabled: bool,
    /// Severity by rule id; `None` switches the rule off. Rules that are not named keep their own.
    pub severities: BTreeMap<String, Option<Severity>>,
    /// The repository's own rules.
    pub repository: Option<Arc<dyn ExtraRules>>,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            severities: BTreeMap::new(),
            repository: None,
        }
    }
}

impl fmt::Debug for CheckSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckSettings")
            .field("enabled", &self.enabled)
            .field("severities", &self.severities)
            .field("repository", &self.repository.is_some())
            .finish()
    }
}

impl CheckSettings {
    /// True unless every structural rule is switched off: then no file has to be parsed.
    pub(super) fn any_structural(&self) -> bool {
        structural::RULES
            .iter()
            .any(|rule| self.severities.get(rule.id) != Some(&None))
    }

    /// The text of `rule` with its configured severity; `None` when it is switched off or unknown.
    pub(super) fn text_of<'a>(&'a self, rule: &str) -> Option<RuleText<'a>> {
        let known = rules().find(|r| r.id == rule).map(|r| RuleText {
            severity: r.severity,
            category: r.category,
            title: r.title,
            consequence: r.consequence,
            remedy: Some(r.remedy),
        });
        let text = known.or_else(|| self.repository.as_ref()?.describe(rule))?;
        match self.severities.get(rule) {
            None => Some(text),
            Some(configured) => configured.map(|severity| RuleText { severity, ..text }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::RuleId;

    #[test]
    fn every_entry_is_complete_and_unique() {
        let mut seen = BTreeSet::new();
        for rule in rules() {
            assert!(seen.insert(rule.id), "{} twice", rule.id);
            assert!(RuleId::new(rule.id).is_ok(), "{}", rule.id);
            assert!(
                (10..=120).contains(&rule.title.chars().count()),
                "{}",
                rule.id
            );
            assert!(
                rule.consequence.len() > 40 && rule.consequence.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(rule.consequence.chars().count() <= 600, "{}", rule.id);
            assert!(
                rule.remedy.len() > 10 && rule.remedy.ends_with('.'),
                "{}",
                rule.id
            );
        }
        assert!(seen.len() > 60);
    }

    #[test]
    fn settings_change_and_silence() {
        let mut settings = CheckSettings::default();
        assert_eq!(
            settings.text_of("merge-conflict").unwrap().severity,
            Severity::Critical
        );
        settings
            .severities
            .insert("merge-conflict".into(), Some(Severity::Suggestion));
        settings.severities.insert("large-file".into(), None);
        assert!(settings.any_structural());
        assert_eq!(
            settings.text_of("merge-conflict").unwrap().severity,
            Severity::Suggestion
        );
        assert!(
            settings.text_of("large-file").is_none() && settings.text_of("no-such-rule").is_none()
        );
        let off = structural::RULES.iter().map(|r| (r.id.to_owned(), None));
        settings.severities.extend(off);
        assert!(!settings.any_structural());
    }
}
