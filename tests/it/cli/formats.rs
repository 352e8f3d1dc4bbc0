//! Every format is what it says it is.

use serde_json::Value;

use super::harness::{WARNING_RULE, critical, ecr, started, warned};

const MACHINE: [&str; 4] = ["json", "sarif", "rdjson", "gitlab"];

fn fixture(name: &str) -> jsonschema::Validator {
    let file = format!(
        "{}/tests/fixtures/schemas/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(file).expect("a schema");
    jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

#[track_caller]
fn valid(schema: &jsonschema::Validator, document: &Value) {
    let errors: Vec<_> = schema
        .iter_errors(document)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

#[test]
fn machine_formats_satisfy_their_schemas() {
    let published = ecr(&started(), &["schema", "output"]).exits(0).json();
    let published = jsonschema::validator_for(&published).expect("a schema");
    let sarif = fixture("sarif-2.1.0.json");
    let rdjson = fixture("rdjson.json");
    let gitlab = fixture("gitlab-code-quality.json");
    for repo in [started(), warned(), critical()] {
        for (format, schema) in [
            ("json", &published),
            ("sarif", &sarif),
            ("rdjson", &rdjson),
            ("gitlab", &gitlab),
        ] {
            let ran = ecr(&repo, &["--format", format, "--no-fail"]).exits(0);
            valid(schema, &ran.json());
        }
    }
}

#[test]
fn all_formats_tell_of_the_same_finding() {
    let repo = warned();
    let report = ecr(&repo, &["--json"]).json();
    let id = report["findings"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for format in [
        "terminal", "json", "markdown", "sarif", "rdjson", "gitlab", "github", "agent",
    ] {
        let ran = ecr(&repo, &["--format", format]).exits(0);
        assert!(ran.out.contains("fetch.py"), "{format}: {ran:#?}");
        // rdjson names the rule; it has no field for an identity.
        let key = if format == "rdjson" {
            WARNING_RULE
        } else {
            &id
        };
        assert!(ran.out.contains(key), "{format}: {ran:#?}");
        assert!(
            !ran.out.contains(repo.root().to_str().expect("UTF-8")),
            "{format}: {ran:#?}"
        );
    }
}

#[test]
fn files_hold_what_stdout_would() {
    let repo = warned();
    let out = repo.home().join("out");
    std::fs::create_dir(&out).expect("folder");
    let path = |format: &str| out.join(format).to_str().expect("UTF-8").to_owned();
    let specs: Vec<_> = MACHINE.iter().map(|f| format!("{f}={}", path(f))).collect();
    let mut args = Vec::new();
    for spec in &specs {
        args.extend(["--format", spec.as_str()]);
    }
    // With nothing for stdout asked for, a person still gets the report.
    ecr(&repo, &args).exits(0).says("Built-in checks only");
    args.extend(["--format", "json"]);
    let ran = ecr(&repo, &args).exits(0);
    assert_eq!(ran.json()["findings"][0]["file"], "fetch.py");
    for format in MACHINE {
        let text = std::fs::read_to_string(path(format)).expect("a report");
        let _: Value = serde_json::from_str(&text).expect("JSON");
        assert!(text.contains("fetch.py"), "{format}");
    }
    assert_eq!(
        std::fs::read_dir(&out).expect("folder").count(),
        MACHINE.len()
    );
    // Relative to where one stands; the report is no change of the next run's.
    repo.write("sub/x.py", "x = 1\n");
    let sub = repo.root().join("sub");
    super::harness::ecr_in(&repo, &sub, &["--format", "sarif=x.sarif", "-q"]).exits(0);
    assert!(sub.join("x.sarif").is_file());
}

#[test]
fn an_old_report_is_replaced_as_a_whole() {
    let repo = warned();
    let file = repo.home().join("r.json");
    std::fs::write(&file, "x".repeat(1_000_000)).expect("write");
    let spec = format!("json={}", file.display());
    ecr(&repo, &["--format", &spec, "-q"]).exits(0);
    let text = std::fs::read_to_string(&file).expect("a report");
    let _: Value = serde_json::from_str(&text).expect("JSON, whole");
}

#[test]
fn a_hostile_path_forges_nothing() {
    let repo = started();
    repo.write(
        "a\nerror: forged\u{1b}[31m\n::error::x/fetch.py",
        super::harness::WARNING,
    );
    for format in ["terminal", "markdown", "github", "agent", "json"] {
        let ran = ecr(&repo, &["--format", format]).exits(0);
        for line in ran.out.lines().chain(ran.err.lines()) {
            assert!(!line.starts_with("error: forged"), "{format}: {ran:#?}");
            assert!(!line.starts_with("::error::x"), "{format}: {ran:#?}");
        }
    }
}
