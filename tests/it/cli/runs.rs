//! Saved runs and `ecr explain`.

use std::path::{Path, PathBuf};

use super::harness::{Ran, critical, ecr, ecr_env, ids, run, started, warned};
use crate::support::repo::TestRepo;

/// The saved runs below a folder, however deep.
fn saved(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(saved(&path));
        } else if path.extension().is_some_and(|ext| ext == "json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn state(repo: &TestRepo) -> PathBuf {
    repo.home().join("state/ecr/runs")
}

#[test]
fn a_finding_is_explained_by_the_beginning_of_its_id() {
    let repo = warned();
    let report = ecr(&repo, &["--json"]).exits(0).json();
    let id = ids(&report).remove(0);
    for prefix in [&id[..], &id[..4], &id[..1], &id.to_uppercase()] {
        ecr(&repo, &["explain", prefix])
            .exits(0)
            .says("fetch.py:4")
            .says("outcome:  reported")
            .says(&id);
    }
    // From a subdirectory too, and after a run that had nothing to review.
    repo.git(&["stash", "-q", "-u"]);
    ecr(&repo, &[]).exits(0).says("Nothing to review");
    ecr(&repo, &["explain", &id]).exits(0).says("fetch.py:4");
}

#[test]
fn what_cannot_be_explained() {
    let repo = started();
    ecr(&repo, &["explain", "ab"])
        .refused("no saved run of this repository", "run `ecr review` first");
    repo.write(
        ".github/workflows/a.yml",
        super::harness::dangerous_workflow(),
    );
    repo.write("fetch.py", super::harness::WARNING);
    ecr(&repo, &["-q"]).exits(1);
    ecr(&repo, &["explain", "xyz"]).refused("\"xyz\" is not a finding id", "next: ");
    ecr(&repo, &["explain", ""]).refused("is not a finding id", "next: ");
    let missing = ecr(&repo, &["explain", "000000000000"])
        .refused("no finding 000000000000", "ecr review -v");
    assert_eq!(
        missing.err.matches("ecr review -v").count(),
        1,
        "{missing:#?}"
    );
    ecr(&repo, &["explain", "a", "--run", "gone.json"]).refused("gone.json", "--run FILE");
    ecr(&repo, &["explain", "a", "--run", "fetch.py"]).refused("not a saved ecr run", "next: ");
    ecr(&repo, &["explain", "a", "--run", "x", "--config-dir", "y"])
        .refused("cannot be used with", "--help");
    super::harness::ecr_in(&repo, repo.home(), &["explain", "ab"])
        .refused("is not inside a git repository", "--run FILE");
}

#[test]
fn an_ambiguous_beginning_lists_the_ids() {
    let repo = started();
    // 17 findings, 16 digits: two begin alike.
    for n in 0..17 {
        let line = format!("    return requests.get(url + \"/{n}\", verify=False)\n");
        let text =
            super::harness::WARNING.replace("    return requests.get(url, verify=False)\n", &line);
        repo.write(format!("fetch{n}.py"), text);
    }
    let report = ecr(&repo, &["--json"]).exits(0).json();
    let ids = ids(&report);
    assert_eq!(ids.len(), 17);
    let twice = ids
        .iter()
        .find(|id| ids.iter().filter(|other| other[..1] == id[..1]).count() > 1)
        .expect("two");
    ecr(&repo, &["explain", &twice[..1]]).refused(twice, "next: give more digits");
}

