//! Parse throughput on a generated patch of more than 60 MB. Prints one line a parser; no assertion.
#![allow(missing_docs, clippy::print_stdout)] // a bench prints

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ecr::diff::{LineIndex, parse_git, parse_patch};

const FILES: usize = 4200;
const HUNKS: usize = 40;
const ROUNDS: usize = 5;

/// Raw listing, counts and patch of many files with lines of ordinary length.
fn generate() -> (String, String, String) {
    let id = "1c1039626036aba6162dbf5b6c42930d67a6f32e";
    let (mut raw, mut numstat, mut patch) = (String::new(), String::new(), String::new());
    for file in 0..FILES {
        let path = format!("src/module{}/file{file}.rs", file / 50);
        let _ = write!(raw, ":100644 100644 {id} {id} M\0{path}\0");
        let _ = write!(numstat, "{}\t{}\t{path}\0", 2 * HUNKS, HUNKS);
        let _ = write!(
            patch,
            "diff --git a/{path} b/{path}\nindex 1c10396..1c10396 100644\n--- a/{path}\n+++ b/{path}\n"
        );
        for hunk in 0..HUNKS {
            let (old, new) = (1 + hunk * 50, 1 + hunk * 51);
            let _ = writeln!(patch, "@@ -{old},7 +{new},8 @@ fn outer_{hunk}() {{");
            for line in 0..3 {
                let _ = writeln!(patch, "     let context_{line} = compute(input, {line});");
            }
            let _ = writeln!(patch, "-    let value = old_call(argument, {hunk})?;");
            let _ = writeln!(patch, "+    let value = new_call(argument, {hunk})?;");
            let _ = writeln!(patch, "+    check(&value);");
            for line in 0..3 {
                let _ = writeln!(patch, "     let after_{line} = compute(input, {line});");
            }
        }
    }
    (raw, numstat, patch)
}

/// The best time of some rounds.
fn best(mut work: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let (raw, numstat, patch) = generate();
    let patch: Arc<[u8]> = Arc::from(patch.into_bytes());
    let report = |name: &str, time: Duration| {
        let megabytes = patch.len() as f64 / 1e6;
        println!(
            "{name}: {megabytes:.0} MB in {time:.1?}, {:.0} MB/s",
            megabytes / time.as_secs_f64()
        );
    };
    let shared = Bytes::from_owner(Arc::clone(&patch));
    let git = || parse_git(raw.as_bytes(), numstat.as_bytes(), shared.clone());
    let alone = || parse_patch(Arc::clone(&patch));
    report("parse_git", best(|| drop(black_box(git()))));
    report("parse_patch", best(|| drop(black_box(alone()))));
    match git() {
        Ok(diff) => report(
            "line index",
            best(|| {
                for file in &diff.files {
                    black_box(LineIndex::new(file, &diff.patch));
                }
            }),
        ),
        Err(error) => println!("the generated patch does not parse: {error}"),
    }
}
