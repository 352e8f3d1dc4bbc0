//! The self-test of the jar with a tool of our own making, which is bash: an honest one, and some that are not.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ecr::engine::cli::{
    Activity, CliDialect, CliFacts, CliSettings, EventReader, Exit, Installed, Launch, PassFacts,
    Refused, RehearsalFacts, Rehearsals, Said, Standing, Version, examine,
};
use ecr::gateway::{FinalStyle, Protocol};
use ecr::port::EngineError;
use ecr::process::sandbox::{Level, probe};
use serde_json::json;

use crate::support::skip::skipped;

/// A conversation over `/dev/tcp`: a model call, what the model asks for, and `finish`.
const SCRIPT: &str = r#"
post() {
  exec 3<>"/dev/tcp/127.0.0.1/$PORT" || exit 9
  printf 'POST %s HTTP/1.1\r\nhost: 127.0.0.1:%s\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: %s\r\n\r\n%s' "$1" "$PORT" "$TOKEN" "${#2}" "$2" >&3
  GOT=""
  while IFS= read -r line <&3 || [ -n "$line" ]; do GOT+="$line"; done
  exec 3>&-
}
tool() { post /mcp '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"'"$1"'","arguments":'"$2"'}}'; }
say() { post /v1/messages '{"model":"m","max_tokens":10,"tools":'"$TOOLS"',"messages":[{"role":"user","content":"'"$1"'"}]}'; }
[ "$MODE" = silent ] && exit 0
[ "$MODE" = stuck ] && { while :; do read -t 1 x <> <(:); done; }
say hello
stolen=""
if [[ $GOT =~ \"file_path\":\"([^\"]+)\" ]]; then stolen=$(<"${BASH_REMATCH[1]}"); fi
[ "$MODE" = deaf ] || tool read '{"path":"stage.txt"}'
heard=${GOT//[\"\\]/}; heard=${heard//$'\r'/}
[ "$MODE" = deaf ] && heard=""
say "$heard $stolen"
tool finish '{"examined":["stage.txt"]}'
exit 0
"#;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Honest,
    /// Its jar is too wide, and it does what the model asks.
    Leaky,
    /// It offers a tool of its own.
    More,
    /// It does not give the model the answers of its tools.
    Deaf,
    /// It says that all is well, and asks no model.
    Silent,
    /// It never ends.
    Stuck,
}

struct Fake {
    mode: Mode,
    facts: &'static CliFacts,
}

impl Fake {
    fn of(mode: Mode, flags: &'static [&'static str]) -> Arc<dyn CliDialect> {
        let facts = CliFacts {
            name: "fake",
            title: "Fake",
            program: "bash",
            install: "install a good one",
            packages: &[],
            tested: (Version(0, 0, 1), Version(0, 0, 1)),
            least: (Version(0, 0, 0), ""),
            help: &["--help"],
            flags,
            style: FinalStyle::Claude,
            spelling: str::to_owned,
            also_offered: &[],
            also_offered_with_schema: &[],
            rehearsal: RehearsalFacts {
                protocol: Protocol::AnthropicMessages,
                model: "m",
                tools: &["Bash", "Read"],
            },
            at_once: 1,
            structured_output: false,
            policy: &[],
            plan: None,
        };
        Arc::new(Self {
            mode,
            facts: Box::leak(Box::new(facts)),
        })
    }
}

struct Reader;

impl EventReader for Reader {
    fn line(&mut self, _line: &[u8], _cut: bool) -> Option<Activity> {
        None
    }

    fn said(&mut self, _exit: Exit<'_>) -> Said {
        Said::Text("All is well.".to_owned())
    }
}

impl CliDialect for Fake {
    fn facts(&self) -> &'static CliFacts {
        self.facts
    }

    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError> {
        let mut tools: Vec<_> = pass.tools.iter().map(String::as_str).collect();
        if self.mode == Mode::More {
            tools.push("Bash");
        }
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| json!({"name": tool, "input_schema": {"type": "object"}}))
            .collect();
        let mode = match self.mode {
            Mode::Honest | Mode::Leaky | Mode::More => "honest",
            Mode::Deaf => "deaf",
            Mode::Silent => "silent",
            Mode::Stuck => "stuck",
        };
        let env = [
            ("LC_ALL", "C".to_owned()),
            ("PORT", pass.doors.port().to_string()),
            ("TOKEN", pass.placeholder.expose().clone()),
            ("TOOLS", json!(tools).to_string()),
            ("MODE", mode.to_owned()),
        ];
        Ok(Launch {
            args: vec!["-c".into(), SCRIPT.into()],
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            read: if self.mode == Mode::Leaky {
                vec![std::env::temp_dir()]
            } else {
                Vec::new()
            },
            ..Launch::default()
        })
    }

    fn reader(&self, _pass: &PassFacts<'_>) -> Box<dyn EventReader> {
        Box::new(Reader)
    }
}

