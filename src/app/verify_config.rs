//! `ecr verify-config`: the guard of a workflow before a credential is in reach. It sweeps the disk, because what a job
//! reads is on the disk, whatever git or a manifest says.
//!
//! @ref LLP 0018#verify-config — what is looked for, and why on the disk

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{AppError, Environment, credentials};
use crate::config::env::ECR_EXPECTED_TOKEN_ENV;
use crate::config::{
    self, AuthEntry, ConfigErrors, Diagnostic, DiagnosticLevel, LoadedConfig, Overrides,
    ReviewConfig, SETUP_FOLDERS, SetupLocation, SetupOrigin, Source, parse_scope,
};
use crate::git::{HostEnv, Repository};
use crate::model::RepoPath;
use crate::render::printable_line;
use crate::tree::MemoryTree;

/// A larger file is refused.
const MAX_FILE: u64 = 1 << 20;
/// Folders below each other.
const MAX_DEPTH: usize = 100;
/// The names of a configuration.
const CONFIG_NAMES: [&str; 2] = ["config.jsonc", "config.json"];

/// One thing that is wrong. Wire format of `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    message: String,
}

/// What was found. Wire format of `--json`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sweep {
    schema_version: u32,
    ok: bool,
    /// Set-up folders, from the root.
    folders: Vec<String>,
    problems: Vec<Problem>,
}

/// For stdout, and whether all is well.
#[derive(Debug)]
pub struct Outcome {
    /// The text.
    pub text: String,
    /// No problem was found.
    pub ok: bool,
}

/// Sweeps the work tree around the current folder.
pub async fn run(json: bool, environment: &Environment) -> Result<Outcome, AppError> {
    let host = environment.variables().collect::<HostEnv>();
    let repository = Repository::discover(&host, environment.cwd(), CancellationToken::new())
        .await
        .map_err(|error| AppError::new(error.to_string(), "run it in a checkout"))?;
    let root = repository
        .work_tree()
        .map(Path::to_path_buf)
        .ok_or_else(|| AppError::new("this repository has no work tree", "run it in a checkout"))?;
    let environment = environment.clone();
    let work = move || {
        let sweep = sweep(&root, &environment);
        let in_actions = environment.text("GITHUB_ACTIONS") == Some("true");
        let text = match (json, in_actions) {
            (true, _) => serde_json::to_string_pretty(&sweep).unwrap_or_default() + "\n",
            (false, true) => annotations(&sweep),
            (false, false) => lines(&sweep),
        };
        Outcome { text, ok: sweep.ok }
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| AppError::plain("the sweep was aborted"))
}

fn sweep(root: &Path, environment: &Environment) -> Sweep {
    let mut found = Sweep {
        schema_version: 1,
        ..Sweep::default()
    };
    let mut folders = Vec::new();
    walk(root, Path::new(""), 0, &mut folders, &mut found);
    folders.sort();
    let loaded = the_root(root, &mut found);
    for folder in &folders {
        found.folders.push(shown(folder));
        if !SETUP_FOLDERS.iter().any(|name| folder == Path::new(name)) {
            another(root, folder, loaded.as_ref().map(|l| &l.config), &mut found);
        }
    }
    if let Some(expected) = environment.get(ECR_EXPECTED_TOKEN_ENV.name) {
        let auth: &[AuthEntry] = loaded.as_ref().map_or(&[], |l| &l.config.auth);
        if let Err(error) = credentials::hold(auth, &expected.to_string_lossy()) {
            found.say(ECR_EXPECTED_TOKEN_ENV.name, None, &error.to_string());
        }
    }
    found.ok = found.problems.is_empty();
    found
}

impl Sweep {
    fn say(&mut self, file: &str, line: Option<u32>, message: &str) {
        self.problems.push(Problem {
            file: file.to_owned(),
            line,
            message: printable_line(message),
        });
    }

    fn diagnostics<'a>(&mut self, diagnostics: impl IntoIterator<Item = &'a Diagnostic>) {
        for said in diagnostics {
            if said.level == DiagnosticLevel::Error {
                let line = said.position.map(|at| at.line);
                self.say(&said.origin, line, &said.message);
            }
        }
    }

    fn errors(&mut self, errors: &ConfigErrors) {
        self.diagnostics(errors.diagnostics());
    }
}

fn shown(path: &Path) -> String {
    printable_line(&path.to_string_lossy())
}

/// Finds every folder that ecr, or a file system that does not tell cases apart, takes for a set-up.
fn walk(root: &Path, at: &Path, depth: usize, folders: &mut Vec<PathBuf>, found: &mut Sweep) {
    if depth > MAX_DEPTH {
        found.say(
            &shown(at),
            None,
            "folders are nested too deeply to be swept",
        );
        return;
    }
    let entries = match std::fs::read_dir(root.join(at)) {
        Ok(entries) => entries,
        Err(error) => {
            found.say(&shown(at), None, &format!("cannot be swept: {error}"));
            return;
        }
    };
    for entry in entries.flatten() {
        let place = at.join(entry.file_name());
        let Ok(kind) = entry.file_type() else {
            found.say(&shown(&place), None, "cannot be looked at");
            continue;
        };
        let lower = place.to_string_lossy().to_lowercase();
        let named = |name: &str| lower == name || lower.ends_with(&format!("/{name}"));
        // `.expo-agents` too: it is the way to a set-up.
        let part = SETUP_FOLDERS.iter().any(|name| named(name)) || named(".expo-agents");
        if part {
            let exact = place.to_string_lossy();
            let known = SETUP_FOLDERS.iter().chain(&[".expo-agents"]);
            if !known
                .into_iter()
                .any(|name| Path::new(&*exact).ends_with(name))
            {
                found.say(
                    &shown(&place),
                    None,
                    "is a set-up on a file system that does not tell upper from lower case: rename or remove it",
                );
            }
            if kind.is_symlink() {
                found.say(
                    &shown(&place),
                    None,
                    "is a symbolic link: a set-up has to be a folder",
                );
            }
        }
        if !kind.is_dir() || (depth == 0 && entry.file_name() == ".git") {
            continue;
        }
        if SETUP_FOLDERS.iter().any(|name| place.ends_with(name)) {
            folders.push(place.clone());
        }
        walk(root, &place, depth + 1, folders, found);
    }
}

