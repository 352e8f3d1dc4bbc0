//! `ecr stats`.

use std::process::Command;

use super::harness::{ecr, started, warned};
use crate::support::skip::skipped;

#[test]
fn runs_are_counted() {
    let repo = warned();
    ecr(&repo, &["--json"]).exits(0);
    ecr(&repo, &["-q"]).exits(0);
    let out = ecr(&repo, &["stats"]).exits(0).out;
    for words in [
        "2 runs",
        "2 checks only",
        "0 critical, 2 warning",
        "checks",
        "$0.00",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let figures = ecr(&repo, &["stats", "--json", "--since", "1d"])
        .exits(0)
        .json();
    assert_eq!(figures["runs"], 2);
    assert_eq!(figures["findings"]["warning"], 2);
    let none = ecr(&repo, &["stats", "--json", "--since", "9999-01-01"])
        .exits(0)
        .json();
    assert_eq!(none["runs"], 0);
    // The log says nothing about the code.
    let log = std::fs::read_dir(repo.home().join("state/ecr/runs"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path().join("reviews.jsonl"))
        .find(|path| path.exists())
        .expect("a log");
    let log = std::fs::read_to_string(log).expect("text");
    assert_eq!(log.lines().count(), 2);
    assert!(
        !log.contains("fetch.py") && !log.contains("verify"),
        "{log}"
    );
}

#[test]
fn what_cannot_be_counted() {
    let repo = started();
    let none = ecr(&repo, &["stats"]).exits(0);
    assert!(none.out.contains("no runs in "), "{none:?}");
    ecr(&repo, &["stats", "--since", "yesterday"]).refused("--since yesterday", "30d");
    ecr(&repo, &["stats", "--html", "no/such/folder.html"]).refused("cannot write", "folder");
}

/// The page as a browser lays it out, in a wide and in a narrow window.
#[test]
fn the_page_is_shown_by_a_browser() {
    let repo = warned();
    for _ in 0..3 {
        ecr(&repo, &["-q"]).exits(0);
    }
    ecr(&repo, &["stats", "--html", "stats.html"]).exits(0);
    let page = repo.root().join("stats.html");
    let profile = repo.home().join("chromium");
    let chromium = |arguments: &[&str]| {
        Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
            ])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .output()
    };
    let dom = match chromium(&["--dump-dom"]) {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return skipped(&format!("no chromium for the page of `ecr stats`: {error}")),
    };
    assert_eq!(dom.matches("<svg").count(), 4, "{dom}");
    assert!(dom.contains("<td>checks</td>"), "{dom}");
    for (size, name) in [("1000,900", "wide.png"), ("420,900", "narrow.png")] {
        let picture = repo.home().join(name);
        let shot = format!("--screenshot={}", picture.display());
        chromium(&[&format!("--window-size={size}"), &shot]).expect("it ran before");
        let bytes = std::fs::read(&picture).expect("a picture");
        // An empty page of this size compresses to far less.
        assert!(bytes.len() > 8_000, "{name}: {} bytes", bytes.len());
    }
}
