//! The NUL-separated listings: `--raw -z` and `--numstat -z`, alone or in front of a patch.

use std::ops::Range;

use memchr::memchr;

use super::error::{DiffError, shown};
use super::section::parse_mode;
use super::types::FileMode;
use crate::model::{ChangeStatus, ObjectId, RepoPath};

/// One entry of `--raw -z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEntry {
    pub(super) status: ChangeStatus,
    pub(super) score: Option<u8>,
    pub(super) old_mode: FileMode,
    pub(super) new_mode: FileMode,
    pub(super) old_id: Option<ObjectId>,
    pub(super) new_id: Option<ObjectId>,
    pub(super) old_path: Option<RepoPath>,
    pub(super) path: RepoPath,
    /// An entry with several old sides (`::…`); it has no counts of its own.
    pub(super) combined: bool,
}

/// One entry of `--numstat -z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts<'a> {
    /// Added and deleted lines; `None` for a binary file.
    pub(super) lines: Option<(u32, u32)>,
    pub(super) old_path: Option<&'a [u8]>,
    pub(super) path: &'a [u8],
}

struct Fields<'a> {
    part: &'static str,
    text: &'a [u8],
    pos: usize,
}

impl<'a> Fields<'a> {
    fn bad<T>(&self, problem: &'static str) -> Result<T, DiffError> {
        Err(DiffError::Listing {
            part: self.part,
            at: self.pos,
            problem,
        })
    }

    /// The bytes up to the next NUL, which is eaten.
    fn field(&mut self) -> Result<&'a [u8], DiffError> {
        let rest = &self.text[self.pos..];
        let Some(len) = memchr(0, rest) else {
            return self.bad("it ends inside an entry");
        };
        self.pos += len + 1;
        Ok(&rest[..len])
    }

    fn path(&mut self) -> Result<RepoPath, DiffError> {
        let name = self.field()?;
        RepoPath::new(name).map_err(|source| DiffError::Path {
            file: shown(name),
            source,
        })
    }

    fn raw_entry(&mut self) -> Result<RawEntry, DiffError> {
        let start = self.pos;
        let meta = self.field()?;
        let parsed = parse_meta(meta);
        let Some(mut entry) = parsed else {
            self.pos = start;
            return self.bad("an entry that git does not print");
        };
        if matches!(entry.0, ChangeStatus::Renamed | ChangeStatus::Copied) && !entry.1.combined {
            entry.1.old_path = Some(self.path()?);
        }
        let path = self.path()?;
        let (status, meta) = entry;
        Ok(RawEntry {
            status,
            score: meta.score,
            old_mode: meta.old_mode,
            new_mode: meta.new_mode,
            old_id: meta.old_id,
            new_id: meta.new_id,
            old_path: meta.old_path,
            path,
            combined: meta.combined,
        })
    }

    fn counts(&mut self) -> Result<Counts<'a>, DiffError> {
        let start = self.pos;
        let line = self.field()?;
        let mut columns = line.splitn(3, |b| *b == b'\t');
        let (Some(added), Some(deleted), Some(path)) =
            (columns.next(), columns.next(), columns.next())
        else {
            self.pos = start;
            return self.bad("an entry without two counts");
        };
        let lines = if (added, deleted) == (b"-", b"-") {
            None
        } else if let (Some(added), Some(deleted)) = (parse_count(added), parse_count(deleted)) {
            Some((added, deleted))
        } else {
            self.pos = start;
            return self.bad("a malformed count");
        };
        if !path.is_empty() {
            return Ok(Counts {
                lines,
                old_path: None,
                path,
            });
        }
        Ok(Counts {
            lines,
            old_path: Some(self.field()?),
            path: self.field()?,
        })
    }
}

struct Meta {
    score: Option<u8>,
    old_mode: FileMode,
    new_mode: FileMode,
    old_id: Option<ObjectId>,
    new_id: Option<ObjectId>,
    old_path: Option<RepoPath>,
    combined: bool,
}

/// `:<mode> <mode> <id> <id> <status>[score]`; with n colons n old sides.
fn parse_meta(meta: &[u8]) -> Option<(ChangeStatus, Meta)> {
    let parents = meta.iter().take_while(|b| **b == b':').count();
    if parents == 0 {
        return None;
    }
    let text = std::str::from_utf8(&meta[parents..]).ok()?;
    let fields: Vec<&str> = text.split(' ').collect();
    if fields.len() != 2 * (parents + 1) + 1 {
        return None;
    }
    let mode = |at: usize| parse_mode(fields[at].as_bytes());
    let id = |at: usize| {
        let id = ObjectId::new(fields[parents + 1 + at]).ok()?;
        Some((!id.is_zero()).then_some(id))
    };
    let letters = fields[2 * (parents + 1)];
    let (letter, score) = letters.split_at_checked(1)?;
    let combined = parents > 1;
    let status = match letter {
        _ if combined => ChangeStatus::Unmerged,
        "A" => ChangeStatus::Added,
        "C" => ChangeStatus::Copied,
        "D" => ChangeStatus::Deleted,
        "M" => ChangeStatus::Modified,
        "R" => ChangeStatus::Renamed,
        "T" => ChangeStatus::TypeChanged,
        "U" => ChangeStatus::Unmerged,
        _ => return None,
    };
    let score = match score {
        _ if combined => None,
        "" => None,
        digits => Some(digits.parse().ok().filter(|n: &u8| *n <= 100)?),
    };
    let meta = Meta {
        score,
        old_mode: mode(0)?,
        new_mode: mode(parents)?,
        old_id: id(0)?,
        new_id: id(parents)?,
        old_path: None,
        combined,
    };
    Some((status, meta))
}

