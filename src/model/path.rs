//! Repository paths as git stores them: bytes, `/`-separated, relative to the repository root.

use std::fmt::{self, Write as _};

/// A path inside a repository: non-empty bytes, `/`-separated, relative, without `.`/`..`
/// components, NUL or a `.git` component. It may hold any other byte, newlines and invalid UTF-8 included.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Box<[u8]>);

/// Why bytes are not a repository path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No bytes, or an empty component (`a//b`, trailing `/`).
    #[error("empty path or path component")]
    Empty,
    /// It starts with `/` or a Windows drive.
    #[error("absolute path")]
    Absolute,
    /// It has a `.` or `..` component.
    #[error("path with a `.` or `..` component")]
    Traversal,
    /// It holds a NUL byte.
    #[error("path with a NUL byte")]
    Nul,
    /// It names git's own folder (`.git` in any case).
    #[error("path inside `.git`")]
    DotGit,
}

impl RepoPath {
    /// Checks `bytes` and takes them as a path.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes[0] == b'/' {
            return Err(PathError::Absolute);
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        for part in bytes.split(|b| *b == b'/') {
            match part {
                b"" => return Err(PathError::Empty),
                b"." | b".." => return Err(PathError::Traversal),
                part if part.eq_ignore_ascii_case(b".git") => return Err(PathError::DotGit),
                _ => {}
            }
        }
        Ok(Self(bytes.into()))
    }

    /// The bytes as git stores them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, when it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The path as text; invalid UTF-8 becomes U+FFFD. For display and matching only, never for opening a file.
    pub fn to_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The path for machine output: UTF-8 as it is, otherwise each byte that is not printable
    /// ASCII (and `%`) as `%XX`; the flag says whether it was escaped.
    pub fn to_wire(&self) -> (String, bool) {
        match self.as_str() {
            Some(text) => (text.to_owned(), false),
            None => (self.percent_escaped(), true),
        }
    }

    /// Reads what [`Self::to_wire`] wrote. An escape that is none is an empty path to this: [`PathError::Empty`].
    pub fn from_wire(text: &str, escaped: bool) -> Result<Self, PathError> {
        if !escaped {
            return Self::new(text);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                out.push(byte);
                continue;
            }
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(PathError::Empty);
            };
            out.extend(u8::try_from(high * 16 + low));
        }
        Self::new(out)
    }

    /// The path in the escaped form of [`Self::to_wire`] whatever its bytes are, for lists that hold
    /// one path that needs it.
    pub fn percent_escaped(&self) -> String {
        let mut out = String::with_capacity(self.0.len() + 16);
        for &b in &self.0 {
            if (0x20..0x7f).contains(&b) && b != b'%' {
                out.push(char::from(b));
            } else {
                let _ = write!(out, "%{b:02X}");
            }
        }
        out
    }

    /// The last component.
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&self.0)
    }

    /// The folder, without the trailing `/`; empty for a file at the root.
    pub fn parent(&self) -> &[u8] {
        self.0
            .iter()
            .rposition(|b| *b == b'/')
            .map_or(&[], |at| &self.0[..at])
    }

    /// What follows the last `.` of the file name, unless the name starts with that dot.
    pub fn extension(&self) -> Option<&[u8]> {
        let name = self.file_name();
        match name.iter().rposition(|b| *b == b'.') {
            None | Some(0) => None,
            Some(at) => Some(&name[at + 1..]),
        }
    }

    /// True when `self` is `folder` or lies below it. `folder` has no trailing `/`; empty means the root.
    pub fn is_under(&self, folder: &[u8]) -> bool {
        folder.is_empty()
            || (self.0.starts_with(folder)
                && (self.0.len() == folder.len() || self.0[folder.len()] == b'/'))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepoPath({:?})", String::from_utf8_lossy(&self.0))
    }
}

impl std::str::FromStr for RepoPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_could_leave_the_repository() {
        for (bytes, error) in [
            (&b""[..], PathError::Empty),
            (b"/etc/passwd", PathError::Absolute),
            (b"a//b", PathError::Empty),
            (b"a/", PathError::Empty),
            (b"../a", PathError::Traversal),
            (b"a/./b", PathError::Traversal),
            (b"a\0b", PathError::Nul),
            (b"a/.GIT/config", PathError::DotGit),
        ] {
            assert_eq!(RepoPath::new(bytes), Err(error), "{bytes:?}");
        }
        assert!(RepoPath::new(b"..a/b..").is_ok());
        assert!(RepoPath::new(b"a\nb\xff").is_ok());
    }

    #[test]
    fn parts() {
        let path = RepoPath::new("src/a.test.ts").unwrap();
        assert_eq!(path.file_name(), b"a.test.ts");
        assert_eq!(path.parent(), b"src");
        assert_eq!(path.extension(), Some(&b"ts"[..]));
        assert!(path.is_under(b"src") && path.is_under(b"") && !path.is_under(b"sr"));
        assert_eq!(RepoPath::new(".env").unwrap().extension(), None);
    }

    #[test]
    fn wire_form_escapes_only_what_is_not_utf8() {
        assert_eq!(
            RepoPath::new("å%.rs").unwrap().to_wire(),
            ("å%.rs".into(), false)
        );
        assert_eq!(
            RepoPath::new(b"a%\xff").unwrap().to_wire(),
            ("a%25%FF".into(), true)
        );
        for bytes in [&b"a%\xff\n"[..], b"50%.rs", "å".as_bytes()] {
            let path = RepoPath::new(bytes).unwrap();
            let (text, escaped) = path.to_wire();
            assert_eq!(RepoPath::from_wire(&text, escaped), Ok(path));
        }
        assert!(RepoPath::from_wire("a%f", true).is_err());
    }
}
