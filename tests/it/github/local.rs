//! `ecr review --pr`: the head as data, the configuration of the checkout.

use serde_json::{Value, json};

use super::rig::{CLEAN, Rig, WARNING, token};

fn report(rig: &Rig, args: &[&str]) -> Value {
    let mut all = vec!["review", "--json", "--no-progress"];
    all.extend(args);
    let ran = rig.run(&mut rig.command(&all, "", &json!({})));
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

#[test]
fn a_pull_request_is_compared_with_where_it_left_its_base() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let head = rig.server.head();
    // The base moved on; that is not the author's change.
    let merge_base = String::from_utf8(rig.server.git(&["rev-parse", "main"])).unwrap();
    rig.server.git(&["checkout", "-q", "main"]);
    rig.server.write("other.py", WARNING);
    rig.server.commit_all("base moves on");

    let report = report(&rig, &["--pr", "1", "--repo", "octo/demo"]);
    assert_eq!(report["input"]["kind"], "pull_request");
    assert_eq!(report["input"]["head"], json!(head));
    assert_eq!(report["input"]["base"], json!(merge_base.trim()));
    assert_eq!(report["input"]["pr"], 1);
    assert_eq!(report["coverage"]["totals"]["files"], 1);
    assert_eq!(report["findings"][0]["file"], "fetch.py");
    let world = rig.github.world();
    let log: Vec<_> = world.log.iter().filter(|l| !l.starts_with("git")).collect();
    assert_eq!(log.len(), 2, "{log:#?}");
    // The credential was in no file of git's, and nothing is left behind.
    drop(world);
    let left: Vec<_> = std::fs::read_dir(rig.job.home().join("tmp"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_heads_configuration_is_data_and_the_checkouts_counts() {
    let off = r#"{"checks": {"rules": {"tls-verification-off": "off"}}}"#;
    let folder = ".expo-code-review/config.jsonc";
    let rig = Rig::new(
        &[("app.py", CLEAN)],
        &[("fetch.py", WARNING), (folder, off)],
    );
    let url = format!("{}/octo/demo/pull/1", rig.github.url());
    let found = report(&rig, &["--pr", &url]);
    assert_eq!(found["findings"].as_array().unwrap().len(), 1);
    rig.job.write(folder, off);
    let found = report(&rig, &["--pr", &url]);
    assert_eq!(found["findings"].as_array().unwrap().len(), 0, "{found:#}");
}

#[test]
fn without_a_comparison_whole_histories_are_fetched() {
    use crate::support::github::{Fault, FaultKind};
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let fault = Fault::new("GET", "/compare/", FaultKind::Status(404, "Not Found"));
    rig.github.world().faults.push(fault);
    let report = report(&rig, &["--pr", "#1", "--repo", "octo/demo"]);
    assert_eq!(report["coverage"]["totals"]["files"], 1);
}

#[test]
fn what_cannot_be_had_is_an_error_with_a_next_step() {
    let rig = Rig::new(&[("app.py", CLEAN)], &[("fetch.py", WARNING)]);
    let refused = |args: &[&str], words: &str| {
        let mut all = vec!["review"];
        all.extend(args);
        let ran = rig.run(&mut rig.command(&all, "", &json!({})));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(
            ran.err.contains(words) && ran.err.contains("next: "),
            "{words}: {ran:#?}"
        );
    };
    refused(&["--pr", "9", "--repo", "octo/demo"], "GitHub answered 404");
    refused(&["--pr", "x"], "neither a number nor the address");
    refused(&["--pr", "1"], "which repository is not known");
    refused(
        &["--pr", "1", "--repo", "a/b/c"],
        "not a repository as owner/name",
    );
    let mut command = rig.command(
        &["review", "--pr", "1", "--repo", "octo/demo"],
        "",
        &json!({}),
    );
    let ran = rig.run(command.env("GH_TOKEN", format!("{}x", token())));
    assert!(ran.err.contains("401 (Bad credentials)"), "{ran:#?}");
}
