//! The precision campaign: runs every rule over real code, each file as if it were newly added.
//!
//! `cargo bench --bench precision -- DIR…` prints each hit as `severity rule path:line evidence` (credentials masked) and, at the end,
//! the lines scanned by language, the hits by rule, and the time it took.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)] // a tool for a person at a terminal

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ecr::detect::mask;
use ecr::diff::{Diff, FileDiff, FileMode, Hunk};
use ecr::engine::builtin::{BuiltinEngine, CheckSettings};
use ecr::model::printable;
use ecr::model::{
    AgentId, ChangeStatus, FindingReport, Fingerprint, PassId, PassKind, RepoPath, Usage,
};
use ecr::port::{
    FindingReceipt, FindingSink, Meter, PassContext, PassRequest, Progress, ProgressEvent,
    ReviewEngine,
};
use tokio_util::sync::CancellationToken;

/// Larger files are data.
const MAX_FILE: u64 = 4 * 1024 * 1024;

#[derive(Default)]
struct Collector(Mutex<Vec<FindingReport>>);

impl FindingSink for Collector {
    fn report(&self, _pass: &PassId, finding: FindingReport) -> FindingReceipt {
        if let Ok(mut findings) = self.0.lock() {
            findings.push(finding);
        }
        Fingerprint::new("000000000000").map_or_else(
            |e| FindingReceipt::Rejected(e.to_string()),
            FindingReceipt::Accepted,
        )
    }

    fn retract(&self, _pass: &PassId, _id: &Fingerprint, _reason: &str) -> bool {
        false
    }
}

struct Quiet;

impl Progress for Quiet {
    fn event(&self, _event: ProgressEvent) {}
}

impl Meter for Quiet {
    fn add(&self, _pass: &PassId, _usage: Usage) {}
}

#[derive(Default)]
struct Totals {
    lines: BTreeMap<String, u64>,
    rules: BTreeMap<String, u64>,
    bytes: u64,
    spent: Duration,
    secrets: Duration,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folders: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .filter(|a| a != "--bench")
        .map(PathBuf::from)
        .collect();
    if folders.is_empty() {
        println!("precision: give the folders to scan");
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut totals = Totals::default();
    for folder in folders {
        // Each package is a repository of its own, so that paths such as `.github/workflows` mean what they say.
        let mut packages: Vec<PathBuf> = std::fs::read_dir(&folder)?
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.is_dir())
            .collect();
        packages.sort();
        for package in packages {
            runtime.block_on(scan(&package, &mut totals))?;
        }
    }
    println!(
        "\n{} MB, all rules in {:?}, secrets alone on one thread in {:?}",
        totals.bytes / 1_000_000,
        totals.spent,
        totals.secrets
    );
    println!("lines {}", totals.lines.values().sum::<u64>());
    for (extension, lines) in totals.lines.iter().filter(|(_, lines)| **lines >= 10_000) {
        println!("lines {extension} {lines}");
    }
    for (rule, hits) in &totals.rules {
        println!("hits {rule} {hits}");
    }
    Ok(())
}

async fn scan(package: &Path, totals: &mut Totals) -> Result<(), Box<dyn std::error::Error>> {
    let mut patch = Vec::new();
    let mut files = Vec::new();
    collect(package, package, &mut patch, &mut files, totals);
    let start = Instant::now();
    std::hint::black_box(ecr::detect::secrets(&patch));
    totals.secrets += start.elapsed();
    let diff = Arc::new(Diff {
        patch: patch.into(),
        files,
    });
    let sink = Arc::new(Collector::default());
    let request = PassRequest {
        id: PassId::new("checks"),
        kind: PassKind::Checks,
        agent: AgentId::new("checks")?,
        model: None,
        files: (0..diff.files.len()).collect(),
        diff,
        system: "".into(),
        task: "".into(),
        schema: None,
    };
    let context = PassContext {
        tree: None,
        sink: Arc::clone(&sink) as Arc<dyn FindingSink>,
        meter: Arc::new(Quiet),
        progress: Arc::new(Quiet),
        cancel: CancellationToken::new(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(3600),
    };
    let start = Instant::now();
    let outcome = BuiltinEngine::new(CheckSettings::default())
        .run(request, context)
        .await?;
    totals.spent += start.elapsed();
    for (path, reason) in outcome.unexamined {
        println!(
            "unexamined {}/{}: {reason}",
            package.display(),
            path.to_lossy()
        );
    }
    let findings = sink.0.lock().map_err(|_| "poisoned")?;
    for finding in findings.iter() {
        let rule = finding.rule.as_ref().map_or("", |r| r.as_str());
        *totals
            .rules
            .entry(format!("{} {rule}", finding.severity))
            .or_default() += 1;
        let evidence = mask(finding.evidence.as_deref().unwrap_or(&finding.title)).into_owned();
        let evidence: String = printable(&evidence).trim().chars().take(160).collect();
        println!(
            "{} {rule} {}/{}:{} {evidence}",
            finding.severity,
            package.file_name().unwrap_or_default().to_string_lossy(),
            finding.location.file.to_lossy(),
            finding.location.line.unwrap_or(0),
        );
    }
    Ok(())
}

/// Adds every text file below `folder` to the patch as a new file.
fn collect(
    root: &Path,
    folder: &Path,
    patch: &mut Vec<u8>,
    files: &mut Vec<FileDiff>,
    totals: &mut Totals,
) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if meta.is_dir() {
            collect(root, &path, patch, files, totals);
            continue;
        }
        let name = path
            .strip_prefix(root)
            .ok()
            .and_then(|p| RepoPath::new(p.as_os_str().as_encoded_bytes()).ok());
        let (Some(name), true) = (name, meta.is_file() && meta.len() <= MAX_FILE) else {
            continue;
        };
        let Ok(content) = std::fs::read(&path) else {
            continue;
        };
        if content.is_empty() || content[..content.len().min(8000)].contains(&0) {
            continue;
        }
        let start = patch.len();
        let body = content.strip_suffix(b"\n").unwrap_or(&content);
        let mut added = 0;
        for line in body.split(|b| *b == b'\n') {
            patch.push(b'+');
            patch.extend_from_slice(line);
            patch.push(b'\n');
            added += 1;
        }
        let extension = name
            .extension()
            .map_or_else(|| "-".into(), |e| String::from_utf8_lossy(e).into_owned());
        *totals.lines.entry(extension).or_default() += u64::from(added);
        totals.bytes += content.len() as u64;
        files.push(FileDiff {
            path: name,
            old_path: None,
            status: ChangeStatus::Added,
            score: None,
            old_mode: FileMode(0),
            new_mode: FileMode(0o100_644),
            old_id: None,
            new_id: None,
            added,
            deleted: 0,
            binary: false,
            section: start..patch.len(),
            hunks: vec![Hunk {
                old_start: 0,
                old_len: 0,
                new_start: 1,
                new_len: added,
                heading: start..start,
                body: start..patch.len(),
            }],
        });
    }
}
