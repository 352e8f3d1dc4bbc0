//! A patch from anywhere (`--diff FILE|-`): git's or GNU diff's, with mail text around it.
//!
//! @ref LLP 0001#patches-without-a-repository — what is not understood is refused

use std::sync::Arc;

use bytes::Bytes;

use super::error::{DiffError, Problem, shown};
use super::git::{check_repeats, combined_name};
use super::hunk::check_order;
use super::name::{Label, common, split_header, strip_one};
use super::section::{self, Cursor, Section};
use super::types::{Diff, FileDiff, FileMode};
use crate::model::{ChangeStatus, ObjectId, RepoPath};

/// The mode that is assumed where the patch names none.
const REGULAR: FileMode = FileMode(0o100_644);

/// Parses a patch without any listing: untrusted text, names and counts as the patch gives them.
///
/// Takes git's diffs (any prefix of one folder, or none) and `diff -u`, alone or in mails and
/// `git show` output, with `\n` or `\r\n`. An input of nothing but white space is an empty diff;
/// text without a patch is [`DiffError::NoPatch`]. Added or removed lines outside a hunk, hunks
/// without a file, combined diffs, files changed twice and paths that leave the repository are errors.
pub fn parse_patch(patch: Arc<[u8]>) -> Result<Diff, DiffError> {
    let mut cursor = Cursor::new(&patch);
    if patch.starts_with(b"\xef\xbb\xbf") {
        cursor.pos = 3;
    }
    let mut reader = Reader {
        files: Vec::new(),
        text: false,
        mail: false,
    };
    while let Some(line) = cursor.peek() {
        if line.starts_with(b"diff --git ") {
            reader.git_section(&mut cursor, line)?;
        } else if starts_plain(&cursor, line) {
            reader.plain_section(&mut cursor)?;
        } else {
            reader.between(&cursor, line)?;
            cursor.advance();
        }
    }
    if reader.files.is_empty() && reader.text {
        return Err(DiffError::NoPatch);
    }
    let files = reader.files;
    check_repeats(&files)?;
    let patch = Bytes::from_owner(patch);
    Ok(Diff { patch, files })
}

/// `---`, `+++` and `@@` in a row, or a binary notice of GNU diff.
fn starts_plain(cursor: &Cursor<'_>, line: &[u8]) -> bool {
    if section::is_binary_notice(line) {
        return true;
    }
    if !line.starts_with(b"--- ") {
        return false;
    }
    let mut next = *cursor;
    next.advance();
    next.peek().is_some_and(|l| l.starts_with(b"+++ "))
        && next.peek_second().is_some_and(|l| l.starts_with(b"@@ -"))
}

struct Reader {
    files: Vec<FileDiff>,
    /// Some line was not blank.
    text: bool,
    /// Inside the text of a mail or commit, where a list may start with `-` or `+`.
    mail: bool,
}

impl Reader {
    /// A line outside all sections: text, unless it could be a piece of a change.
    fn between(&mut self, cursor: &Cursor<'_>, line: &[u8]) -> Result<(), DiffError> {
        self.text |= !line.iter().all(u8::is_ascii_whitespace);
        if [&b"From "[..], b"From: ", b"Subject: ", b"commit "]
            .iter()
            .any(|start| line.starts_with(start))
        {
            self.mail = true;
        }
        if let Some(name) = combined_name(line) {
            return Err(DiffError::Combined { file: shown(name) });
        }
        let refused = |what| Err(cursor.problem(what).in_file(cursor.patch, None));
        if line.starts_with(b"@@@ ") {
            return refused("a combined hunk without its file");
        }
        if line.starts_with(b"@@ -") {
            return refused("a hunk without its file");
        }
        if line == b"GIT binary patch" {
            return refused("a binary patch without its file");
        }
        if line.starts_with(b"* Unmerged path ") {
            return refused("a file in conflict has no diff; resolve it first");
        }
        if self.mail {
            return Ok(());
        }
        match line {
            // The end of the text above the patch, and a mail's signature.
            b"---" | b"--" | b"-- " => Ok(()),
            [b'+' | b'-', ..] => refused("an added or removed line outside any hunk"),
            // patch(1) would apply these.
            [b'<' | b'>', b' ', ..] => refused("a line of a normal diff; use `diff -u`"),
            _ if line.starts_with(b"***************") => refused("a context diff; use `diff -u`"),
            [b'\\', ..] => refused("a no-newline marker outside any hunk"),
            _ if line.starts_with(b"Only in ") => {
                refused("a file that is on one side only is not shown; use `diff -N`")
            }
            _ if line.starts_with(b"Submodule ") => {
                refused("a submodule in log form; use `git diff --submodule=short`")
            }
            _ => Ok(()),
        }
    }

