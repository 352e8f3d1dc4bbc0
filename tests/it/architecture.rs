//! The architecture as data, and the proof that the sources keep to it.
//!
//! @ref LLP 0008#guards-instead-of-agreements — why this is a test, and not crates or advice

mod samples;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::source::{ItemKind, Source};

/// Every module: its layer and exactly what it may use.
#[rustfmt::skip]
const MODULES: &[(&str, u8, &[&str])] = &[
    ("model",    0, &[]),
    ("tree",     1, &["model"]),
    ("detect",   1, &["model"]),
    ("diff",     1, &["model", "tree"]),
    ("config",   1, &["model", "tree", "diff"]),
    ("prompt",   1, &["model", "diff"]),
    ("reply",    1, &["model"]),
    ("finding",  1, &["model", "tree", "diff"]),
    ("ledger",   1, &["model"]),
    ("state",    1, &["model"]),
    ("render",   1, &["model", "finding", "diff", "state", "detect"]),
    ("port",     1, &["model", "diff", "tree"]),
    ("eval",     1, &["model", "config", "state"]),
    ("pipeline", 2, LAYERS_0_1),
    ("process",  3, &["model", "port"]),
    ("http",     3, &["model"]),
    ("git",      3, &["model", "port", "tree", "process"]),
    ("source",   3, &["model", "port", "tree", "diff", "git", "github"]),
    ("gateway",  3, &["model", "port", "tree", "diff", "finding", "prompt", "reply", "detect", "ledger", "http"]),
    ("engine",   3, &["model", "port", "tree", "diff", "finding", "prompt", "reply", "detect", "process", "gateway"]),
    ("github",   3, &["model", "http"]),
    ("reporter", 3, &["model", "port", "render", "state", "github"]),
    ("app",      4, LAYERS_0_3),
    ("cli",      5, &["app", "model", "config"]),
];

#[rustfmt::skip]
const LAYERS_0_1: &[&str] = &[
    "model", "tree", "detect", "diff", "config", "prompt", "reply", "finding", "ledger", "state", "render", "port", "eval",
];

#[rustfmt::skip]
const LAYERS_0_3: &[&str] = &[
    "model", "tree", "detect", "diff", "config", "prompt", "reply", "finding", "ledger", "state", "render", "port", "eval",
    "pipeline", "process", "http", "git", "source", "gateway", "engine", "github", "reporter",
];

/// What layers 0 and 1 may not touch: the outside world, and async.
#[rustfmt::skip]
const IMPURE: &[&[&str]] = &[
    &["std", "fs"], &["std", "net"], &["std", "process"], &["std", "env"], &["std", "thread"],
    &["tokio"], &["tokio_util"], &["git2"], &["tempfile"], &["rustix"], &["etcetera"],
    &["anstream"], &["indicatif"], &["terminal_size"], &["supports_hyperlinks"], &["clap"], &["tracing_subscriber"],
];

/// Plain values that live beside what is banned.
const VALUES: &[&[&str]] = &[
    &["std", "net", "IpAddr"],
    &["std", "net", "Ipv4Addr"],
    &["std", "net", "Ipv6Addr"],
];

/// What `port` may touch all the same: its traits are async.
const PORT_MAY: &[&[&str]] = &[
    &["tokio", "time", "Instant"],
    &["tokio", "time", "Duration"],
    &["tokio", "sync"],
    &["tokio_util", "sync"],
];

/// `mod.rs` files that hold more than declarations and re-exports: the trait that is the module's point.
const MOD_RS_ITEMS: &[(&str, &[ItemKind])] = &[
    (
        "src/tree/mod.rs",
        &[ItemKind::PrivateUse, ItemKind::Trait, ItemKind::Data],
    ),
    ("src/port/mod.rs", &[ItemKind::Alias]),
];

/// Where printing and ending the process is the job.
const MAY_PRINT: &[&str] = &["src/cli", "src/main.rs", "src/reporter/terminal"];

#[rustfmt::skip]
const TOP_LEVEL: &[&str] = &[
    "Cargo.toml", "Cargo.lock", "src", "templates", "tests", "llp", "ref-check", "README.md", "AGENTS.md",
    "ROADMAP.md", "CHANGELOG.md", "LICENSE", ".cargo", ".ci", ".github", ".gitignore", ".expo-code-review",
];

const MAX_LINES: usize = 900;
const MAX_PARAMETERS: usize = 6;

fn module(name: &str) -> Option<&'static (&'static str, u8, &'static [&'static str])> {
    MODULES.iter().find(|(known, ..)| *known == name)
}