/// The files of a folder and of those below it, by their path from the root; links and large files are problems.
fn files(root: &Path, folder: &Path, found: &mut Sweep) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&at)) else {
            continue;
        };
        for entry in entries.flatten() {
            let place = at.join(entry.file_name());
            match entry.metadata() {
                // What runs leave is no set-up.
                Ok(meta) if meta.is_dir() && entry.file_name() != ".runs" => open.push(place),
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) if meta.is_symlink() => {
                    found.say(
                        &shown(&place),
                        None,
                        "is a symbolic link: a set-up has to be files",
                    );
                }
                Ok(meta) if meta.is_file() && meta.len() <= MAX_FILE => {
                    match std::fs::read(root.join(&place)) {
                        Ok(bytes) => drop(files.insert(place, bytes)),
                        Err(error) => found.say(&shown(&place), None, &error.to_string()),
                    }
                }
                Ok(_) => found.say(&shown(&place), None, "is no file of a sensible size"),
                Err(error) => found.say(&shown(&place), None, &error.to_string()),
            }
        }
    }
    files
}

/// The root's set-up, read as every review reads it.
fn the_root(root: &Path, found: &mut Sweep) -> Option<LoadedConfig> {
    let mut tree = MemoryTree::new();
    for folder in SETUP_FOLDERS {
        if root.join(folder).is_dir() {
            for (path, bytes) in files(root, Path::new(folder), found) {
                if let Some(path) = path.to_str().and_then(|path| RepoPath::new(path).ok()) {
                    tree.insert(path, bytes);
                }
            }
        }
    }
    let loaded = match config::load(&tree, &SetupLocation::Discover, &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            found.errors(&errors);
            return None;
        }
    };
    let mut seen = BTreeSet::new();
    for name in loaded
        .config
        .auth
        .iter()
        .filter_map(|entry| entry.token_env.as_deref())
    {
        if !seen.insert(name) {
            let words =
                format!("{name} is named more than once: one credential would go to two providers");
            found.say(&in_setup(&loaded, "config.jsonc"), None, &words);
        }
    }
    match config::load_routing(&tree, &SetupLocation::Discover) {
        Ok(Some((manifest, _))) => {
            let names = |auth: &[AuthEntry]| auth.iter().any(|entry| entry.token_env.is_some());
            if names(manifest.auth.as_deref().unwrap_or_default()) && names(&loaded.config.auth) {
                found.say(
                    &in_setup(&loaded, "routing.jsonc"),
                    None,
                    "credentials are named here and in config.jsonc: one of the two has to name all",
                );
            }
        }
        Ok(None) => {}
        Err(errors) => found.errors(&errors),
    }
    Some(loaded)
}

/// A file of the root's set-up, as it is shown.
fn in_setup(loaded: &LoadedConfig, name: &str) -> String {
    match &loaded.setup {
        SetupOrigin::InRepository(Some(folder)) => format!("{}/{name}", folder.to_lossy()),
        _ => name.to_owned(),
    }
}

/// A set-up that is not the root's: only what a scope may say.
fn another(root: &Path, folder: &Path, config: Option<&ReviewConfig>, found: &mut Sweep) {
    let files = files(root, folder, found);
    let fallback = ReviewConfig::default();
    for (path, bytes) in &files {
        let name = path.strip_prefix(folder).unwrap_or(path);
        if name == Path::new("routing.jsonc") {
            let words = "counts only in the root's set-up folder: remove it";
            found.say(&shown(path), None, words);
        }
        if !CONFIG_NAMES.iter().any(|known| name == Path::new(known)) {
            continue;
        }
        match Source::from_bytes(&shown(path), bytes) {
            Ok(source) => {
                if let Err(errors) = parse_scope(&source, config.unwrap_or(&fallback)) {
                    found.errors(&errors);
                }
            }
            Err(problem) => found.diagnostics([&problem]),
        }
    }
}

fn lines(sweep: &Sweep) -> String {
    let mut out = String::new();
    for problem in &sweep.problems {
        let line = problem.line.map_or_else(String::new, |at| format!(":{at}"));
        let _ = writeln!(out, "{}{line}: {}", problem.file, problem.message);
    }
    let _ = writeln!(out, "{}", verdict(sweep));
    out
}

/// One workflow command a problem. Its texts are escaped as the runner wants it.
fn annotations(sweep: &Sweep) -> String {
    let data = |text: &str| text.replace('%', "%25").replace(['\r', '\n'], " ");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for problem in &sweep.problems {
        let line = problem
            .line
            .map_or_else(String::new, |at| format!(",line={at}"));
        let _ = writeln!(
            out,
            "::error file={}{line},title=ecr verify-config::{}: {}",
            property(&problem.file),
            data(&problem.file),
            data(&problem.message)
        );
    }
    let _ = writeln!(out, "{}", verdict(sweep));
    out
}

fn verdict(sweep: &Sweep) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let folders = count(sweep.folders.len(), "set-up folder");
    match sweep.problems.len() {
        0 => format!("the configuration holds ({folders})"),
        n => format!(
            "{} in the configuration ({folders}): nothing may be reviewed with it",
            count(n, "problem")
        ),
    }
}
