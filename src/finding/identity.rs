//! The identity of a finding: what dismissals refer to, across runs and versions.
//!
//! @ref LLP 0006#identity — what makes two findings the same

use sha1::{Digest, Sha1};

use super::fold::{fold, utf16_len};
use crate::model::{Category, Fingerprint, RepoPath, ScopeName};

/// Evidence shorter than this (UTF-16 units, folded) says too little; the title is the key then.
const MIN_EVIDENCE: usize = 12;

fn digest(text: &str) -> Fingerprint {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let hash = Sha1::digest(text.as_bytes());
    let hex: String = hash
        .iter()
        .take(Fingerprint::LEN / 2)
        .flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
        .map(char::from)
        .collect();
    Fingerprint::from_digits(hex)
}

fn key(evidence: Option<&str>, title: &str) -> String {
    let folded = evidence.map(fold).unwrap_or_default();
    if utf16_len(&folded) >= MIN_EVIDENCE {
        return folded;
    }
    fold(title)
}

/// The plain identity (v2). Line, severity, wording and reporter are no part of it.
pub fn fingerprint(
    file: &RepoPath,
    category: Category,
    evidence: Option<&str>,
    title: &str,
) -> Fingerprint {
    let file = file.to_wire().0;
    digest(&format!("v2|{file}|{category}|{}", key(evidence, title)))
}

/// The identity (v3) of a different finding whose plain identity is taken: its title is added.
pub fn fingerprint_with_title(
    file: &RepoPath,
    category: Category,
    evidence: Option<&str>,
    title: &str,
) -> Fingerprint {
    let file = file.to_wire().0;
    let key = key(evidence, title);
    digest(&format!("v3|{file}|{category}|{key}|{}", fold(title)))
}

/// The identity within a scope of a monorepo; the default scope (`None`) keeps the plain one.
pub fn scoped(scope: Option<&ScopeName>, plain: Fingerprint) -> Fingerprint {
    match scope {
        None => plain,
        Some(scope) => digest(&format!("scope|{scope}|{plain}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(file: &str, category: &str, evidence: Option<&str>, title: &str) -> String {
        let file = RepoPath::new(file).unwrap();
        fingerprint(&file, category.parse().unwrap(), evidence, title).to_string()
    }

    #[test]
    fn worked_examples() {
        let long = "const somethingLongEnough = 1;";
        let pool = "let conn = pool.get().await.unwrap();";
        let secret = "run: echo ${{ secrets.TOKEN }}";
        for (file, category, evidence, title, expected) in [
            ("a.ts", "quality", Some(long), "T", "06fea94e7c30"),
            (
                "a.ts",
                "quality",
                Some("  const   somethingLongEnough\n = 1;  "),
                "Another title",
                "06fea94e7c30",
            ),
            (
                "a.ts",
                "quality",
                Some("return items[next++]!;"),
                "Null deref here",
                "75bf4d452d31",
            ),
            (
                "a.ts",
                "quality",
                Some("x}"),
                "Short Evidence Falls Back",
                "a35b34de2452",
            ),
            ("a.ts", "quality", None, "Title", "838cef5c7d7a"),
            ("b.ts", "quality", None, "Title", "8bce3143cc6f"),
            (
                "src/db/pool.rs",
                "correctness",
                Some(pool),
                "pool panics",
                "2746f33e44c5",
            ),
            (
                "src/db/pool.rs",
                "security",
                Some(pool),
                "pool panics",
                "f4c8ed4c9c0e",
            ),
            (
                ".github/workflows/ci.yml",
                "secrets",
                Some(secret),
                "token printed",
                "287fa630ff83",
            ),
            (
                "a.ts",
                "quality",
                Some("twelve chars"),
                "t12",
                "2d11b630088a",
            ),
            (
                "a.ts",
                "quality",
                Some("eleven char"),
                "t11",
                "879e37ae1b89",
            ),
            ("a.ts", "quality", Some("eleven char"), "T", "c9651ef4f07d"),
        ] {
            assert_eq!(
                id(file, category, evidence, title),
                expected,
                "{file} {evidence:?}"
            );
        }
    }

    #[test]
    fn relations() {
        let quote = Some("return items[next++]!;");
        assert_eq!(
            id("a.ts", "quality", quote, "Null deref here"),
            id("a.ts", "quality", quote, "Possible null dereference")
        );
        assert_ne!(
            id("a.ts", "quality", quote, "T"),
            id("a.ts", "quality", Some("const totally = different();"), "T")
        );
        // Six emoji are twelve UTF-16 units: long enough, although only six characters.
        assert_eq!(
            id("a.ts", "quality", Some("😀😀😀😀😀😀"), "a"),
            id("a.ts", "quality", Some("😀😀😀😀😀😀"), "b")
        );
        let file = RepoPath::new("a.ts").unwrap();
        let with_title = |title| fingerprint_with_title(&file, Category::Quality, quote, title);
        assert_ne!(with_title("One bug"), with_title("Another"));
        assert_eq!(with_title("One bug"), with_title(" one  BUG "));
    }

    #[test]
    fn scopes() {
        let plain = Fingerprint::new("06fea94e7c30").unwrap();
        assert_eq!(scoped(None, plain.clone()), plain);
        for (scope, expected) in [
            ("www", "fdb356676ca4"),
            ("website", "c3bfa0b56b8f"),
            ("server-www", "63d6495495f0"),
        ] {
            let scope = ScopeName::new(scope).unwrap();
            assert_eq!(scoped(Some(&scope), plain.clone()).as_str(), expected);
        }
    }
}