    fn git_section(&mut self, cursor: &mut Cursor<'_>, line: &[u8]) -> Result<(), DiffError> {
        let start = cursor.pos;
        let patch = cursor.patch;
        let header = &line[b"diff --git ".len()..];
        cursor.advance();
        let section = section::parse(cursor).map_err(|p| p.in_file(patch, Some(header)))?;
        self.push(cursor, start, section, |section| {
            git_names(header, section).ok_or("the names in its header cannot be told apart")
        })
    }

    fn plain_section(&mut self, cursor: &mut Cursor<'_>) -> Result<(), DiffError> {
        let start = cursor.pos;
        let line = cursor.peek().unwrap_or_default();
        let mut section = Section::default();
        let names = if section::is_binary_notice(line) {
            section.binary = true;
            cursor.advance();
            binary_names(line)
        } else {
            section
                .labels_and_hunks(cursor)
                .map_err(|p| p.in_file(cursor.patch, Some(line)))?;
            plain_names(section.old_label.as_ref(), section.new_label.as_ref())
        };
        self.push(cursor, start, section, |_| names.ok_or("it names no file"))
    }

    fn push(
        &mut self,
        cursor: &Cursor<'_>,
        start: usize,
        section: Section,
        names: impl FnOnce(&Section) -> Result<Names, &'static str>,
    ) -> Result<(), DiffError> {
        let patch = cursor.patch;
        let Names { old, new } =
            names(&section).map_err(|what| Problem { at: start, what }.in_file(patch, None))?;
        let file = build(patch, start..cursor.pos, section, (old, new))?;
        self.text = true;
        self.mail = false;
        match self.files.last_mut() {
            Some(last) if is_type_change(last, &file) => {
                last.status = ChangeStatus::TypeChanged;
                last.new_mode = file.new_mode;
                last.new_id = file.new_id;
                last.added = file.added;
                last.section.end = file.section.end;
                last.hunks.extend(file.hunks);
                last.binary &= file.binary;
            }
            _ => self.files.push(file),
        }
        Ok(())
    }
}

/// git writes a type change as a deletion and an addition of the same path.
fn is_type_change(deleted: &FileDiff, added: &FileDiff) -> bool {
    const KIND: u32 = 0o170_000;
    deleted.path == added.path
        && deleted.status == ChangeStatus::Deleted
        && added.status == ChangeStatus::Added
        && deleted.section.end == added.section.start
        && deleted.old_mode.0 & KIND != added.new_mode.0 & KIND
}

