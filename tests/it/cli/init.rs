//! `ecr init` and `ecr verify-config` in real repositories.

use std::os::unix::fs::symlink;

use serde_json::Value;

use super::harness::{ecr, started};
use crate::support::repo::TestRepo;

const CONFIG: &str = ".expo-code-review/config.jsonc";
const REVIEW: &str = ".github/workflows/ecr-review.yml";

fn set_up() -> TestRepo {
    let repo = started();
    ecr(&repo, &["init", "--token-env", "ANTHROPIC_API_KEY"]).exits(0);
    repo
}

fn read(repo: &TestRepo, path: &str) -> String {
    std::fs::read_to_string(repo.root().join(path)).unwrap()
}

#[test]
fn a_fresh_set_up_works() {
    let repo = started();
    let ran = ecr(&repo, &["init", "--token-env", "ANTHROPIC_API_KEY"])
        .exits(0)
        .says("wrote: .expo-code-review/config.jsonc")
        .says("wrote: .github/workflows/ecr-review.yml")
        .says("gh secret set ANTHROPIC_API_KEY");
    assert!(!ran.out.contains("kept"), "{ran:#?}");
    assert!(read(&repo, CONFIG).contains("\"tokenEnv\": \"ANTHROPIC_API_KEY\""));
    ecr(&repo, &["review"]).exits(0);
    ecr(&repo, &["doctor"]).exits(0);
    ecr(&repo, &["ref-check"]).exits(0);
    ecr(&repo, &["verify-config"]).exits(0).says("holds");
    // Again: nothing to do. What somebody changed stays theirs.
    let again = ecr(&repo, &["init", "--token-env", "ANTHROPIC_API_KEY"]).exits(0);
    assert!(!again.out.contains("wrote"), "{again:#?}");
    repo.write(CONFIG, "{}");
    ecr(&repo, &["init", "--token-env", "ANTHROPIC_API_KEY"])
        .exits(0)
        .says("kept yours: .expo-code-review/config.jsonc")
        .says("--force");
    assert_eq!(read(&repo, CONFIG), "{}");
    ecr(
        &repo,
        &["init", "--force", "--token-env", "ANTHROPIC_API_KEY"],
    )
    .exits(0)
    .says("replaced: .expo-code-review/config.jsonc");
    assert_ne!(read(&repo, CONFIG), "{}");
}

#[test]
fn without_a_credential_none_is_expected() {
    let repo = started();
    ecr(&repo, &["init"]).exits(0).says("built-in checks");
    assert!(!read(&repo, REVIEW).contains("secrets."));
    let bare = started();
    ecr(&bare, &["init", "--no-workflow"]).exits(0);
    assert!(!bare.root().join(".github").exists());
}

#[test]
fn nothing_is_written_when_something_is_in_the_way() {
    for (link, what) in [
        (".github", "a symbolic link"),
        (".expo-code-review", "a symbolic link"),
        (".github/workflows/ecr-dismiss.yml", "a symbolic link"),
    ] {
        let repo = started();
        let outside = repo.home().join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        let place = repo.root().join(link);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(&outside, &place).unwrap();
        ecr(&repo, &["init", "--force"]).refused(what, "move");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        assert!(!repo.root().join(CONFIG).exists(), "{link}");
    }
    let repo = started();
    repo.write(".github", "a file");
    ecr(&repo, &["init"]).refused("no folder", "move .github");
    let key = ["sk", "ant", "api03", "x"].join("-");
    ecr(&repo, &["init", "--token-env", &key]).refused("--token-env", "ANTHROPIC_API_KEY");
    ecr(&repo, &["init", "--token-env", "GITHUB_TOKEN"]).refused("GITHUB_TOKEN", "--token-env");
}

#[test]
fn the_older_folder_stays_where_it_is() {
    let repo = started();
    repo.write(".expo-agents/code-review/config.json", "{}");
    ecr(&repo, &["init"]).exits(0).says("nothing has to move");
    assert!(!repo.root().join(".expo-code-review").exists());
    assert!(repo.root().join(REVIEW).exists());
}

/// A name, files, and a word of what is said.
type Case<'a> = (&'a str, Vec<(&'a str, String)>, &'a str);

