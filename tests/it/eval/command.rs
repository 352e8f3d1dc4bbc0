//! Data sets as they come: errors, patches, clones, public sets, runs that stop and go on.

use serde_json::json;

use super::{copy, ecr, json_of, root, said, text};
use crate::support::repo::TestRepo;

const CHECKS: [&str; 3] = ["--agents", "checks", "--json"];

/// A folder outside the repository with some of the own cases.
fn dataset(repo: &TestRepo, cases: &[&str]) -> String {
    let folder = repo.home().join("set");
    std::fs::create_dir_all(&folder).unwrap();
    for case in cases {
        copy(&root().join("cases").join(case), &folder.join(case));
    }
    text(&folder).to_owned()
}

fn with<'a>(first: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[first][..], &CHECKS, more].concat()
}

#[test]
fn only_what_has_changed_is_reviewed_again() {
    let repo = TestRepo::init();
    let set = dataset(&repo, &["python-sql-by-hand", "clean-python-rename"]);
    let first = ecr(&repo, &with(&set, &["--resume"]));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    assert_eq!(
        json_of(&first)["counts"],
        json!({"hits": 1, "falseAlarms": 0, "missed": 0})
    );
    assert_eq!(said(&first).matches("kept from before").count(), 0);

    let head = format!("{set}/clean-python-rename/head/shop/price.py");
    let changed = std::fs::read_to_string(&head).unwrap() + "\n# the end\n";
    std::fs::write(&head, changed).unwrap();
    let second = ecr(&repo, &with(&set, &["--resume"]));
    let words = said(&second);
    assert!(
        words.contains("python-sql-by-hand: kept from before"),
        "{words}"
    );
    assert!(!words.contains("clean-python-rename: kept"), "{words}");

    // Another set-up, or no --resume: all again.
    std::fs::create_dir(repo.root().join(".expo-code-review")).unwrap();
    repo.write(
        ".expo-code-review/config.jsonc",
        "{\"policy\": {\"includeSuggestions\": true}}",
    );
    assert!(!said(&ecr(&repo, &with(&set, &["--resume"]))).contains("kept from before"));
    assert!(!said(&ecr(&repo, &with(&set, &[]))).contains("kept from before"));
}

#[test]
fn a_wrong_case_is_named_with_file_line_and_key_before_anything_is_reviewed() {
    let repo = TestRepo::init();
    let set = dataset(&repo, &["clean-python-rename", "python-sql-by-hand"]);
    let file = format!("{set}/python-sql-by-hand/case.jsonc");
    let whole = std::fs::read_to_string(&file).unwrap();
    let number = whole.lines().position(|l| l.contains("\"line\"")).unwrap() + 1;
    std::fs::write(&file, whole.replace("\"line\": 5", "\"line\": 500")).unwrap();
    let output = ecr(&repo, &with(&set, &[]));
    let words = said(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(
        words.contains(&format!("case.jsonc:{number}:")) && words.contains("the file has 6 lines"),
        "{words}"
    );
    assert!(!words.contains("clean-python-rename:"), "{words}");
    for (args, expected) in [
        (with("nowhere", &[]), "cannot read the data set"),
        (with(&set, &["--only", "nothing"]), "has no case `nothing`"),
        (with(text(repo.root()), &[]), "holds no case"),
    ] {
        let output = ecr(&repo, &args);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            said(&output).contains(expected) && said(&output).contains("next: "),
            "{}",
            said(&output)
        );
    }
}