/// The names of both sides; equal unless the file moved.
struct Names {
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Names {
    fn same(name: &[u8]) -> Self {
        Self {
            old: name.to_vec(),
            new: name.to_vec(),
        }
    }
}

fn git_names(header: &[u8], section: &Section) -> Option<Names> {
    let old_label = section.old_label.as_ref().and_then(Label::name);
    let new_label = section.new_label.as_ref().and_then(Label::name);
    if section.rename || section.copy {
        let (old, new) = (section.from.clone()?, section.to.clone()?);
        let fits = |label: Option<&[u8]>, name: &[u8]| {
            label.is_none_or(|label| label == name || strip_one(label) == Some(name))
        };
        return (fits(old_label, &old) && fits(new_label, &new)).then_some(Names { old, new });
    }
    if section.from.is_some() || section.to.is_some() {
        return None;
    }
    let (old, new) = split_header(header, old_label, new_label)?;
    let fits = |label: Option<&[u8]>, name: &[u8]| label.is_none_or(|label| label == name);
    if !fits(old_label, &old) || !fits(new_label, &new) {
        return None;
    }
    common(&old, &new).map(Names::same)
}

/// Names of `diff -u`: a shared path below one differing folder, or else the new name as it stands.
fn plain_names(old: Option<&Label>, new: Option<&Label>) -> Option<Names> {
    let (old, new) = (old?, new?);
    let full = |label: &Label| match label {
        Label::Absent(name) if name == b"/dev/null" => None,
        Label::Absent(name) | Label::Name(name) => Some(name.clone()),
    };
    match (full(old), full(new)) {
        (Some(old), Some(new)) => Some(Names::same(common(&old, &new).unwrap_or(&new))),
        (Some(name), None) | (None, Some(name)) => Some(Names::same(
            strip_one(&name)
                .filter(|_| matches!(name.first_chunk(), Some(b"a/" | b"b/")))
                .unwrap_or(&name),
        )),
        (None, None) => None,
    }
}

/// `Binary files X and Y differ` where exactly one ` and ` splits it into two names of one file.
fn binary_names(line: &[u8]) -> Option<Names> {
    let inner = line
        .strip_prefix(b"Binary files ")?
        .strip_suffix(b" differ")?;
    let mut splits = memchr::memmem::find_iter(inner, b" and ");
    let (at, None) = (splits.next()?, splits.next()) else {
        return None;
    };
    let old = Label::parse(&inner[..at])?;
    let new = Label::parse(&inner[at + b" and ".len()..])?;
    plain_names(Some(&old), Some(&new))
}

fn path(name: &[u8]) -> Result<RepoPath, DiffError> {
    RepoPath::new(name).map_err(|source| DiffError::Path {
        file: shown(name),
        source,
    })
}

fn build(
    patch: &[u8],
    range: std::ops::Range<usize>,
    section: Section,
    (old, new): (Vec<u8>, Vec<u8>),
) -> Result<FileDiff, DiffError> {
    let new_path = path(&new)?;
    let old_path = (section.rename || section.copy)
        .then(|| path(&old))
        .transpose()?;
    check_order(&section.hunks, false).map_err(|p| p.in_file(patch, Some(&new)))?;
    let absent = |label: &Option<Label>| matches!(label, Some(Label::Absent(_)));
    let created = section.created || absent(&section.old_label);
    let gone = section.deleted_file || absent(&section.new_label);
    let contradiction = if created && gone {
        Some("it is both created and deleted")
    } else if (section.created && matches!(section.old_label, Some(Label::Name(_))))
        || (section.deleted_file && matches!(section.new_label, Some(Label::Name(_))))
        || ((created || gone) && old_path.is_some())
    {
        Some("its headers contradict each other")
    } else if section
        .hunks
        .iter()
        .any(|hunk| (created && hunk.old_len > 0) || (gone && hunk.new_len > 0))
    {
        Some("it has lines on a side where it does not exist")
    } else {
        None
    };
    if let Some(what) = contradiction {
        return Err(Problem {
            at: range.start,
            what,
        }
        .in_file(patch, Some(&new)));
    }
    let old_mode = section.old_mode.unwrap_or(REGULAR);
    let new_mode = section.new_mode.unwrap_or(REGULAR);
    let status = if created {
        ChangeStatus::Added
    } else if gone {
        ChangeStatus::Deleted
    } else if section.rename {
        ChangeStatus::Renamed
    } else if section.copy {
        ChangeStatus::Copied
    } else {
        ChangeStatus::Modified
    };
    let (old_id, new_id) = section.ids.map_or((None, None), |(old, new)| {
        (object_id(&patch[old]), object_id(&patch[new]))
    });
    Ok(FileDiff {
        path: new_path,
        score: section.score.filter(|_| old_path.is_some()),
        old_path,
        status,
        old_mode: if created {
            FileMode::default()
        } else {
            old_mode
        },
        new_mode: if gone { FileMode::default() } else { new_mode },
        old_id,
        new_id,
        added: section.added,
        deleted: section.deleted,
        binary: section.binary,
        section: range,
        hunks: section.hunks,
    })
}

/// A full id that is not zero; abbreviated ones are unknown.
fn object_id(text: &[u8]) -> Option<ObjectId> {
    let id = ObjectId::new(std::str::from_utf8(text).ok()?).ok()?;
    (!id.is_zero()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: impl AsRef<[u8]>) -> Result<Diff, DiffError> {
        parse_patch(Arc::from(text.as_ref()))
    }

    /// Path, status letter, added, deleted, binary of each file.
    fn census(text: &str) -> Vec<(String, ChangeStatus, u32, u32, bool)> {
        parse(text)
            .unwrap()
            .files
            .into_iter()
            .map(|f| (f.path.to_lossy(), f.status, f.added, f.deleted, f.binary))
            .collect()
    }

    const M: ChangeStatus = ChangeStatus::Modified;

    /// The known answers of an older tool's test vectors, and better ones where it was wrong:
    /// copies keep their status, names with ` b/`, quoted names and mnemonic prefixes are understood.
    #[test]
    fn known_answers() {
        let added = census(
            "diff --git a/n.rs b/n.rs\nnew file mode 100644\n--- /dev/null\n+++ b/n.rs\n@@ -0,0 +1 @@\n+x",
        );
        assert_eq!(added, [("n.rs".into(), ChangeStatus::Added, 1, 0, false)]);
        let deleted = census(
            "diff --git a/d.rs b/d.rs\ndeleted file mode 100644\n--- a/d.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x",
        );
        assert_eq!(
            deleted,
            [("d.rs".into(), ChangeStatus::Deleted, 0, 1, false)]
        );
        let two = census(
            "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/c.rs b/c.rs\n--- a/c.rs\n+++ b/c.rs\n@@ -1 +1 @@\n-c\n+d",
        );
        assert_eq!(two[1], ("c.rs".into(), M, 1, 1, false));
        let noise = census(
            "noise\ndiff --git a/m.rs b/m.rs\nindex 111..222 100644\n--- a/m.rs\n+++ b/m.rs\n@@ -1,1 +1,2 @@\n let x = 1;\n+let y = 2;",
        );
        assert_eq!(noise, [("m.rs".into(), M, 1, 0, false)]);
        let renamed = census(
            "diff --git a/old/x.rs b/new/x.rs\nsimilarity index 100%\nrename from old/x.rs\nrename to new/x.rs",
        );
        assert_eq!(renamed[0].1, ChangeStatus::Renamed);
        let copied = census(
            "diff --git a/x.rs b/y.rs\nsimilarity index 90%\ncopy from x.rs\ncopy to y.rs\n--- a/x.rs\n+++ b/y.rs\n@@ -1 +1 @@\n-a\n+b",
        );
        assert_eq!(copied, [("y.rs".into(), ChangeStatus::Copied, 1, 1, false)]);
        let space = census(
            "diff --git a/my file.rs b/my file.rs\n--- a/my file.rs\t\n+++ b/my file.rs\t\n@@ -1 +1 @@\n-a\n+b",
        );
        assert_eq!(space[0].0, "my file.rs");
        let module = census(
            "diff --git a/vendor/lib b/vendor/lib\nindex 1a..2b 160000\n--- a/vendor/lib\n+++ b/vendor/lib\n@@ -1 +1 @@\n-Subproject commit 1a\n+Subproject commit 2b",
        );
        assert_eq!(module, [("vendor/lib".into(), M, 1, 1, false)]);
        let binary = census(
            "diff --git a/p.bin b/p.bin\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZQ%VgLXD3IGHE\n\n",
        );
        assert_eq!(binary, [("p.bin".into(), M, 0, 0, true)]);
        let crlf = census(
            "diff --git a/w.rs b/w.rs\r\n--- a/w.rs\r\n+++ b/w.rs\r\n@@ -1 +1 @@\r\n-a\r\n+b\r",
        );
        assert_eq!(crlf, [("w.rs".into(), M, 1, 1, false)]);
        let inner = census(
            "diff --git a/x b/y.bin b/x b/y.bin\nnew file mode 100644\nBinary files /dev/null and b/x b/y.bin differ",
        );
        assert_eq!(
            inner,
            [("x b/y.bin".into(), ChangeStatus::Added, 0, 0, true)]
        );
        let quoted = census(
            "diff --git \"a/caf\\303\\251.bin\" \"b/caf\\303\\251.bin\"\nBinary files a and b differ",
        );
        assert_eq!(quoted, [("café.bin".into(), M, 0, 0, true)]);
        let mnemonic =
            census("diff --git i/a.rs w/a.rs\n--- i/a.rs\n+++ w/a.rs\n@@ -1 +1 @@\n-a\n+b");
        assert_eq!(mnemonic[0].0, "a.rs");
    }

    #[test]
    fn empty_input_and_no_patch_differ() {
        assert_eq!(parse("  \n").unwrap().files, []);
        assert_eq!(parse("").unwrap().files, []);
        assert_eq!(parse("hello\n"), Err(DiffError::NoPatch));
    }

    #[test]
    fn plain_diffs() {
        let text = "diff -ruN n1/a n2/a\n--- n1/a\t2026-11-30 23:16:04.3 +0000\n+++ n2/a\t2026-11-30 23:16:04.3 +0000\n@@ -1 +1 @@\n-a\n+b\ndiff -ruN n1/new n2/new\n--- n1/new\t1970-01-01 00:00:00.000000000 +0000\n+++ n2/new\t2026-11-30 23:16:04.3 +0000\n@@ -0,0 +1 @@\n+n\nBinary files n1/b and n2/b differ\n";
        let files = census(text);
        assert_eq!(files[0], ("a".into(), M, 1, 1, false));
        assert_eq!(files[1], ("new".into(), ChangeStatus::Added, 1, 0, false));
        assert_eq!(files[2], ("b".into(), M, 0, 0, true));
        let two_names = census("--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(two_names[0].0, "f");
    }

    #[test]
    fn mails_and_commits() {
        let text = "From 644f87f6aa50c0603655e344cfc3dca9e2e3bba7 Mon Sep 17 00:00:00 2001\nFrom: a <a@b>\nSubject: [PATCH] x\n\n- one point\n+ another\n---\n f | 1 +\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n f\n--- \n-- \n2.47.3\n\nFrom 644f87f6aa50c0603655e344cfc3dca9e2e3bba7 Mon Sep\nSubject: y\n\n- z\n---\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(
            census(text),
            [("f".into(), M, 0, 1, false), ("g".into(), M, 1, 1, false)]
        );
    }

    #[test]
    fn nothing_is_skipped_silently() {
        let file = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
        for (tail, word) in [
            ("+hidden\n", "outside any hunk"),
            ("-hidden\n", "outside any hunk"),
            ("\\ No newline at end of file\n\\ No newline\n", "marker"),
            ("@@ -5 +5 @@x\n-a\n", "malformed '@@'"),
            ("text\n@@ -5 +5 @@\n-a\n+b\n", "without its file"),
            ("@@@ -1 -1 +1 @@@\n", "combined"),
            ("diff --cc g\n", "combined"),
            ("Only in b: new\n", "one side only"),
            ("Submodule x 12..34:\n  > y\n", "submodule"),
            ("1c1\n< a\n---\n> b\n", "normal diff"),
            ("***************\n*** 1 ****\n", "context diff"),
            ("* Unmerged path x\n", "conflict"),
            ("1c1\n< a\n---\n> b\n", "normal diff"),
            ("***************\n*** 1 ****\n", "context diff"),
            ("--- a/x\n+++ b/x\n", "outside any hunk"),
            (file, "twice"),
            ("diff --git a/../x b/../x\n", "component"),
            ("diff --git a//etc/x b//etc/x\n", "absolute"),
            ("diff --git a/.git/x b/.git/x\n", ".git"),
            ("diff --git a/x b/y\n", "told apart"),
            (
                "diff --git a/x b/x\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
                "told apart",
            ),
            (
                "diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
                "contradict",
            ),
            (
                "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
                "does not exist",
            ),
            (
                "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-a\n+b\n",
                "ends inside",
            ),
        ] {
            let error = parse(format!("{file}{tail}")).expect_err(tail).to_string();
            assert!(error.contains(word), "{tail:?}: {error}");
        }
        // A hunk may be split by a second one in the same file.
        assert_eq!(census(&format!("{file}@@ -5 +5 @@\n-a\n+b\n"))[0].2, 2);
    }

    #[test]
    fn type_changes_are_one_file() {
        let text = "diff --git a/t b/t\ndeleted file mode 100644\n--- a/t\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/t b/t\nnew file mode 120000\n--- /dev/null\n+++ b/t\n@@ -0,0 +1 @@\n+f\n\\ No newline at end of file\n";
        let diff = parse(text).unwrap();
        assert_eq!(diff.files.len(), 1);
        assert_eq!(diff.files[0].status, ChangeStatus::TypeChanged);
        assert_eq!(diff.files[0].hunks.len(), 2);
        assert_eq!(diff.files[0].new_mode, FileMode::SYMLINK);
    }
}
