//! The whole review beside `git diff -M`: time, memory, growth, start-up, size (issue 2, section 7).
//!
//! `cargo bench --bench review` measures everything; `-- wall slope` only what is named (`start wall many memory slope`;
//! `prepare` makes the repositories, `corpus` says how much of them parses).
//! The repositories are generated once and kept in `target/bench-cache`. Wall times are minima of alternating runs (git, ecr, git,
//! …), since other work on the machine can only add to them; processor times are means.
#![allow(missing_docs, clippy::print_stdout)] // a bench prints

mod corpus;
mod languages;
mod measure;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ast_grep_language::LanguageExt as _;
use corpus::{BASE, HEAD, Shape};
use ecr::engine::builtin::structural;
use measure::Runs;

const ROUNDS: usize = 9;
/// For what takes only milliseconds.
const MANY_ROUNDS: usize = 40;
/// Files of each language that `corpus` parses.
const CORPUS_FILES: usize = 50;
const MEGABYTE: f64 = 1e6;

/// 12,000 files, 3,800 of them changed, 6 MB of patch.
const LARGE: Shape = Shape {
    name: "large",
    files: 12_000,
    lines: 120,
    edited: 3_000,
    renamed: 400,
    added: 200,
    deleted: 200,
    hunks: 2,
    replaced: 2,
};

/// 1,000,000 changed lines: as many removed as added.
const MILLION: Shape = growing("lines-1000000", 5_000);
const SLOPE: [(u64, Shape); 3] = [
    (10_000, growing("lines-10000", 50)),
    (100_000, growing("lines-100000", 500)),
    (1_000_000, MILLION),
];

/// 100,000 changed files of a few lines (some of the edits change nothing).
const MANY_FILES: Shape = Shape {
    name: "files-100000",
    files: 110_700,
    lines: 12,
    edited: 110_700,
    renamed: 0,
    added: 0,
    deleted: 0,
    hunks: 1,
    replaced: 1,
};

/// Files of 200 to 600 lines with about 100 lines replaced each, in ten places.
const fn growing(name: &'static str, files: usize) -> Shape {
    Shape {
        name,
        files,
        lines: 400,
        edited: files,
        renamed: 0,
        added: 0,
        deleted: 0,
        hunks: 10,
        // One in ten comes out as it was, or lies behind the end of a short file.
        replaced: 11,
    }
}

/// Where things are kept between runs.
struct Bench {
    cache: PathBuf,
    /// A set-up folder in which the structural rules are off.
    text_only: PathBuf,
}

impl Bench {
    fn new() -> io::Result<Self> {
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench-cache");
        let text_only = cache.join("text-rules-only");
        fs::create_dir_all(&text_only)?;
        let off: Vec<String> = structural::RULES
            .iter()
            .map(|rule| format!("\"{}\": \"off\"", rule.id))
            .collect();
        let config = format!("{{\"checks\": {{\"rules\": {{{}}}}}}}\n", off.join(", "));
        fs::write(text_only.join("config.jsonc"), config)?;
        Ok(Self { cache, text_only })
    }

    /// `git diff -M` of the change, as a person runs it.
    fn git(folder: &Path) -> Command {
        let mut command = Command::new("git");
        command
            .args(["diff", "-M", "--no-ext-diff"])
            .arg(format!("{BASE}...{HEAD}"))
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// The review of the change, to JSON, kept like any other.
    fn ecr(&self, folder: &Path, structural: bool) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ecr"));
        command
            .args([
                "review",
                "--base",
                BASE,
                "--head",
                HEAD,
                "--no-fail",
                "--format",
                "json",
            ])
            .current_dir(folder)
            .env("HOME", self.cache.join("home"))
            .env("XDG_STATE_HOME", self.cache.join("state"));
        if !structural {
            command.arg("--config-dir").arg(&self.text_only);
        }
        command
    }

    fn wall(&self, shape: &Shape, rounds: usize) -> io::Result<()> {
        let folder = corpus::repository(&self.cache, shape)?;
        let [mut git, mut text, mut all] = [(); 3].map(|()| Runs::default());
        // The first round only fills the page cache.
        for round in 0..=rounds {
            let runs = [
                (measure::run(&mut Self::git(&folder))?, &mut git),
                (measure::run(&mut self.ecr(&folder, false))?, &mut text),
                (measure::run(&mut self.ecr(&folder, true))?, &mut all),
            ];
            if round > 0 {
                for (run, list) in runs {
                    list.add(run);
                }
            }
        }
        println!(
            "{}: least wall time of {rounds} alternating runs, mean CPU time (load {})",
            shape.name,
            measure::load()
        );
        println!(
            "  git diff -M: {}; CPU {}",
            millis(git.wall()),
            millis(git.own() + git.children())
        );
        row("text rules", &text, &git, 2.0);
        row("all rules", &all, &git, 3.0);
        Ok(())
    }

    fn memory(&self, shape: &Shape) -> io::Result<()> {
        let folder = corpus::repository(&self.cache, shape)?;
        let patch = Self::git(&folder).output()?.stdout;
        let limit = 40.0 * MEGABYTE + 3.0 * patch.len() as f64;
        let seen = measure::memory(&mut self.ecr(&folder, true))?;
        println!(
            "{}: patch {:.1} MB ({} lines); ecr's peak {:.0} MB, {:.0} MB of it anonymous (target {:.0} MB{})",
            shape.name,
            patch.len() as f64 / MEGABYTE,
            patch.split(|b| *b == b'\n').count(),
            seen.peak as f64 / MEGABYTE,
            seen.anonymous as f64 / MEGABYTE,
            limit / MEGABYTE,
            missed(seen.peak as f64 <= limit),
        );
        Ok(())
    }

