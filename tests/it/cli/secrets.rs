//! A planted credential leaves the machine in no form: no output, no saved run, no word on stderr.

use std::path::Path;

use super::harness::{ECR, started};
use crate::support::repo::TestRepo;

/// Made-up credentials, assembled here so that no scanner trips over the repository.
fn planted() -> Vec<String> {
    vec![
        ["sk", "_live_", "Qx7B2hTw", "5Jr4M6Zn", "9Lk3Vp8s"].concat(),
        ["AK", "IA", "QX7B", "2HTW", "5JR4", "M6ZN"].concat(),
        ["k3J9", "vQ2p", "Lx7R"].concat(),
    ]
}

fn content(secrets: &[String]) -> String {
    format!(
        "const payments = \"{}\";\nconst cloud = \"{}\"; // {}\nconst db = \"{}{}@db.shop.io/app\";\nfetch(u, {{ rejectUnauthorized: false, key: \"{}\" }});\n",
        secrets[0], secrets[1], secrets[0], "postgres://app:", secrets[2], secrets[0]
    )
}

fn assert_clean(what: &str, bytes: &[u8], secrets: &[String]) {
    for secret in secrets {
        assert!(
            memchr::memmem::find(bytes, secret.as_bytes()).is_none(),
            "{what} holds a credential:\n{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

fn scan(folder: &Path, secrets: &[String]) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files += scan(&path, secrets);
        } else {
            let bytes = std::fs::read(&path).expect("readable");
            assert_clean(&path.display().to_string(), &bytes, secrets);
            files += 1;
        }
    }
    files
}

fn each_output(repo: &TestRepo, secrets: &[String], selector: &[&str]) {
    for extra in [
        &["--format", "terminal"][..],
        &["--format", "terminal", "-v", "--color", "always"],
        &["-q"],
        &["--format", "json"],
        &["--format", "markdown"],
        &["--format", "sarif"],
        &["--format", "rdjson"],
        &["--format", "gitlab"],
        &["--format", "github"],
        &["--format", "agent"],
        &["--plan"],
        &["--plan", "--json"],
    ] {
        let args: Vec<_> = selector.iter().chain(extra).copied().collect();
        let output = repo
            .command(ECR)
            .env("ECR_LOG", "trace")
            .args(&args)
            .output()
            .expect("it starts");
        assert_clean(&format!("stdout of {args:?}"), &output.stdout, secrets);
        assert_clean(&format!("stderr of {args:?}"), &output.stderr, secrets);
        let plan = extra.contains(&"--plan");
        assert_eq!(output.status.code(), Some(i32::from(!plan)), "{args:?}");
    }
}

#[test]
fn no_output_holds_a_credential() {
    let secrets = planted();
    let repo = started();
    repo.write("pay.js", content(&secrets));
    each_output(&repo, &secrets, &[]);
    let state = repo.home().join("state");
    assert!(scan(&state, &secrets) > 5, "runs were kept");
    let report: serde_json::Value =
        serde_json::from_slice(&repo.ecr(&["--json"]).stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let of_secrets: Vec<_> = findings
        .iter()
        .filter(|f| f["category"] == "secrets")
        .collect();
    assert!(of_secrets.len() >= 2, "{report:#}");
    for finding in findings {
        let id = finding["id"].as_str().expect("an id");
        let output = repo.ecr(&["explain", id]);
        assert!(output.status.success());
        assert_clean("explain", &output.stdout, &secrets);
    }
}

#[test]
fn nor_does_the_review_of_a_patch_or_of_a_hostile_name() {
    let secrets = planted();
    let repo = started();
    repo.write("pay.js", content(&secrets));
    repo.write(format!("keys/{}.txt", secrets[0]), "x\n");
    repo.git(&["add", "-A"]);
    let patch = repo.git(&["diff", "--cached", "--", "pay.js"]);
    std::fs::write(repo.home().join("p.patch"), patch).expect("write");
    let file = repo.home().join("p.patch");
    each_output(&repo, &secrets, &["--diff", file.to_str().expect("UTF-8")]);
}
