//! Reviewers and the coordinator: Markdown files whose front matter says how they run.

use super::diagnostic::{Diagnostic, Source, did_you_mean, listed, quoted};
use super::frontmatter::FrontMatter;
use super::settings::EngineChoice;
use crate::model::{AgentId, ModelId};

/// Ids that the engine uses for roles of its own; no agent file may have one.
pub const RESERVED_IDS: &[&str] = &[
    "cross-cutting",
    "verifier",
    "stack-verifier",
    "coordinator",
    "router",
    "checks",
];

const KEYS: [&str; 5] = ["description", "alwaysRun", "model", "temperature", "engine"];

/// A reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// The file name without `.md`.
    pub id: AgentId,
    /// What it looks for, in a line; empty when not given.
    pub description: String,
    /// It reviews whatever the router thinks.
    pub always_run: bool,
    /// How it is asked.
    pub prompt: Prompt,
}

/// A system prompt and what runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The file it comes from.
    pub origin: String,
    /// The text, with `\n` line ends and without surrounding white space; not empty.
    pub text: String,
    /// The model, after all overrides; `None` when no model is named anywhere.
    pub model: Option<ModelId>,
    /// The sampling temperature, 0 to 2, for engines that take one.
    pub temperature: f64,
    /// The engine, where the file names one.
    pub engine: Option<EngineChoice>,
}

/// What the keys of a front matter say.
struct Keys {
    description: String,
    always_run: bool,
    prompt: Prompt,
}

/// Reads `agents/<name>`; its id is the name without `.md`.
pub(super) fn agent(source: &Source, name: &str, said: &mut Vec<Diagnostic>) -> Option<Agent> {
    let stem = name.strip_suffix(".md").unwrap_or(name);
    let id = match AgentId::new(stem) {
        Ok(id) => Some(id),
        Err(error) => {
            said.push(
                Diagnostic::bare(
                    source.origin(),
                    format!("{} cannot be an agent id", quoted(stem)),
                )
                .with_expected(error.problem)
                .with_help("rename the file"),
            );
            None
        }
    };
    if let Some(role) = RESERVED_IDS.iter().find(|r| r.eq_ignore_ascii_case(stem)) {
        said.push(
            Diagnostic::bare(
                source.origin(),
                format!("`{role}` is a role of the review itself and cannot be an agent"),
            )
            .with_help("rename the file"),
        );
        return None;
    }
    let keys = keys(source, 0.1, said)?;
    Some(Agent {
        id: id?,
        description: keys.description,
        always_run: keys.always_run,
        prompt: keys.prompt,
    })
}

/// Reads `coordinator.md`.
pub(super) fn coordinator(source: &Source, said: &mut Vec<Diagnostic>) -> Option<Prompt> {
    keys(source, 0.0, said).map(|keys| keys.prompt)
}

/// Reads `shared.md`, whose front matter has no meaning.
pub(super) fn shared(source: &Source, said: &mut Vec<Diagnostic>) -> Option<String> {
    match FrontMatter::read(source) {
        Ok(front) => Some(text(front.body)),
        Err(problem) => {
            said.push(problem);
            None
        }
    }
}

fn text(body: &str) -> String {
    body.replace("\r\n", "\n").trim().to_owned()
}

