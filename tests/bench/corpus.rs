//! Repositories made by real git from generated source text, the same on every machine.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::languages::{self, LANGUAGES, Language, Line, NOUNS, Random, VERBS};

/// Bumped when the generated text changes, so that cached repositories are made anew.
const VERSION: u32 = 3;

/// The branch before the change and the one with it.
pub(crate) const BASE: &str = "main";
/// See [`BASE`].
pub(crate) const HEAD: &str = "topic";

/// What a repository holds and what its change does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The folder in the cache.
    pub(crate) name: &'static str,
    /// Files before the change.
    pub(crate) files: usize,
    /// Source lines of a file, about.
    pub(crate) lines: usize,
    /// Files that are edited in place.
    pub(crate) edited: usize,
    /// Files that are renamed and edited.
    pub(crate) renamed: usize,
    /// Files that are new.
    pub(crate) added: usize,
    /// Files that go.
    pub(crate) deleted: usize,
    /// Places that are edited in a file.
    pub(crate) hunks: usize,
    /// Lines that are replaced at each of them.
    pub(crate) replaced: usize,
}

/// A file: its place and its lines.
struct Source {
    path: String,
    language: &'static Language,
    lines: Vec<Line>,
}

fn source(random: &mut Random, number: usize, lines: usize) -> Source {
    let language = &LANGUAGES[random.below(LANGUAGES.len())];
    // About 40 files a folder, folders three deep.
    let folder = number / 40;
    let path = format!(
        "{}/{}{}/{}{}.{}",
        NOUNS[folder % 7],
        VERBS[folder % VERBS.len()],
        folder / 7,
        NOUNS[number % NOUNS.len()],
        number,
        language.end
    );
    let count = lines / 2 + random.below(lines);
    Source {
        path,
        language,
        lines: languages::file(random, language, count),
    }
}

/// Replaces `shape.replaced` statements at `shape.hunks` places that lie evenly apart.
fn edit(random: &mut Random, file: &mut Source, shape: &Shape) {
    let step = (file.lines.len() / shape.hunks.max(1)).max(1);
    for hunk in 0..shape.hunks {
        let from = (hunk * step + step / 2).min(file.lines.len());
        let mut left = shape.replaced;
        for line in &mut file.lines[from..] {
            if left == 0 {
                break;
            }
            left -= usize::from(line.replace(random, file.language));
        }
    }
}

/// Writes one side of the repository for `git fast-import`.
struct Import<W> {
    out: W,
}

impl<W: Write> Import<W> {
    fn commit(&mut self, branch: &str, from: Option<&str>) -> io::Result<()> {
        writeln!(self.out, "commit refs/heads/{branch}")?;
        writeln!(
            self.out,
            "committer Bench <bench@example.com> 1700000000 +0000"
        )?;
        writeln!(self.out, "data 6\nbench")?;
        match from {
            Some(from) => writeln!(self.out, "from refs/heads/{from}"),
            None => Ok(()),
        }
    }

    fn file(&mut self, file: &Source) -> io::Result<()> {
        let size: usize = file.lines.iter().map(|line| line.text.len()).sum();
        writeln!(self.out, "M 100644 inline {}\ndata {size}", file.path)?;
        for line in &file.lines {
            self.out.write_all(line.text.as_bytes())?;
        }
        self.out.write_all(b"\n")
    }

    fn delete(&mut self, path: &str) -> io::Result<()> {
        writeln!(self.out, "D {path}")
    }
}

fn import(shape: &Shape, out: impl Write) -> io::Result<()> {
    let mut random = Random(shape.files as u64);
    let mut import = Import { out };
    let mut files: Vec<Source> = Vec::with_capacity(shape.files);
    import.commit(BASE, None)?;
    for number in 0..shape.files {
        let file = source(&mut random, number, shape.lines);
        import.file(&file)?;
        files.push(file);
    }
    import.commit(HEAD, Some(BASE))?;
    // Changed files lie all over the tree.
    let touched = shape.edited + shape.renamed + shape.deleted;
    let at = |n: usize| n * shape.files / touched.max(1);
    for n in 0..touched {
        let file = &mut files[at(n)];
        let kind = (n * 7919) % touched.max(1);
        if kind < shape.deleted {
            import.delete(&file.path)?;
        } else {
            if kind < shape.deleted + shape.renamed {
                import.delete(&file.path)?;
                file.path = format!("moved/{}", file.path);
            }
            edit(&mut random, file, shape);
            import.file(file)?;
        }
    }
    for number in 0..shape.added {
        let file = source(&mut random, shape.files + number, shape.lines);
        import.file(&file)?;
    }
    import.out.flush()
}

fn git(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn succeed(mut command: Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {status}")))
}

/// The repository of `shape`: from the cache, or made now. The branch under review is checked out.
pub(crate) fn repository(cache: &Path, shape: &Shape) -> io::Result<PathBuf> {
    let folder = cache.join(format!("{}-v{VERSION}", shape.name));
    let done = folder.join(".git/bench-complete");
    if done.exists() {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    succeed(git(&folder, &["init", "--quiet", "--initial-branch=main"]))?;
    let mut fast = git(&folder, &["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = fast.stdin.take() {
        import(shape, io::BufWriter::new(stdin))?;
    }
    if !fast.wait()?.success() {
        return Err(io::Error::other("git fast-import failed"));
    }
    succeed(git(&folder, &["repack", "-a", "-d", "-q"]))?;
    succeed(git(&folder, &["checkout", "--quiet", "--force", HEAD]))?;
    fs::write(done, "")?;
    Ok(folder)
}