/// `src/diff/parse.rs` is `["diff", "parse"]`; the crate root is empty.
fn module_path(file: &str) -> Vec<&str> {
    let file = file.trim_start_matches("src/").trim_end_matches(".rs");
    let mut parts: Vec<_> = file.split('/').collect();
    if parts.last() == Some(&"mod") || parts == ["lib"] || parts == ["main"] {
        parts.pop();
    }
    parts
}

fn lies_in(file: &str, places: &[&str]) -> bool {
    places.iter().any(|place| {
        file == *place || file == format!("{place}.rs") || file.starts_with(&format!("{place}/"))
    })
}

/// Everything wrong with one source of `src/`, as `file:line: what`.
fn problems_of(file: &str, text: &str, test_file: bool) -> Vec<String> {
    let modules = module_path(file);
    let source = match Source::read(text, modules.len(), test_file) {
        Ok(source) => source,
        Err(error) => return vec![format!("{file}:1: cannot be read: {error}")],
    };
    let mut found = Vec::new();
    let mut report = |line: usize, what: String| found.push(format!("{file}:{line}: {what}"));

    for path in &source.paths {
        let segments: Vec<_> = path.segments.iter().map(String::as_str).collect();
        if let Some(used) = used_module(file, &segments, path.depth)
            && let Some(problem) = edge_problem(file, modules.first().copied(), used, path.test)
        {
            report(path.line, problem);
        }
        if path.test {
            continue;
        }
        if let Some(problem) = impurity(modules.first().copied(), &segments) {
            report(path.line, problem);
        }
        let ends = segments
            .windows(2)
            .any(|w| w[0] == "process" && matches!(w[1], "exit" | "abort"));
        let prints = segments
            .windows(2)
            .any(|w| w[0] == "io" && matches!(w[1], "stdout" | "stderr"));
        if (ends || prints) && !lies_in(file, MAY_PRINT) {
            report(
                path.line,
                format!(
                    "`{}` outside cli, main and reporter::terminal",
                    segments.join("::")
                ),
            );
        }
    }
    for used in &source.macros {
        let prints = matches!(
            used.name.as_str(),
            "println" | "eprintln" | "print" | "eprint"
        );
        if prints && !used.test && !lies_in(file, MAY_PRINT) {
            report(
                used.line,
                format!("`{}!` outside cli, main and reporter::terminal", used.name),
            );
        }
        if matches!(used.name.as_str(), "todo" | "unimplemented") {
            report(used.line, format!("`{}!`", used.name));
        }
    }
    if !lies_in(file, &["src/process"]) {
        for line in &source.unsafe_lines {
            report(*line, "`unsafe` outside src/process".to_owned());
        }
    }
    if file == "src/lib.rs" || file.ends_with("/mod.rs") {
        let extra = MOD_RS_ITEMS
            .iter()
            .find(|(name, _)| *name == file)
            .map_or(&[][..], |(_, kinds)| kinds);
        for (line, kind) in &source.items {
            if !matches!(kind, ItemKind::ModDecl | ItemKind::Reexport) && !extra.contains(kind) {
                report(
                    *line,
                    format!("{kind:?} in a file that only declares and re-exports"),
                );
            }
        }
    }
    found.dedup(); // `use crate::app::{a, b}` is one mistake
    found.extend(size_problems(file, text, &source));
    found
}

fn size_problems(file: &str, text: &str, source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        found.push(format!(
            "{file}:{lines}: {lines} lines, {MAX_LINES} at most"
        ));
    }
    for (line, parameters) in &source.functions {
        if *parameters > MAX_PARAMETERS {
            found.push(format!(
                "{file}:{line}: {parameters} parameters, {MAX_PARAMETERS} at most"
            ));
        }
    }
    found
}

/// The top-level module of this crate that a path names, if it names one.
fn used_module<'a>(file: &str, segments: &[&'a str], depth: usize) -> Option<&'a str> {
    match segments[0] {
        "crate" => Some(segments.get(1).copied().unwrap_or("crate")),
        "ecr" if file == "src/main.rs" => segments.get(1).copied(),
        "ecr" => Some("ecr"),
        "super" => {
            let ups = segments.iter().take_while(|s| **s == "super").count();
            (ups == depth).then(|| segments.get(ups).copied().unwrap_or("crate"))
        }
        _ => None,
    }
}

fn edge_problem(file: &str, from: Option<&str>, used: &str, test: bool) -> Option<String> {
    let Some((_, used_layer, _)) = module(used) else {
        return Some(format!("`crate::{used}` is no module of the layer table"));
    };
    let Some(from) = from else {
        let fine = file == "src/lib.rs" || matches!(used, "cli" | "app");
        return (!fine).then(|| format!("main may only use cli and app, not `{used}`"));
    };
    let Some((_, layer, may_use)) = module(from) else {
        return Some(format!("module `{from}` is not in the layer table"));
    };
    // Tests may borrow from any module that is not above.
    let fine = from == used || may_use.contains(&used) || (test && used_layer <= layer);
    (!fine).then(|| format!("`{from}` (layer {layer}) may not use `{used}` (layer {used_layer})"))
}