fn keys(source: &Source, temperature: f64, said: &mut Vec<Diagnostic>) -> Option<Keys> {
    let front = match FrontMatter::read(source) {
        Ok(front) => front,
        Err(problem) => {
            said.push(problem);
            return None;
        }
    };
    said.extend(front.warnings.iter().cloned());
    let mut keys = Keys {
        description: String::new(),
        always_run: false,
        prompt: Prompt {
            origin: source.origin().to_owned(),
            text: text(front.body),
            model: None,
            temperature,
            engine: None,
        },
    };
    if keys.prompt.text.is_empty() {
        said.push(
            Diagnostic::bare(source.origin(), "the prompt is empty").with_help(
                "write below the front matter what this reviewer looks for, or delete the file",
            ),
        );
    }
    for (key, value) in &front.values {
        let value = value.trim();
        let expected = match key.as_str() {
            "description" => {
                keys.description = value.split_whitespace().collect::<Vec<_>>().join(" ");
                continue;
            }
            "alwaysRun" => match truth(value) {
                Some(truth) => {
                    keys.always_run = truth;
                    continue;
                }
                None => "expected true or false".to_owned(),
            },
            "model" => match ModelId::new(value) {
                Ok(model) => {
                    keys.prompt.model = Some(model);
                    continue;
                }
                Err(error) => error.problem.to_owned(),
            },
            "temperature" => match value.parse::<f64>() {
                Ok(number) if (0.0..=2.0).contains(&number) => {
                    keys.prompt.temperature = number;
                    continue;
                }
                _ => "expected a number from 0 to 2".to_owned(),
            },
            "engine" => match EngineChoice::from_word(value) {
                Some(engine) => {
                    keys.prompt.engine = Some(engine);
                    continue;
                }
                None => format!(
                    "expected {}",
                    listed(["api", "claude", "codex", "opencode"])
                ),
            },
            unknown => {
                let problem = front
                    .error(
                        unknown,
                        format!(
                            "the key {} has no meaning here and is ignored",
                            quoted(unknown)
                        ),
                    )
                    .as_warning();
                said.push(match did_you_mean(unknown, KEYS) {
                    Some(word) => problem.with_expected(format!("did you mean `{word}`?")),
                    None => problem.with_help(format!("known keys: {}", KEYS.join(", "))),
                });
                continue;
            }
        };
        said.push(
            front
                .error(key, format!("`{key}` cannot be {}", quoted(value)))
                .with_expected(expected),
        );
    }
    Some(keys)
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> (Option<Agent>, Vec<String>) {
        let mut said = Vec::new();
        let agent = agent(&Source::new(name, text), name, &mut said);
        let said = said
            .iter()
            .map(|d| format!("{:?} {} {}", d.level, d.place(), d.message))
            .collect();
        (agent, said)
    }

    #[test]
    fn all_keys() {
        let text = "<!-- note -->\n---\ndescription: a\nalwaysRun: YES\nmodel: a/b\ntemperature: 1\nengine: api\n---\r\nLook.\r\nWell.\n";
        let (agent, said) = read("style.md", text);
        let agent = agent.unwrap();
        assert!(said.is_empty(), "{said:?}");
        assert_eq!(
            (agent.id.as_str(), agent.description.as_str()),
            ("style", "a")
        );
        assert!(agent.always_run);
        assert_eq!(agent.prompt.text, "Look.\nWell.");
        assert_eq!(agent.prompt.model, ModelId::new("a/b").ok());
        assert!((agent.prompt.temperature - 1.0).abs() < f64::EPSILON);
        assert_eq!(agent.prompt.engine, Some(EngineChoice::Api));
    }

    #[test]
    fn defaults_without_front_matter() {
        let (agent, said) = read("style.md", "Look.");
        let agent = agent.unwrap();
        assert!(said.is_empty() && !agent.always_run && agent.description.is_empty());
        assert!((agent.prompt.temperature - 0.1).abs() < f64::EPSILON);
        let coordinator = coordinator(&Source::new("c", "Merge."), &mut Vec::new()).unwrap();
        assert!(coordinator.temperature.abs() < f64::EPSILON);
    }

    #[test]
    fn words_for_always_run() {
        for (word, truth) in [
            ("true", true),
            ("Yes", true),
            ("1", true),
            ("no", false),
            ("FALSE", false),
            ("0", false),
        ] {
            let (agent, said) = read("a.md", &format!("---\nalwaysRun: {word}\n---\nx"));
            assert!(said.is_empty(), "{word}: {said:?}");
            assert_eq!(agent.unwrap().always_run, truth, "{word}");
        }
    }

    #[test]
    fn wrong_values_are_all_named() {
        let text = "---\nalwaysRun: maybe\nmodel: a b\ntemperature: hot\nengine: gemini\ntools: all\nmodle: x\n---\nx";
        let (_, said) = read("a.md", text);
        assert_eq!(
            said,
            [
                "Error a.md:2:1 `alwaysRun` cannot be `maybe`",
                "Error a.md:3:1 `model` cannot be `a b`",
                "Error a.md:4:1 `temperature` cannot be `hot`",
                "Error a.md:5:1 `engine` cannot be `gemini`",
                "Warning a.md:6:1 the key `tools` has no meaning here and is ignored",
                "Warning a.md:7:1 the key `modle` has no meaning here and is ignored",
            ]
        );
    }

    #[test]
    fn ids() {
        for id in RESERVED_IDS {
            assert!(read(&format!("{id}.md"), "x").0.is_none(), "{id}");
        }
        assert!(read("Verifier.md", "x").0.is_none());
        assert!(read("a b.md", "x").0.is_none() && read(".md", "x").0.is_none());
        assert!(!read("empty.md", "---\nmodel: a/b\n---\n \n").1.is_empty());
    }

    #[test]
    fn the_front_matter_of_shared_has_no_meaning() {
        let mut said = Vec::new();
        let source = Source::new("shared.md", "---\nmodel: a b\nx: 1\n---\nRules.\n");
        assert_eq!(shared(&source, &mut said).as_deref(), Some("Rules."));
        assert!(said.is_empty());
    }
}
