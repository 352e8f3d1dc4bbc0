//! `ecr init`: the set-up folder and the workflows of a repository, each file whole, and never through a link.
//!
//! @ref LLP 0018#ecr-init — what is written, and what is left alone

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::{AppError, Environment};
use crate::config::{EMBEDDED_SETUP, NewCredential, SETUP_FOLDERS, credentials, fresh_config};
use crate::git::{HostEnv, Repository};
use crate::render::printable_line;

/// What to write.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--token-env`: variables that hold credentials.
    pub token_env: Vec<String>,
    /// `--force`: files that differ are replaced.
    pub force: bool,
    /// `--no-workflow`: the set-up folder only.
    pub no_workflow: bool,
}

/// The workflows and what they need, from the root of the repository.
pub const WORKFLOWS: &[(&str, &str)] = &[
    (
        ".github/workflows/ecr-review.yml",
        include_str!("../../templates/workflows/review.yml"),
    ),
    (
        ".github/workflows/ecr-command.yml",
        include_str!("../../templates/workflows/command.yml"),
    ),
    (
        ".github/workflows/ecr-dismiss.yml",
        include_str!("../../templates/workflows/dismiss.yml"),
    ),
    (
        ".github/actions/install-ecr/action.yml",
        include_str!("../../.github/actions/install-ecr/action.yml"),
    ),
    (
        ".github/actions/install-ecr/install.sh",
        include_str!("../../.github/actions/install-ecr/install.sh"),
    ),
    (
        ".github/actions/install-ecr/releases.txt",
        include_str!("../../.github/actions/install-ecr/releases.txt"),
    ),
];

/// The variable that the templates of the workflows name.
const TEMPLATE_VARIABLE: &str = "ANTHROPIC_API_KEY";
/// The folder that is made.
const FOLDER: &str = ".expo-code-review";

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    Replaced,
    Same,
    Kept,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Written => "wrote",
            Self::Replaced => "replaced",
            Self::Same => "already there",
            Self::Kept => "kept yours",
        }
    }
}

/// Writes what is missing, and says what was written and what comes next. Nothing is written when anything is in the way.
pub async fn run(request: Request, environment: &Environment) -> Result<String, AppError> {
    let host = environment.variables().collect::<HostEnv>();
    let cancel = CancellationToken::new();
    let repository = Repository::discover(&host, environment.cwd(), cancel)
        .await
        .map_err(|error| AppError::new(error.to_string(), "run it in a repository (`git init`)"))?;
    let root = repository.work_tree().map(Path::to_path_buf);
    let root = root.ok_or_else(|| {
        AppError::new(
            "this repository has no work tree",
            "run it in a checkout of the repository",
        )
    })?;
    let work = move || write(&request, &root);
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| AppError::plain("writing was aborted"))?
}

fn write(request: &Request, root: &Path) -> Result<String, AppError> {
    let credentials = credentials(&request.token_env).map_err(|problem| {
        AppError::new(
            format!("--token-env: {problem}"),
            "name variables, for example --token-env ANTHROPIC_API_KEY",
        )
    })?;
    let older = SETUP_FOLDERS
        .iter()
        .find(|folder| **folder != FOLDER && root.join(folder).is_dir());
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    if older.is_none() {
        for (name, text) in EMBEDDED_SETUP {
            let text = if *name == "config.jsonc" {
                fresh_config(&credentials)
                    .map_err(|errors| AppError::rendered(&errors.render(false)))?
            } else {
                (*text).to_owned()
            };
            files.push((Path::new(FOLDER).join(name), text));
        }
    }
    if !request.no_workflow {
        let workflows = WORKFLOWS.iter();
        files
            .extend(workflows.map(|(name, text)| (PathBuf::from(name), named(text, &credentials))));
    }
    for (file, _) in &files {
        passable(root, file)?;
    }
    let mut out = String::new();
    let mut kept = false;
    for (file, text) in &files {
        let fate = put(root, file, text, request.force)?;
        kept |= fate == Fate::Kept;
        let _ = writeln!(out, "{}: {}", fate.word(), file.display());
    }
    if let Some(folder) = older {
        let _ = writeln!(
            out,
            "{folder} is the set-up of this repository already: ecr reads it where it is, nothing has to move"
        );
    }
    if kept {
        out.push_str("what differs was kept; --force replaces it\n");
    }
    next_steps(&mut out, request, &credentials);
    Ok(out)
}