fn parse_count(text: &[u8]) -> Option<u32> {
    if !text.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub(super) fn parse_raw(raw_z: &[u8]) -> Result<Vec<RawEntry>, DiffError> {
    let mut fields = Fields {
        part: "raw",
        text: raw_z,
        pos: 0,
    };
    let mut entries = Vec::new();
    while fields.pos < raw_z.len() {
        entries.push(fields.raw_entry()?);
    }
    Ok(entries)
}

pub(super) fn parse_numstat(numstat_z: &[u8]) -> Result<Vec<Counts<'_>>, DiffError> {
    let mut fields = Fields {
        part: "numstat",
        text: numstat_z,
        pos: 0,
    };
    let mut counts = Vec::new();
    while fields.pos < numstat_z.len() {
        counts.push(fields.counts()?);
    }
    Ok(counts)
}

/// Ranges of the raw listing, the counts and the patch in one output.
pub type Parts = (Range<usize>, Range<usize>, Range<usize>);

/// The three parts of `git diff --raw --numstat -p -z` as ranges of its output: raw entries, counts, patch.
///
/// The parts are found by walking the entries, so names with newlines or with text that looks like
/// another entry do not matter. Errors: [`DiffError::Listing`] or [`DiffError::Path`].
pub fn split_combined(output: &[u8]) -> Result<Parts, DiffError> {
    let mut fields = Fields {
        part: "raw",
        text: output,
        pos: 0,
    };
    while output.get(fields.pos) == Some(&b':') {
        fields.raw_entry()?;
    }
    let raw = 0..fields.pos;
    fields.part = "numstat";
    // git separates the listings from the patch with one empty entry; no entry starts with NUL.
    while output.get(fields.pos).is_some_and(|b| *b != 0) {
        fields.counts()?;
    }
    let numstat = raw.end..fields.pos;
    let patch = (fields.pos + 1).min(output.len())..output.len();
    Ok((raw, numstat, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1c1039626036aba6162dbf5b6c42930d67a6f32e";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    #[test]
    fn raw_entries() {
        let raw = format!(
            ":100644 100755 {A} {ZERO} M\0a\nb\0:100644 100644 {A} {A} R087\0old\0new\0::100644 100644 100644 {A} {A} {ZERO} MM\0c\0"
        );
        let entries = parse_raw(raw.as_bytes()).unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0].path.as_bytes(), b"a\nb");
        assert_eq!(entries[0].new_id, None);
        assert_eq!(entries[1].score, Some(87));
        assert_eq!(entries[1].old_path.as_ref().unwrap().as_bytes(), b"old");
        assert!(entries[2].combined);
        assert_eq!(entries[2].status, ChangeStatus::Unmerged);
    }

    #[test]
    fn malformed_listings() {
        for bad in [
            "x\0".to_owned(),
            format!(":100644 100644 {A} {A} M\0a"),
            format!(":100644 100644 {A} {A} X\0a\0"),
            format!(":100644 100644 {A} M\0a\0"),
            format!(":100644 100644 1c10396 {A} M\0a\0"),
            format!(":100644 100644 {A} {A} R999\0a\0b\0"),
            format!(":100644 100644 {A} {A} M\0../a\0"),
            format!(":100648 100644 {A} {A} M\0a\0"),
        ] {
            assert!(parse_raw(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for bad in [
            "1\t2\0",
            "1\t-\ta\0",
            "+1\t1\ta\0",
            "1\t1\t\0a\0",
            "99999999999\t1\ta\0",
        ] {
            assert!(parse_numstat(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn counts() {
        let counts = parse_numstat(b"1\t2\ta\tb\n\0-\t-\t\0old\0new\0").unwrap();
        assert_eq!(counts[0].path, b"a\tb\n");
        assert_eq!(counts[0].lines, Some((1, 2)));
        assert_eq!(counts[1].lines, None);
        assert_eq!(counts[1].old_path, Some(&b"old"[..]));
    }

    #[test]
    fn one_run_is_split_by_structure() {
        let raw = format!(":100644 100644 {A} {A} M\0x\n1\t1\ty\0");
        let output = format!("{raw}1\t1\tx\n1\t1\ty\0\0diff --git");
        let (r, n, p) = split_combined(output.as_bytes()).unwrap();
        assert_eq!(&output[r], raw);
        assert_eq!(&output[n], "1\t1\tx\n1\t1\ty\0");
        assert_eq!(&output[p], "diff --git");
        assert_eq!(split_combined(b"").unwrap(), (0..0, 0..0, 0..0));
        assert!(split_combined(b"diff --git a/x b/x\n").is_err());
    }
}