    /// The cost of one more line, between 10⁴ and 10⁵ and between 10⁵ and 10⁶ of them.
    fn slope(&self, structural: bool) -> io::Result<()> {
        let mut times = Vec::new();
        for (lines, shape) in SLOPE {
            let folder = corpus::repository(&self.cache, &shape)?;
            let rounds = if lines < 1_000_000 {
                MANY_ROUNDS
            } else {
                ROUNDS
            };
            let mut runs = Runs::default();
            for _ in 0..rounds {
                runs.add(measure::run(&mut self.ecr(&folder, structural))?);
            }
            times.push((lines, runs.own()));
        }
        let rules = if structural {
            "all rules"
        } else {
            "text rules"
        };
        for (lines, time) in &times {
            let each = time.as_secs_f64() * 1e9 / *lines as f64;
            println!(
                "  {rules}, {lines} lines: own CPU {}, {each:.0} ns a line",
                millis(*time)
            );
        }
        let slopes: Vec<f64> = times
            .windows(2)
            .map(|pair| {
                let more = pair[1].1.saturating_sub(pair[0].1);
                more.as_secs_f64() * 1e9 / (pair[1].0 - pair[0].0) as f64
            })
            .collect();
        if let [low, high] = slopes[..] {
            let change = high / low - 1.0;
            println!(
                "  {rules}, one more line: {low:.0} ns, then {high:.0} ns, {:+.0} % (target within 20 %{})",
                change * 100.0,
                missed(change <= 0.2)
            );
        }
        Ok(())
    }
}

fn start() -> io::Result<()> {
    let binary = env!("CARGO_BIN_EXE_ecr");
    let mut runs = Runs::default();
    for _ in 0..MANY_ROUNDS {
        runs.add(measure::run(Command::new(binary).arg("--version"))?);
    }
    let time = runs.wall();
    println!(
        "ecr --version: {}, the least of {MANY_ROUNDS} (target 5 ms{})",
        millis(time),
        missed(time <= Duration::from_millis(5))
    );
    let size = fs::metadata(binary)?.len() as f64 / MEGABYTE;
    println!(
        "binary: {size:.1} MB (target 25 MB{})",
        missed(size <= 25.0)
    );
    Ok(())
}

fn row(name: &str, ecr: &Runs, git: &Runs, target: f64) {
    let times = ecr.wall().as_secs_f64() / git.wall().as_secs_f64();
    println!(
        "  ecr review, {name}: {}, {times:.2} times git (target {target:.0}{}); CPU {} own, {} of the git that it starts",
        millis(ecr.wall()),
        missed(times <= target),
        millis(ecr.own()),
        millis(ecr.children()),
    );
}

/// How many of the generated files the grammars read without an error, and how fast.
fn corpus_parses() -> io::Result<()> {
    for language in languages::LANGUAGES {
        let Some(grammar) = language.grammar else {
            continue;
        };
        let mut random = languages::Random(1);
        let mut parser = tree_sitter::Parser::new();
        parser
            .set_language(&grammar.get_ts_language())
            .map_err(io::Error::other)?;
        let (mut clean, mut bytes) = (0, 0);
        let mut time = Duration::ZERO;
        let mut first = None;
        for _ in 0..CORPUS_FILES {
            let lines = languages::file(&mut random, language, 400);
            let text: String = lines.iter().map(|line| line.text.as_str()).collect();
            bytes += text.len();
            let begun = Instant::now();
            let tree = parser.parse(&text, None);
            time += begun.elapsed();
            if tree.is_some_and(|tree| !tree.root_node().has_error()) {
                clean += 1;
            } else {
                first.get_or_insert(text);
            }
        }
        println!(
            "corpus: {clean} of {CORPUS_FILES} {} files parse, {:.1} MB/s{}",
            language.end,
            bytes as f64 / MEGABYTE / time.as_secs_f64(),
            first.map_or(String::new(), |text| format!("; not this one:\n{text}")),
        );
    }
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn missed(met: bool) -> &'static str {
    if met { "" } else { ", MISSED" }
}

fn main() -> io::Result<()> {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|n| n == name);
    let bench = Bench::new()?;
    if named.iter().any(|n| n == "prepare") {
        for shape in SLOPE
            .map(|(_, shape)| shape)
            .into_iter()
            .chain([LARGE, MANY_FILES])
        {
            corpus::repository(&bench.cache, &shape)?;
        }
    }
    if named.iter().any(|n| n == "corpus") {
        corpus_parses()?;
    }
    if wanted("start") {
        start()?;
    }
    if wanted("wall") {
        bench.wall(&LARGE, ROUNDS)?;
        bench.wall(&MILLION, ROUNDS)?;
    }
    if wanted("many") {
        bench.wall(&MANY_FILES, 3)?;
    }
    if wanted("memory") {
        for shape in [LARGE, MILLION, MANY_FILES] {
            bench.memory(&shape)?;
        }
    }
    if wanted("slope") {
        println!("growth:");
        bench.slope(false)?;
        bench.slope(true)?;
    }
    Ok(())
}