/// A workflow with the variables of this repository. Without any, no credential is expected and none is passed.
fn named(text: &str, credentials: &[NewCredential]) -> String {
    let names: Vec<&str> = credentials.iter().map(|c| c.variable.as_str()).collect();
    let expected = format!("ECR_EXPECTED_TOKEN_ENV: {TEMPLATE_VARIABLE}");
    let secret = format!("{TEMPLATE_VARIABLE}: ${{{{ secrets.{TEMPLATE_VARIABLE} }}}}");
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.trim() == secret {
            let indent = &line[..line.len() - secret.len()];
            for name in &names {
                let _ = writeln!(out, "{indent}{name}: ${{{{ secrets.{name} }}}}");
            }
            continue;
        }
        if line.trim() == expected {
            let indent = &line[..line.len() - expected.len()];
            if !names.is_empty() {
                let value = names.join(",");
                let _ = writeln!(out, "{indent}ECR_EXPECTED_TOKEN_ENV: {value}");
            }
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Refuses a path with a link or a file where a folder has to be: what is written stays in the repository.
fn passable(root: &Path, file: &Path) -> Result<(), AppError> {
    let in_the_way = |place: &Path, what: &str| {
        let shown = printable_line(&place.to_string_lossy());
        AppError::new(
            format!("{shown} is {what}, so nothing was written"),
            format!("move {shown} away, then run this again"),
        )
    };
    let mut place = PathBuf::new();
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        let meta = match std::fs::symlink_metadata(root.join(&place)) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AppError::plain(format!("{}: {error}", place.display()))),
        };
        if meta.file_type().is_symlink() {
            return Err(in_the_way(&place, "a symbolic link"));
        }
        let last = parts.peek().is_none();
        if last && !meta.is_file() {
            return Err(in_the_way(&place, "no file"));
        }
        if !last && !meta.is_dir() {
            return Err(in_the_way(&place, "no folder"));
        }
    }
    Ok(())
}

fn put(root: &Path, file: &Path, text: &str, force: bool) -> Result<Fate, AppError> {
    let target = root.join(file);
    let failed = |error: std::io::Error| {
        AppError::new(
            format!("cannot write {}: {error}", file.display()),
            "check that the folder can be written to, then run this again",
        )
    };
    let before = match std::fs::read(&target) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let fate = match before {
        Some(bytes) if bytes == text.as_bytes() => return Ok(Fate::Same),
        Some(_) if !force => return Ok(Fate::Kept),
        Some(_) => Fate::Replaced,
        None => Fate::Written,
    };
    let folder = target.parent().unwrap_or(root);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut scratch = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    scratch.write_all(text.as_bytes()).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A temporary file is private; these are for everybody who clones.
        let mode = std::fs::Permissions::from_mode(0o644);
        scratch.as_file().set_permissions(mode).map_err(failed)?;
    }
    scratch
        .persist(&target)
        .map_err(|error| failed(error.error))?;
    Ok(fate)
}

fn next_steps(out: &mut String, request: &Request, credentials: &[NewCredential]) {
    let mut steps: Vec<String> = Vec::new();
    if credentials.is_empty() {
        steps.push("reviews use the built-in checks; for models run `ecr init --force --token-env ANTHROPIC_API_KEY` (or another variable) and set `model` in config.jsonc".to_owned());
    } else {
        steps.push(format!(
            "set `model` in {FOLDER}/config.jsonc, for example \"{}/MODEL\"",
            credentials[0].provider
        ));
    }
    for credential in credentials {
        let name = &credential.variable;
        if !credential.certain {
            steps.push(format!(
                "{name} is taken to be a key of {}; if it is not, change `auth` in config.jsonc",
                credential.provider
            ));
        }
        if !request.no_workflow {
            steps.push(format!("give the workflows the key: gh secret set {name}"));
        }
    }
    steps.push("see whether it works here: ecr doctor, then ecr review".to_owned());
    if !request.no_workflow {
        steps.push("say where jobs get ecr: a line in .github/actions/install-ecr/releases.txt (the file says how)".to_owned());
        steps.push(
            "commit; pull requests are reviewed once this is on the default branch".to_owned(),
        );
    }
    out.push_str("\nNext:\n");
    for (at, step) in steps.iter().enumerate() {
        let _ = writeln!(out, "{}. {step}", at + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflows_name_exactly_the_credentials() {
        let (_, review) = WORKFLOWS[0];
        let two = credentials(&["OPENAI_API_KEY".to_owned(), "LAB_KEY".to_owned()]).unwrap();
        let text = named(review, &two);
        assert!(text.contains("ECR_EXPECTED_TOKEN_ENV: OPENAI_API_KEY,LAB_KEY\n"));
        assert!(text.contains("          LAB_KEY: ${{ secrets.LAB_KEY }}\n"));
        assert!(!text.contains(TEMPLATE_VARIABLE), "{text}");
        let none = named(review, &[]);
        assert!(!none.contains("ECR_EXPECTED_TOKEN_ENV"), "{none}");
        assert!(!none.contains("secrets."), "{none}");
    }
}
