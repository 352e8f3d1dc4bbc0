//! The self-test of the jar with the real tools, their tested versions taken for unknown ones.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use ecr::engine::cli::{
    CliDialect, CliFacts, CliSettings, EventReader, Launch, PassFacts, Rehearsals, Standing,
    Version, examine,
};
use ecr::port::EngineError;
use ecr::process::sandbox::{Level, probe};

use super::Subject;
use super::install::installed;
use super::rig::room;

/// The dialect, without a tested version.
struct Unknown {
    dialect: Arc<dyn CliDialect>,
    facts: &'static CliFacts,
}

impl Unknown {
    fn of(subject: &Subject) -> Arc<dyn CliDialect> {
        let dialect = (subject.dialect)();
        let facts = CliFacts {
            tested: (Version(0, 0, 1), Version(0, 0, 2)),
            least: (Version(0, 0, 0), "any will do"),
            ..*dialect.facts()
        };
        Arc::new(Self {
            dialect,
            facts: Box::leak(Box::new(facts)),
        })
    }
}

impl CliDialect for Unknown {
    fn facts(&self) -> &'static CliFacts {
        self.facts
    }

    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError> {
        self.dialect.launch(pass)
    }

    fn reader(&self, pass: &PassFacts<'_>) -> Box<dyn EventReader> {
        self.dialect.reader(pass)
    }
}

pub(super) async fn a_version_that_was_not_tested_is_rehearsed_once(subject: &'static Subject) {
    let Some(search) = installed(subject) else {
        return;
    };
    if probe().level < Level::Full {
        return crate::support::skip::skipped("the jar is not complete on this machine");
    }
    let _room = room().await;
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("rehearsals");
    let settings = CliSettings {
        search: OsString::from(search),
        reviewed: Vec::new(),
        require: Level::Full,
        rehearsals: Rehearsals {
            folder: Some(folder.clone()),
            // A busy machine is not what this is about.
            time: Duration::from_secs(60),
        },
    };
    let dialect = Unknown::of(subject);
    let found = examine(&dialect, &settings).await.unwrap();
    assert_eq!(found.standing, Standing::Rehearsed);

    // What is remembered decides the next time.
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    assert!(text.contains(subject.version), "{text}");
    assert!(!text.contains("failed"), "{text}");
    let failed = text.replace(
        "\"version\": 1",
        "\"version\": 1, \"failed\": \"it wrote outside of the jar\"",
    );
    std::fs::write(files[0].path(), failed).unwrap();
    let refused = examine(&dialect, &settings).await.unwrap_err();
    assert_eq!(refused.path.as_deref(), Some(found.binary.target()));
    let words = refused.to_string();
    for part in [
        subject.version,
        "self-test of the jar failed: it wrote outside of the jar",
        dialect.facts().install,
    ] {
        assert!(words.contains(part), "{words}");
    }
}