#[test]
fn a_dropped_finding_is_explained() {
    let repo = started();
    repo.write(
        "cart.test.js",
        "// expo-code-review-ignore: for now\ntest.only(\"adds\", () => {});\n",
    );
    let report = ecr(&repo, &["--json"]).exits(0).json();
    let id = report["dropped"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    ecr(&repo, &["explain", &id])
        .exits(0)
        .says("dropped: ")
        .says("for now");
    ecr(&repo, &["-v"]).exits(0).says(&id);
}

#[test]
fn a_report_in_a_file_is_a_run_too() {
    let repo = warned();
    let file = repo.home().join("r.json");
    let spec = format!("json={}", file.display());
    ecr(&repo, &["--format", &spec, "-q"]).exits(0);
    let text = std::fs::read_to_string(&file).expect("a report");
    let id = ids(&serde_json::from_str(&text).expect("JSON")).remove(0);
    let path = file.to_str().expect("UTF-8");
    ecr(&repo, &["explain", &id, "--run", path])
        .exits(0)
        .says("fetch.py:4");

    let newer = text.replacen("\"schemaVersion\": 1", "\"schemaVersion\": 2", 1);
    assert_ne!(newer, text);
    std::fs::write(&file, newer).expect("write");
    ecr(&repo, &["explain", &id, "--run", path]).refused("saved by a newer ecr", "update ecr");
    let kept = saved(&state(&repo)).remove(0);
    let text = std::fs::read_to_string(&kept).expect("a run");
    let newer = text.replacen("\"savedVersion\":1", "\"savedVersion\":9", 1);
    assert_ne!(newer, text);
    std::fs::write(&kept, newer).expect("write");
    ecr(&repo, &["explain", &id]).refused("saved by a newer ecr", "update ecr");
}

#[test]
fn runs_are_private_ignored_and_pruned() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = warned();
    repo.write(
        ".expo-code-review/config.jsonc",
        "{ \"runs\": { \"keep\": 2 } }",
    );
    for _ in 0..4 {
        ecr(&repo, &["-q"]).exits(0);
    }
    let runs = repo.root().join(".expo-code-review/.runs");
    let kept = saved(&runs);
    assert_eq!(kept.len(), 2);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&kept[0]), 0o600);
    assert_eq!(mode(&runs), 0o700);
    assert!(saved(&state(&repo)).is_empty());
    // They are no change of the next run's.
    let report = ecr(&repo, &["--json"]).exits(0).json();
    assert_eq!(report["coverage"]["totals"]["files"], 2, "{report:#}");
    let status = repo.git(&["status", "--short"]);
    assert!(!String::from_utf8_lossy(&status).contains(".runs"));
}

#[test]
fn a_named_setup_folder_keeps_its_runs() {
    let repo = warned();
    repo.write("tools/review/config.jsonc", "{}");
    let report = ecr(&repo, &["--config-dir", "tools/review", "--json"])
        .exits(0)
        .json();
    let id = ids(&report).remove(0);
    assert_eq!(saved(&repo.root().join("tools/review/.runs")).len(), 1);
    ecr(&repo, &["explain", &id, "--config-dir", "tools/review"])
        .exits(0)
        .says("fetch.py:4");
    ecr_env(
        &repo,
        &[("ECR_CONFIG_DIR", "tools/review")],
        &["explain", &id],
    )
    .exits(0);
    ecr(&repo, &["explain", &id]).refused("no saved run", "next: ");
}

#[test]
fn a_run_is_never_written_through_a_link() {
    let repo = warned();
    let outside = repo.home().join("outside");
    std::fs::create_dir(&outside).expect("folder");
    repo.write(".expo-code-review/config.jsonc", "{}");
    let runs = repo.root().join(".expo-code-review/.runs");
    std::os::unix::fs::symlink(&outside, &runs).expect("link");
    ecr(&repo, &[]).exits(0).talks("this run was not kept");
    assert_eq!(std::fs::read_dir(&outside).expect("folder").count(), 0);
    ecr(&repo, &["explain", "ab"]).refused("no saved run", "next: ");

    // A dangling link under a name that ecr creates.
    std::fs::remove_file(&runs).expect("remove");
    std::fs::create_dir(&runs).expect("folder");
    let target = outside.join("created");
    std::os::unix::fs::symlink(&target, runs.join(".gitignore")).expect("link");
    ecr(&repo, &["-q"]).exits(0);
    assert!(!target.exists());
    assert_eq!(saved(&runs).len(), 1);
}

#[test]
fn nowhere_to_keep_a_run_fails_nothing() {
    let repo = critical();
    let file = repo.home().join("state");
    std::fs::write(&file, "in the way").expect("write");
    let ran = ecr(&repo, &[])
        .exits(1)
        .talks("this run was not kept for `ecr explain`");
    assert_eq!(ran.err.matches("not kept").count(), 1);
    assert_eq!(ecr(&repo, &["-q"]).exits(1).err, "");
    // Without a home folder there is none.
    let mut command = repo.command(super::harness::ECR);
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    let _: Ran = run(&mut command).exits(1).talks("not kept");
}