fn settings(folder: Option<PathBuf>, time: Duration) -> CliSettings {
    CliSettings {
        search: std::env::var_os("PATH").unwrap_or_default(),
        reviewed: Vec::new(),
        require: Level::Full,
        rehearsals: Rehearsals { folder, time },
    }
}

async fn look(mode: Mode, time: Duration) -> Result<Installed, Refused> {
    examine(&Fake::of(mode, &["--norc"]), &settings(None, time)).await
}

fn has_jar() -> bool {
    let has = probe().level == Level::Full;
    if !has {
        skipped("the jar is not complete on this machine");
    }
    has
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_tool_is_held_by_the_jar() {
    if !has_jar() {
        return;
    }
    let installed = look(Mode::Honest, LONG).await.unwrap();
    assert_eq!(installed.standing, Standing::Rehearsed);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_gets_out_or_does_not_come_back_refuses_the_tool() {
    if !has_jar() {
        return;
    }
    for (mode, time, words) in [
        (Mode::Leaky, LONG, "a file outside of the jar was read"),
        // The model door refuses it, so the script was never played.
        (Mode::More, LONG, "did not reach the model"),
        (Mode::Deaf, LONG, "did not reach the model"),
        (Mode::Silent, LONG, "the scripted pass failed"),
        (Mode::Stuck, Duration::from_secs(1), "did not end in time"),
    ] {
        let refused = look(mode, time).await.unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("the self-test of the jar failed"), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(said.contains("install a good one"), "{said}");
        assert!(refused.path.is_some() && refused.version.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_found_out_is_remembered() {
    if !has_jar() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let count = || std::fs::read_dir(state.path()).unwrap().count();
    let with = |time| settings(Some(state.path().to_owned()), time);
    // Too slow this time says nothing about the next.
    let stuck = Fake::of(Mode::Stuck, &[]);
    assert!(
        examine(&stuck, &with(Duration::from_secs(1)))
            .await
            .is_err()
    );
    assert_eq!(count(), 0);
    let leaky = Fake::of(Mode::Leaky, &[]);
    assert!(examine(&leaky, &with(LONG)).await.is_err());
    assert_eq!(count(), 1);
    // The program is the same, so nobody asks the honest one.
    let honest = Fake::of(Mode::Honest, &[]);
    let refused = examine(&honest, &with(LONG)).await.unwrap_err();
    assert!(refused.why.contains("was read"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_flags_it_is_not_even_rehearsed() {
    let fake = Fake::of(Mode::Honest, &["--norc", "--no-such-flag"]);
    let refused = examine(&fake, &settings(None, LONG)).await.unwrap_err();
    assert!(
        refused.why.contains("does not know --no-such-flag"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_wide_policy_refuses_the_tool() {
    let place = tempfile::tempdir().unwrap();
    let path: &'static str = Box::leak(place.path().to_str().unwrap().to_owned().into_boxed_str());
    let policy: &'static [&'static str] = Box::leak(Box::new([path]));
    let fake = Fake::of(Mode::Honest, &[]);
    let facts = CliFacts {
        policy,
        tested: (Version(0, 0, 0), Version(999, 0, 0)),
        ..*fake.facts()
    };
    let fake: Arc<dyn CliDialect> = Arc::new(Fake {
        mode: Mode::Honest,
        facts: Box::leak(Box::new(facts)),
    });
    // An empty folder is no policy.
    let found = examine(&fake, &settings(None, LONG)).await.unwrap();
    assert_eq!(found.standing, Standing::Tested);
    std::fs::write(place.path().join("managed-settings.json"), "{}").unwrap();
    let refused = examine(&fake, &settings(None, LONG)).await.unwrap_err();
    assert!(refused.why.contains(path), "{refused}");
    assert!(refused.next.contains("`api`"), "{refused}");
}
