//! The engines: what is installed, and whether it may be started.

use std::path::PathBuf;

use super::{Notes, shown};
use crate::app::engines::{self, Confinement};
use crate::app::{AppError, Environment};
use crate::config::EngineChoice;
use crate::engine::cli::{self, CliFacts, CliSettings, Refused};
use crate::process::sandbox::Level;
use crate::state::doctor::{Area, Engine, Standing};

const CHOICES: [EngineChoice; 4] = [
    EngineChoice::Api,
    EngineChoice::Claude,
    EngineChoice::Codex,
    EngineChoice::Opencode,
];

/// Every engine, in the order in which people look for them.
pub(super) async fn rows(
    environment: &Environment,
    reviewed: &[PathBuf],
    require: Level,
    in_use: &dyn Fn(EngineChoice) -> bool,
    notes: &mut Notes,
) -> Vec<Engine> {
    let confinement = Confinement {
        reviewed: reviewed.to_vec(),
        require,
    };
    let settings = engines::cli_settings(environment, &confinement);
    let mut rows = Vec::new();
    for choice in CHOICES {
        let row = row(choice, &settings, in_use(choice)).await;
        if let (true, Some(why)) = (row.needed, &row.problem) {
            let own =
                "serve its models with ecr's own engine: \"engines\": { \"<provider>\": \"api\" }";
            let next = match &row.next {
                Some(next) => format!("{next}, or {own}"),
                None => own.to_owned(),
            };
            notes.problem(Area::Engine, AppError::new(why.clone(), next));
        }
        rows.push(row);
    }
    rows
}

async fn row(choice: EngineChoice, settings: &CliSettings, needed: bool) -> Engine {
    let Some(dialect) = engines::dialect(choice) else {
        return Engine {
            id: choice.word().to_owned(),
            title: "ecr's own engine".to_owned(),
            needed,
            standing: Standing::BuiltIn,
            path: None,
            version: None,
            sha256: None,
            tested: None,
            policy: Vec::new(),
            problem: None,
            next: None,
        };
    };
    let bare = bare(dialect.facts(), needed);
    match cli::examine(&dialect, settings).await {
        Ok(installed) => Engine {
            standing: match installed.standing {
                cli::Standing::Tested => Standing::Tested,
                cli::Standing::Rehearsed => Standing::Rehearsed,
            },
            path: Some(shown(installed.binary.target())),
            version: Some(installed.version.to_string()),
            sha256: Some(cli::hex(&installed.binary.sha256())),
            ..bare
        },
        Err(refused) => with_refusal(bare, refused),
    }
}

fn bare(facts: &CliFacts, needed: bool) -> Engine {
    let (first, last) = facts.tested;
    let policy = cli::policy_files(facts);
    Engine {
        id: facts.name.to_owned(),
        title: facts.title.to_owned(),
        needed,
        standing: Standing::NotInstalled,
        path: None,
        version: None,
        sha256: None,
        tested: Some([first.to_string(), last.to_string()]),
        policy: policy.iter().map(|file| shown(file)).collect(),
        problem: None,
        next: None,
    }
}

fn with_refusal(bare: Engine, refused: Refused) -> Engine {
    Engine {
        standing: if refused.path.is_some() {
            Standing::Refused
        } else {
            Standing::NotInstalled
        },
        path: refused.path.as_deref().map(shown),
        version: refused.version.map(|version| version.to_string()),
        sha256: refused.sha256.map(|hash| cli::hex(&hash)),
        problem: Some(refused.why),
        next: Some(refused.next),
        ..bare
    }
}
