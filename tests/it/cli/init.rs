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
    let cases: [Case<'_>; 8] = [
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
            "one name twice",
            vec![(
                CONFIG,
                "{\"auth\":{\"providers\":{\"a\":{\"tokenEnv\":\"S\",\"baseUrl\":\"https://a.test\"},\"b\":{\"tokenEnv\":\"S\",\"baseUrl\":\"https://b.test\"}}}}".to_owned(),
            )],
            ".expo-code-review/config.jsonc: S is named more than once",
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

/// The folder with zizmor and actionlint, installed once by their digests, outside of the repository.
fn linters() -> Result<std::path::PathBuf, String> {
    let of = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let cache = of("XDG_CACHE_HOME")
        .or_else(|| Some(of("HOME")?.join(".cache")))
        .ok_or("HOME is not set")?
        .join("ecr-linters");
    std::fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
    let lock = std::fs::File::create(cache.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let list = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/linters/requirements.txt");
    let wanted = std::fs::read(&list).map_err(|error| error.to_string())?;
    let (folder, done) = (cache.join("venv"), cache.join("installed"));
    let programs = folder.join("bin");
    if std::fs::read(&done).is_ok_and(|there| there == wanted) {
        return Ok(programs);
    }
    let run = |command: &mut std::process::Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or("it failed")
            .to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let _ = std::fs::remove_dir_all(&folder);
    run(std::process::Command::new("python3")
        .args(["-m", "venv"])
        .arg(&folder))?;
    run(std::process::Command::new(programs.join("pip"))
        .args([
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "-r",
        ])
        .arg(&list))?;
    std::fs::write(&done, wanted).map_err(|error| error.to_string())?;
    Ok(programs)
}

#[test]
fn linters_have_nothing_to_say() {
    let programs = match linters() {
        Ok(programs) => programs,
        Err(problem) => {
            crate::support::skip::skipped(&format!("zizmor and actionlint: {problem}"));
            return;
        }
    };
    let repo = set_up();
    let optional =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/workflows/optional");
    for entry in std::fs::read_dir(optional).unwrap().flatten() {
        let name = entry.file_name();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        repo.write(
            format!(".github/workflows/{}", name.to_str().unwrap()),
            &text,
        );
    }
    let lint = |program: &str, args: &[&str]| {
        let output = repo
            .command(programs.join(program))
            .args(args)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.success(), said)
    };
    let zizmor = [
        "--offline",
        "--no-progress",
        "--persona",
        "pedantic",
        ".github",
    ];
    let (ok, said) = lint("zizmor", &zizmor);
    assert!(ok, "{said}");
    let (ok, said) = lint("actionlint", &[]);
    assert!(ok, "{said}");
    // They do find what is wrong.
    let broken = read(&repo, REVIEW).replace("permissions: {}", "permissions: write-all");
    repo.write(
        REVIEW,
        broken.replace("runs-on: ubuntu-24.04", "runs-on: [nowhere"),
    );
    assert!(!lint("actionlint", &[]).0);
    repo.write(REVIEW, broken);
    assert!(!lint("zizmor", &zizmor).0);
}

/// Serves `body` to everybody who asks; gives the port.
fn serve(body: &'static [u8]) -> u16 {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body);
        }
    });
    port
}

#[test]
fn the_installer_takes_what_the_table_promises_and_nothing_else() {
    use sha2::Digest as _;
    const PROGRAM: &[u8] = b"#!/bin/sh\necho ecr 9.9.9\n";
    if std::process::Command::new("curl")
        .arg("-V")
        .output()
        .is_err()
    {
        crate::support::skip::skipped("there is no curl here");
        return;
    }
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        _ => "arm64",
    };
    let target = format!("linux-{machine}");
    let mut sha256 = String::new();
    for byte in sha2::Sha256::digest(PROGRAM) {
        let _ = std::fmt::Write::write_fmt(&mut sha256, format_args!("{byte:02x}"));
    }
    let url = format!("http://127.0.0.1:{}/ecr", serve(PROGRAM));
    let wrong = "0".repeat(64);
    for (line, says) in [
        (format!("9.9.9 {target} {sha256} {url}"), None),
        (
            format!("9.9.9 {target} {wrong} {url}"),
            Some("nothing was installed"),
        ),
        (
            format!("9.9.9 {target} abc {url}"),
            Some("64 hexadecimal digits"),
        ),
        (
            format!("9.9.9 {target} {sha256} http://example.com/ecr"),
            Some("https://"),
        ),
        (format!("9.9.9 other {sha256} {url}"), Some("names no")),
    ] {
        let repo = set_up();
        let folder = repo.root().join(".github/actions/install-ecr");
        std::fs::write(folder.join("releases.txt"), line + "\n").unwrap();
        let to = repo.home().join("bin");
        let output = repo
            .command("bash")
            .arg(folder.join("install.sh"))
            .arg(&to)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), says.is_none(), "{said}");
        assert_eq!(to.join("ecr").exists(), says.is_none(), "{said}");
        assert!(said.contains(says.unwrap_or_default()), "{said}");
    }
}