#[test]
fn the_guard_finds_what_a_review_would_not_see() {
    let auth = |name: &str| {
        format!("{{\"auth\":{{\"providers\":{{\"anthropic\":{{\"tokenEnv\":\"{name}\"}}}}}}}}")
    };
    let scope = "server/www/.expo-code-review/config.jsonc";
    // The cases of the tool that ecr follows, and some of ours.
    let cases: [Case<'_>; 7] = [
        ("a scope's credentials", vec![(scope, auth("SNEAKY"))], scope),
        (
            "a scope's marker",
            vec![(scope, "{\"breakGlass\":{\"marker\":\"x\"}}".to_owned())],
            "breakGlass",
        ),
        (
            "a set-up that nobody refers to",
            vec![("packages/rogue/.expo-agents/code-review/config.json", auth("EVIL"))],
            "packages/rogue",
        ),
        (
            "two places",
            vec![(
                ".expo-code-review/routing.jsonc",
                "{\"defaults\":{\"auth\":{\"providers\":{\"a\":{\"tokenEnv\":\"T\"}}}},\"scopes\":[{\"name\":\"default\",\"paths\":[\"**/*\"],\"config\":\".\"}]}".to_owned(),
            )],
            "one of the two",
        ),
        (
            "another case",
            vec![("lib/.Expo-Code-Review/config.jsonc", "{}".to_owned())],
            "upper from lower case",
        ),
        ("no JSON", vec![(scope, "{ \"checks\": ".to_owned())], scope),
        (
            "another manifest",
            vec![("server/www/.expo-code-review/routing.jsonc", "{}".to_owned())],
            "only in the root",
        ),
    ];
    for (name, files, words) in cases {
        let repo = set_up();
        for (path, text) in &files {
            repo.write(path, text);
        }
        let ran = ecr(&repo, &["verify-config"]).exits(2);
        assert!(ran.out.contains(words), "{name}: {ran:#?}");
        let json: Value = ecr(&repo, &["verify-config", "--json"]).exits(2).json();
        assert_eq!(json["ok"], false, "{name}");
        assert!(!json["problems"].as_array().unwrap().is_empty());
    }
    let repo = set_up();
    let outside = repo.home().join("setup");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(repo.root().join("docs")).unwrap();
    symlink(&outside, repo.root().join("docs/.expo-code-review")).unwrap();
    ecr(&repo, &["verify-config"])
        .exits(2)
        .says("symbolic link");
}

#[test]
fn the_guard_wants_the_expected_names_and_annotates() {
    let repo = set_up();
    let run = |expected: &str| {
        let output = repo
            .command(env!("CARGO_BIN_EXE_ecr"))
            .arg("verify-config")
            .env("GITHUB_ACTIONS", "true")
            .env("ECR_EXPECTED_TOKEN_ENV", expected)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    assert_eq!(run("ANTHROPIC_API_KEY").0, Some(0));
    for expected in ["OTHER", "ANTHROPIC_API_KEY,OTHER"] {
        let (code, text) = run(expected);
        assert_eq!(code, Some(2), "{expected}: {text}");
        assert!(text.starts_with("::error "), "{text}");
    }
    repo.write("a,b:c%/.expo-code-review/config.jsonc", "{\"auth\": 1}");
    let (code, text) = run("ANTHROPIC_API_KEY");
    assert_eq!(code, Some(2));
    assert!(text.contains("file=a%2Cb%3Ac%25/"), "{text}");
}

/// A workflow as a value.
fn workflow(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn workflows_hold_the_rules_of_their_trade() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/workflows");
    let mut files: Vec<_> = [folder.clone(), folder.join("optional")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "yml"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 6, "{files:?}");
    let pinned =
        regex::Regex::new(r"^\s*(?:- )?uses: (\./\S+|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d)")
            .unwrap();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| {
            line.trim_start()
                .trim_start_matches("- ")
                .starts_with("uses:")
        }) {
            assert!(pinned.is_match(line), "{name}: {line}");
        }
        let whole = workflow(&text);
        assert_eq!(whole["permissions"], serde_json::json!({}), "{name}");
        for (id, job) in whole["jobs"].as_object().unwrap() {
            let place = format!("{name}: {id}");
            assert!(
                job["timeout-minutes"].as_u64().is_some_and(|m| m <= 90),
                "{place}"
            );
            for (what, level) in job["permissions"].as_object().into_iter().flatten() {
                let write = ["pull-requests", "issues", "checks"];
                assert!(
                    level == "read" || write.contains(&what.as_str()),
                    "{place}: {what}"
                );
            }
            let steps = job["steps"].as_array().unwrap();
            for step in steps {
                if let Some(run) = step["run"].as_str() {
                    assert!(!run.contains("${{"), "{place}: {run}");
                }
                if step["uses"]
                    .as_str()
                    .is_some_and(|uses| uses.starts_with("actions/checkout@"))
                {
                    assert_eq!(step["with"]["persist-credentials"], false, "{place}");
                    let of = step["with"]["ref"].as_str().unwrap_or_default();
                    assert!(!of.contains("head"), "{place}: {of}");
                }
            }
            // The credential of a model is in the environment of one step only, behind the guard.
            let holds = |step: &Value| step["env"].to_string().contains("secrets.");
            let guard = steps.iter().position(|step| {
                step["run"]
                    .as_str()
                    .is_some_and(|run| run.contains("verify-config"))
            });
            for (at, step) in steps.iter().enumerate().filter(|(_, step)| holds(step)) {
                assert!(guard.is_some_and(|guard| guard < at), "{place}: {step}");
                assert!(!job["env"].to_string().contains("secrets."), "{place}");
            }
            if name == "dismiss.yml" {
                assert!(!steps.iter().any(holds), "{place}");
            }
        }
    }
}
