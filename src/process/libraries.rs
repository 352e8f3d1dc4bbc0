//! The files that a dynamic program needs to start: its loader and its libraries.
//!
//! They are found the way the loader finds them, by what the ELF files say and in a fixed list of folders; nothing is
//! executed (`ldd` would).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where a loader looks when the program does not say, most specific first.
const FOLDERS: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/lib/aarch64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// A program needs a handful; more is not believed.
const MOST_FILES: usize = 256;
/// The same for a table of one file, in bytes; that of node is beyond 5 MB.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The loader and the libraries of the ELF program at `program`, and theirs. A static program, and one that is not
/// ELF, needs none. A library that is found nowhere is left out: the loader will name it.
pub fn runtime_files(program: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![program.to_owned()];
    while let Some(path) = waiting.pop() {
        let Some(needs) = Needs::read(&path)? else {
            continue;
        };
        let origin = path.parent().unwrap_or(Path::new("/")).to_owned();
        let loader = needs.loader.into_iter();
        let libraries = needs.libraries.iter().filter_map(|name| {
            needs
                .folders
                .iter()
                .map(|folder| PathBuf::from(expand(folder, &origin)))
                .chain(FOLDERS.iter().map(PathBuf::from))
                .map(|folder| folder.join(name))
                .find(|candidate| candidate.is_file())
        });
        for file in loader.chain(libraries) {
            if found.len() < MOST_FILES && found.insert(file.clone()) {
                waiting.push(file);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// `$ORIGIN` is the folder of the file that names it.
fn expand(folder: &str, origin: &Path) -> String {
    let origin = origin.to_string_lossy();
    folder
        .replace("${ORIGIN}", &origin)
        .replace("$ORIGIN", &origin)
}

/// What one ELF file says it needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    loader: Option<PathBuf>,
    libraries: Vec<String>,
    folders: Vec<String>,
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// A segment: where it is in the file and in memory.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

impl Needs {
    /// `None` for what is not a 64-bit little-endian ELF file, or a broken one.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        Ok(Self::parse(|offset, size| {
            if size > MOST_BYTES {
                return None;
            }
            let mut bytes = vec![0; usize::try_from(size).ok()?];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(bytes)
        }))
    }

    /// Reads through `at`, which gives so many bytes from an offset on.
    fn parse(at: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Self> {
        let header = at(0, 64)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (table, size, count) = (
            word(&header, 32, 8)?,
            word(&header, 54, 2)?,
            word(&header, 56, 2)?,
        );
        let table = at(table, size.checked_mul(count)?)?;
        let segments: Vec<Segment> = table
            .chunks_exact(usize::try_from(size).ok()?.max(56))
            .map(|entry| {
                Some(Segment {
                    kind: word(entry, 0, 4)?,
                    offset: word(entry, 8, 8)?,
                    address: word(entry, 16, 8)?,
                    size: word(entry, 32, 8)?,
                })
            })
            .collect::<Option<_>>()?;
        let of_kind = |kind: u64| segments.iter().find(|segment| segment.kind == kind);
        let mut needs = Self::default();
        if let Some(segment) = of_kind(PT_INTERP) {
            needs.loader = Some(text(&at(segment.offset, segment.size)?, 0)?.into());
        }
        let Some(segment) = of_kind(PT_DYNAMIC) else {
            return Some(needs);
        };
        let dynamic = at(segment.offset, segment.size)?;
        let entries: Vec<(u64, u64)> = dynamic
            .chunks_exact(16)
            .map_while(|entry| Some((word(entry, 0, 8)?, word(entry, 8, 8)?)))
            .take_while(|(tag, _)| *tag != 0)
            .collect();
        let value = |tag: u64| entries.iter().find(|(t, _)| *t == tag).map(|(_, v)| *v);
        let address = value(DT_STRTAB)?;
        let offset = segments
            .iter()
            .filter(|segment| segment.kind == PT_LOAD)
            .find_map(|segment| {
                let within = address.checked_sub(segment.address)?;
                (within < segment.size).then(|| segment.offset.checked_add(within))?
            })?;
        let strings = at(offset, value(DT_STRSZ)?)?;
        for (tag, value) in entries.iter().take(MOST_FILES) {
            match *tag {
                DT_NEEDED => needs.libraries.push(text(&strings, *value)?),
                DT_RPATH | DT_RUNPATH => needs
                    .folders
                    .extend(text(&strings, *value)?.split(':').map(str::to_owned)),
                _ => {}
            }
        }
        Some(needs)
    }
}

/// The little-endian number of `size` bytes at `at`.
fn word(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    )
}

/// The string that begins at `at`, up to its NUL.
fn text(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = memchr::memchr(0, rest)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_real_program_is_resolved() {
        let files = runtime_files(Path::new("/proc/self/exe")).unwrap();
        let names: Vec<String> = files
            .iter()
            .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(
            names.iter().any(|name| name.starts_with("ld-")),
            "{names:?}"
        );
        assert!(
            names.iter().any(|name| name.starts_with("libc.")),
            "{names:?}"
        );
        assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    }

    #[test]
    fn a_script_needs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n".repeat(20)).unwrap();
        assert_eq!(runtime_files(&script).unwrap(), Vec::<PathBuf>::new());
        assert!(runtime_files(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn the_origin_is_the_folder_of_the_file() {
        let origin = Path::new("/opt/tool");
        assert_eq!(expand("$ORIGIN/../lib", origin), "/opt/tool/../lib");
        assert_eq!(expand("${ORIGIN}", origin), "/opt/tool");
    }

    proptest! {
        #[test]
        fn hostile_files_are_read_without_harm(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.extend(tail);
            let _ = Needs::parse(|offset, size| {
                let from = usize::try_from(offset).ok()?;
                bytes.get(from..from.checked_add(usize::try_from(size).ok()?)?).map(<[u8]>::to_vec)
            });
        }
    }
}