fn impurity(from: Option<&str>, segments: &[&str]) -> Option<String> {
    let (name, layer, _) = module(from?)?;
    let within = |paths: &[&[&str]]| paths.iter().any(|path| segments.starts_with(path));
    let allowed = within(VALUES) || (*name == "port" && within(PORT_MAY));
    if *layer > 1 || allowed || !within(IMPURE) {
        return None;
    }
    Some(format!(
        "`{}` in layer {layer}, which does no I/O and is not async",
        segments.join("::")
    ))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All `.rs` files below `folder`, relative to the repository, with their texts.
fn rust_files(folder: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("a type").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(root().join(&path)).expect("UTF-8");
                files.insert(path.to_str().expect("UTF-8").to_owned(), text);
            }
        }
    }
    files
}

/// The files that the module tree of `crate_root` reaches, each with whether it is test code only.
fn reached(files: &BTreeMap<String, String>, crate_root: &str) -> BTreeMap<String, bool> {
    let mut seen = BTreeMap::new();
    let mut open = vec![(crate_root.to_owned(), false)];
    while let Some((file, test)) = open.pop() {
        let Some(text) = files.get(&file) else {
            continue;
        };
        let Ok(source) = Source::read(text, 0, test) else {
            continue;
        };
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", &file));
        let folder = match name {
            _ if file == crate_root => folder.to_owned(),
            "mod.rs" => folder.to_owned(),
            name => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        for declared in source.mods {
            let test = test || declared.test;
            if let Some(path) = declared.path {
                let beside = file.rsplit_once('/').map_or("", |(folder, _)| folder);
                open.push((format!("{beside}/{path}"), test));
                continue;
            }
            open.push((format!("{folder}/{}.rs", declared.name), test));
            open.push((format!("{folder}/{}/mod.rs", declared.name), test));
        }
        seen.insert(file, test);
    }
    seen
}

#[test]
fn sources_keep_to_the_layers_and_the_rules() {
    let files = rust_files("src");
    let mut test_only = reached(&files, "src/lib.rs");
    test_only.extend(reached(&files, "src/main.rs"));
    let mut problems = Vec::new();
    for (file, text) in &files {
        match test_only.get(file) {
            Some(test) => problems.extend(problems_of(file, text, *test)),
            None => problems.push(format!("{file}:1: no `mod` declares this file")),
        }
    }
    assert!(files.len() > 10, "the sources were not found");
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn every_test_file_is_declared_and_small_enough() {
    let files = rust_files("tests/it");
    let reached = reached(&files, "tests/it/main.rs");
    let mut problems: Vec<_> = files
        .keys()
        .filter(|file| !reached.contains_key(*file))
        .map(|file| format!("{file}:1: no `mod` declares this file"))
        .collect();
    for (file, text) in files.into_iter().chain(rust_files("tests/bench")) {
        match Source::read(&text, 0, true) {
            Ok(source) => problems.extend(size_problems(&file, &text, &source)),
            Err(error) => problems.push(format!("{file}:1: cannot be read: {error}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The first component of every path that git tracks.
fn tracked_top_level() -> BTreeSet<String> {
    let output = std::process::Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .current_dir(root())
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .expect("git starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("our own names are UTF-8")
        .split_terminator('\0')
        .map(|path| path.split('/').next().unwrap_or(path).to_owned())
        .collect()
}

fn strangers(entries: &BTreeSet<String>) -> Vec<&str> {
    entries
        .iter()
        .map(String::as_str)
        .filter(|entry| !TOP_LEVEL.contains(entry))
        .collect()
}

#[test]
fn the_top_level_holds_nothing_else() {
    let entries = tracked_top_level();
    assert!(entries.contains("Cargo.toml"), "git lists this repository");
    assert_eq!(strangers(&entries), Vec::<&str>::new());
}

#[test]
fn the_table_points_downwards_and_has_no_cycle() {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<_> = MODULES.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|(name, _, uses)| {
            let ready = uses.iter().all(|used| done.contains(used));
            if ready {
                done.insert(name);
            }
            !ready
        });
        assert!(
            left.len() < before,
            "a cycle or an unknown name in {left:?}"
        );
    }
    for (name, layer, uses) in MODULES {
        for used in *uses {
            let (_, used_layer, _) = module(used).expect("known");
            assert!(used_layer <= layer, "{name} points up at {used}");
        }
    }
}
