//! Authors who try, runs that overlap, and jobs that are killed.

use serde_json::json;

use super::rig::{CLEAN, Ran, Rig, WARNING, pull_request, token};
use crate::support::github::{Actor, Fault, FaultKind};

fn ci(rig: &Rig) -> Ran {
    rig.run(&mut rig.command(&["ci"], "pull_request", &pull_request("synchronize")))
}

fn ours(rig: &Rig) -> Vec<String> {
    let world = rig.github.world();
    let bots = world.comments.iter().filter(|c| {
        let author = c.author.as_ref();
        author.is_some_and(|a| a.login == "github-actions[bot]" && a.kind == "Bot")
    });
    bots.map(|c| c.body.clone()).collect()
}

#[test]
fn state_and_commands_of_the_author_count_for_nothing() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    ci(&rig);
    let genuine = ours(&rig).remove(0);
    let at = genuine.find("id:").unwrap();
    let id = &genuine[at + 3..at + 15];
    // The author pastes the whole comment, gives commands, and takes an account with a bot's name.
    for (login, kind, text) in [
        ("author", "User", genuine.clone()),
        ("author", "User", format!("/dismiss {id} -- mine")),
        ("author", "User", "/skip-review".to_owned()),
        ("github-actions[bot]", "User", genuine.clone()),
        ("github-actions", "Bot", genuine.clone()),
        ("other[bot]", "Bot", format!("/dismiss {id} -- bot")),
        ("maintainer", "User", format!("> /dismiss {id} -- quoted")),
        (
            "maintainer",
            "User",
            format!("```\n/dismiss {id} -- fenced\n```"),
        ),
    ] {
        let actor = Actor {
            login: login.to_owned(),
            kind,
            write: false,
        };
        rig.github.world().comment(1, actor, &text);
    }
    rig.push(&[("two.py", WARNING)]);
    let ran = ci(&rig);
    let bodies = ours(&rig);
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert!(
        bodies[0].contains("fetch.py") && bodies[0].contains("two.py"),
        "{ran:#?}"
    );
    for word in ["mine", "bot ", "quoted", "fenced"] {
        assert!(!bodies[0].contains(word), "{word}: {}", bodies[0]);
    }
    let edited = rig
        .github
        .world()
        .comments
        .iter()
        .filter(|c| c.edits > 0)
        .count();
    assert_eq!(edited, 1);
}

#[test]
fn names_of_branches_and_files_are_data() {
    let rig = Rig::new(
        &[("app.py", CLEAN)],
        &[("--upload-pack=touch pwned/x.py", WARNING)],
    );
    rig.github.world().pulls.get_mut(&1).unwrap().base = "--upload-pack=touch pwned".to_owned();
    let ran = ci(&rig);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ours(&rig)[0].contains("cannot be a ref") || ours(&rig)[0].contains("Not reviewed"),
        "{:#?}",
        ours(&rig)
    );
    rig.github.world().pulls.get_mut(&1).unwrap().base = "main".to_owned();
    ci(&rig);
    assert!(ours(&rig)[0].contains("id:"));
    assert!(!rig.job.root().join("pwned").exists() && !rig.server.root().join("pwned").exists());
}

#[test]
fn a_setup_that_is_a_link_stops_the_run() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    rig.server.git(&["checkout", "-q", "main"]);
    std::os::unix::fs::symlink("/etc", rig.server.root().join(".expo-code-review")).unwrap();
    rig.server.commit_all("a link");
    let ran = ci(&rig);
    let text = ours(&rig).remove(0);
    assert!(
        !text.contains("id:") && text.contains("link"),
        "{text} {ran:#?}"
    );
}

#[test]
fn a_run_of_an_older_head_does_not_replace_the_newer_review() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let old = rig.server.head();
    let new = rig.push(&[("new.py", WARNING)]);
    ci(&rig);
    let newer = ours(&rig).remove(0);
    assert!(newer.contains("new.py"));
    // The older run read its facts before the push.
    rig.github.world().heads.push_back(old.clone());
    let ran =
        rig.run(&mut rig.command(&["ci", "--force"], "pull_request", &pull_request("opened")));
    assert!(ran.err.contains("newer commit"), "{ran:#?}");
    assert_eq!(ours(&rig), [newer]);
    assert_ne!(old, new);
}

#[test]
fn a_head_that_moves_during_the_run_is_said() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let old = rig.server.head();
    let new = rig.push(&[("new.py", WARNING)]);
    rig.github.world().heads.push_back(old);
    ci(&rig);
    let text = ours(&rig).remove(0);
    assert!(
        text.contains("has moved on") && text.contains(&new[..7]),
        "{text}"
    );
    assert!(!text.contains("new.py"), "{text}");
}

#[test]
fn a_job_that_is_killed_leaves_nothing_that_the_next_one_trips_over() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    for at in ["/pulls/1", "/compare/", "comments", "/graphql"] {
        let method = if at == "/graphql" { "POST" } else { "GET" };
        rig.github.world().faults = vec![Fault::new(method, at, FaultKind::Hang).times(9)];
        let mut command = rig.command(&["ci"], "pull_request", &pull_request("opened"));
        let mut child = command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let seen = |rig: &Rig| rig.github.world().log.iter().any(|l| l.contains(at));
        while !seen(&rig) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        rig.github.world().faults.clear();
        rig.github.world().log.clear();
    }
    // Killed after the comment was written, before anybody heard of it.
    rig.github.world().faults = vec![Fault::new(
        "POST",
        "/issues/1/comments",
        FaultKind::ApplyThenHang,
    )];
    let mut command = rig.command(&["ci"], "pull_request", &pull_request("opened"));
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while ours(&rig).is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    rig.github.world().faults.clear();
    let ran = ci(&rig);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let bodies = ours(&rig);
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains("id:"));
    let left: Vec<_> = std::fs::read_dir(rig.job.home().join("tmp"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_dispatch_with_a_number_works_and_the_token_stays_out_of_sight() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let payload = json!({"inputs": {"pr": "1"}});
    let mut command = rig.command(&["ci", "-v"], "workflow_dispatch", &payload);
    command
        .env("GITHUB_REF", "refs/heads/main")
        .env("ECR_LOG", "trace");
    let ran = rig.run(&mut command);
    assert_eq!(ours(&rig).len(), 1, "{ran:#?}");
    let encoded = {
        use base64::Engine as _;
        let pair = format!("x-access-token:{}", token());
        base64::engine::general_purpose::STANDARD.encode(pair)
    };
    assert!(!ran.err.contains(&encoded));
}