fn words_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn changes_come_as_patches_and_as_clones_and_what_is_not_there_is_said() {
    let repo = TestRepo::init();
    let set = dataset(&repo, &["python-sql-by-hand"]);
    let case = std::fs::read_to_string(format!("{set}/python-sql-by-hand/case.jsonc")).unwrap();
    let old =
        std::fs::read_to_string(format!("{set}/python-sql-by-hand/base/shop/orders.py")).unwrap();
    let new =
        std::fs::read_to_string(format!("{set}/python-sql-by-hand/head/shop/orders.py")).unwrap();

    let clone = repo.home().join("clones/shop/shop");
    std::fs::create_dir_all(clone.parent().unwrap()).unwrap();
    repo.write("shop/orders.py", &old);
    repo.commit_all("old");
    let base = words_of(repo.git(&["rev-parse", "HEAD"]));
    repo.write("shop/orders.py", &new);
    repo.commit_all("new");
    let head = words_of(repo.git(&["rev-parse", "HEAD"]));
    let patch = words_of(repo.git(&["diff", "HEAD~1", "HEAD"])) + "\n";
    repo.git(&["clone", "-q", "--bare", ".", text(&clone)]);

    let write = |name: &str, case: &str, patch: Option<&str>, tree: bool| {
        let folder = format!("{set}/{name}");
        std::fs::create_dir_all(format!("{folder}/base/shop")).unwrap();
        if tree {
            std::fs::write(format!("{folder}/base/shop/orders.py"), &old).unwrap();
        } else {
            std::fs::remove_dir_all(format!("{folder}/base")).unwrap();
        }
        std::fs::write(format!("{folder}/case.json"), case).unwrap();
        if let Some(patch) = patch {
            std::fs::write(format!("{folder}/change.patch"), patch).unwrap();
        }
    };
    let repository = format!(
        "{{\"repository\": {{\"name\": \"shop/shop\", \"base\": \"{}\", \"head\": \"{}\"}},",
        base.trim(),
        head.trim()
    );
    let cloned = case.replacen('{', &repository, 1);
    write("a-patch", &case, Some(&patch), false);
    write("a-tree-and-patch", &case, Some(&patch), true);
    write("a-clone", &cloned, None, false);
    let clones = repo.home().join("clones");
    let output = ecr(&repo, &with(&set, &["--repos", text(&clones)]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report = json_of(&output);
    // The rule needs the whole file, which a patch alone has not.
    assert_eq!(
        report["counts"],
        json!({"hits": 3, "falseAlarms": 0, "missed": 1}),
        "{report:#}"
    );
    assert_eq!(report["perCase"][1]["case"], "a-patch");
    assert_eq!(report["perCase"][1]["missed"], json!([0]));

    // Without the clones and without a change: scored is what there is, and the exit code says that it is not all.
    write("b-nothing", &case, None, false);
    let output = ecr(&repo, &with(&set, &[]));
    let words = said(&output);
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(
        words.contains("--repos") && words.contains("put change.patch there"),
        "{words}"
    );
    assert_eq!(
        (&json_of(&output)["cases"], &json_of(&output)["scored"]),
        (&json!(5), &json!(3))
    );
    let output = ecr(&repo, &with(&set, &["--only", "b-nothing"]));
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));

    // A name from a data set does not leave the folder of clones.
    write(
        "a-clone",
        &cloned.replace("shop/shop\"", "../clones/shop/shop\""),
        None,
        false,
    );
    let output = ecr(
        &repo,
        &with(&set, &["--repos", text(&clones), "--only", "a-clone"]),
    );
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));

    write(
        "a-tree-and-patch",
        &case,
        Some(&patch.replace("def find", "def found")),
        true,
    );
    let output = ecr(&repo, &with(&set, &["--only", "a-tree-and-patch"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("case a-tree-and-patch: the change cannot be made"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_tape_of_another_change_is_an_error_that_names_the_case() {
    let repo = TestRepo::init();
    let set = dataset(&repo, &["rust-window-past-end"]);
    let head = format!("{set}/rust-window-past-end/head/src/average.rs");
    std::fs::write(&head, std::fs::read_to_string(&head).unwrap() + "// more\n").unwrap();
    let (setup, tapes) = (root().join("setup"), root().join("tapes"));
    let output = ecr(
        &repo,
        &[&set, "--config-dir", text(&setup), "--replay", text(&tapes)],
    );
    assert_eq!(output.status.code(), Some(2));
    let words = said(&output);
    assert!(
        words.contains("case rust-window-past-end: ") && words.contains("is of another change"),
        "{words}"
    );
    assert!(output.stdout.is_empty());
}

#[cfg(unix)]
#[test]
fn links_in_a_tree_are_refused() {
    let repo = TestRepo::init();
    let set = dataset(&repo, &["clean-python-rename"]);
    std::os::unix::fs::symlink(
        "/etc/passwd",
        format!("{set}/clean-python-rename/head/link"),
    )
    .unwrap();
    let output = ecr(&repo, &with(&set, &[]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("neither a file nor a folder"),
        "{}",
        said(&output)
    );
}

#[test]
fn public_sets_become_data_sets() {
    let repo = TestRepo::init();
    let comment = json!({"note": "It overflows.", "path": "a.c", "side": "right", "from_line": 3, "to_line": 1, "category": "Code Defect"});
    let aacr = json!([{"githubPrUrl": "https://github.com/o/n/pull/5", "source_commit": "a".repeat(40), "target_commit": "b".repeat(40),
        "project_main_language": "C", "category": "Bug Fix", "change_line_count": 3, "comments": [comment]}]);
    let golden = json!([{"pr_title": "T", "url": "https://github.com/o/n/pull/6", "comments": [{"comment": "It races.", "severity": "High"}]}]);
    repo.write("positive_samples.json", aacr.to_string());
    repo.write("negative_samples.json", aacr.to_string());
    repo.write("golden.json", golden.to_string());
    let (one, two) = (repo.home().join("aacr"), repo.home().join("martian"));
    let output = ecr(
        &repo,
        &[
            text(&one),
            "--import",
            "aacr-bench",
            "--from",
            "positive_samples.json,negative_samples.json",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        words.contains("1 cases with 1 known findings and 1 known non-findings"),
        "{words}"
    );
    let output = ecr(
        &repo,
        &[text(&two), "--import", "martian", "--from", "golden.json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // Both are read back; what they lack is said.
    for (set, lacks) in [
        (&one, "needs a clone of o/n"),
        (
            &two,
            "put change.patch there (https://github.com/o/n/pull/6)",
        ),
    ] {
        let output = ecr(&repo, &with(text(set), &[]));
        assert_eq!(output.status.code(), Some(3));
        assert!(said(&output).contains(lacks), "{}", said(&output));
    }
    // Not over something, and not from another set.
    let output = ecr(
        &repo,
        &[text(&two), "--import", "martian", "--from", "golden.json"],
    );
    assert!(output.status.code() == Some(2) && said(&output).contains("is not empty"));
    let other = repo.home().join("other");
    let output = ecr(
        &repo,
        &[
            text(&other),
            "--import",
            "aacr-bench",
            "--from",
            "golden.json",
        ],
    );
    assert!(
        output.status.code() == Some(2) && said(&output).contains("[0]"),
        "{}",
        said(&output)
    );
    assert!(!other.exists());
}
