//! Grounding: does the place that a reviewer names exist, and is what it quotes there?
//!
//! @ref LLP 0006#grounding — where a finding is

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::excerpt::excerpt;
use super::lines::SideLines;
use super::quote::Quote;
use crate::diff::{Diff, FileDiff};
use crate::model::{
    ChangeStatus, Excerpt, FindingReport, Location, RepoPath, Side, Verification,
    VerificationStatus,
};
use crate::tree::Tree;

/// A file larger than this is grounded on the diff alone.
const MAX_FILE: u64 = 8 << 20;
/// What the cache of lines may hold, in bytes, and in entries.
const CACHE_BYTES: usize = 24 << 20;
const CACHE_ENTRIES: usize = 64;

/// Where a finding ended up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The place; its file is the path on its side.
    pub location: Location,
    /// True when its lines are part of the diff; for a whole-file place, when the file is.
    pub in_diff: bool,
    /// The source around it.
    pub excerpt: Option<Excerpt>,
    /// How far the evidence bore it out.
    pub verification: Verification,
}

/// The answer to a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grounding {
    /// The place exists and nothing speaks against the evidence.
    Placed(Placed),
    /// The claim does not fit the source.
    Misplaced {
        /// Exactly what is wrong, for the reporter to mend.
        words: String,
        /// Where to keep the finding when nobody mends it: re-anchored, or on the whole file.
        fallback: Placed,
    },
    /// There is no such file; there is nothing to anchor to.
    Rejected {
        /// Exactly what is wrong.
        words: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Hunks,
    Whole,
}

type Key = (RepoPath, Side, Part);

#[derive(Default)]
struct Cache {
    entries: VecDeque<(Key, Arc<SideLines>)>,
    bytes: usize,
}

/// Grounds findings against a diff and the tree under review. Cheap in bulk: a file's lines are read
/// once and kept while its findings come in, and the tree is opened only for what the diff cannot answer.
pub struct Grounder {
    diff: Arc<Diff>,
    tree: Option<Arc<dyn Tree>>,
    new_paths: HashMap<RepoPath, usize>,
    old_paths: HashMap<RepoPath, usize>,
    cache: Mutex<Cache>,
}

/// The file a report is about, on the side where it has to be looked for.
struct Target<'a> {
    file: Option<&'a FileDiff>,
    path: RepoPath,
    side: Side,
}

/// Lines and columns within a target.
#[derive(Clone, Copy)]
struct Span {
    line: u32,
    end_line: Option<u32>,
    columns: Option<(u32, u32)>,
}

impl Span {
    fn line(line: u32) -> Self {
        Self {
            line,
            end_line: None,
            columns: None,
        }
    }
}

impl Target<'_> {
    fn name(&self) -> String {
        self.path.to_lossy()
    }
}

impl Grounder {
    /// Prepares for `diff`; `tree` is the tree under review, where there is one.
    pub fn new(diff: Arc<Diff>, tree: Option<Arc<dyn Tree>>) -> Self {
        let mut new_paths = HashMap::with_capacity(diff.files.len());
        let mut old_paths = HashMap::new();
        for (index, file) in diff.files.iter().enumerate() {
            new_paths.insert(file.path.clone(), index);
            if let Some(old) = &file.old_path {
                old_paths.insert(old.clone(), index);
            }
        }
        Self {
            diff,
            tree,
            new_paths,
            old_paths,
            cache: Mutex::default(),
        }
    }

    /// Grounds one report.
    pub fn ground(&self, report: &FindingReport) -> Grounding {
        let target = match self.resolve(&report.location) {
            Ok(target) => target,
            Err(words) => return Grounding::Rejected { words },
        };
        let quote = report.evidence.as_deref().map(Quote::new);
        let quote = quote.filter(|quote| !quote.is_empty());
        match report.location.line {
            None => self.ground_file(&target, report, quote.as_ref()),
            Some(line) => self.ground_line(&target, report, line, quote.as_ref()),
        }
    }

    /// Line `number` of the new side of `path`, from the diff or the tree.
    pub(super) fn new_line<T>(
        &self,
        path: &RepoPath,
        number: u32,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let file = self.new_paths.get(path).map(|at| &self.diff.files[*at]);
        let target = Target {
            file,
            path: path.clone(),
            side: Side::New,
        };
        let hunks = self.hunks(&target);
        if let Some(line) = hunks.get(number) {
            return Some(read(line));
        }
        self.whole(&target)?.get(number).map(read)
    }

    fn resolve(&self, claim: &Location) -> Result<Target<'_>, String> {
        let file = |at: &usize| &self.diff.files[*at];
        let changed = self.new_paths.get(&claim.file).map(file);
        let before = self.old_paths.get(&claim.file).map(file);
        let found = match claim.side {
            Side::New => changed.or(before),
            Side::Old => before.or(changed),
        };
        if let Some(file) = found {
            // A deleted file has only an old side and an added one only a new side, whatever was claimed.
            let side = match file.status {
                ChangeStatus::Deleted => Side::Old,
                ChangeStatus::Added => Side::New,
                _ => claim.side,
            };
            let path = match (side, &file.old_path) {
                (Side::Old, Some(old)) => old.clone(),
                _ => file.path.clone(),
            };
            return Ok(Target {
                file: Some(file),
                path,
                side,
            });
        }
        let path = &claim.file;
        let Some(tree) = &self.tree else {
            return Err(format!("{} is not in the diff", path.to_lossy()));
        };
        match tree.kind(path) {
            Ok(None) => Err(format!(
                "{} is neither in the diff nor in the tree",
                path.to_lossy()
            )),
            // A tree that cannot answer is no proof that the file does not exist.
            Ok(Some(_)) | Err(_) => Ok(Target {
                file: None,
                path: path.clone(),
                side: Side::New,
            }),
        }
    }

    fn cached(&self, key: Key, make: impl FnOnce() -> Option<SideLines>) -> Option<Arc<SideLines>> {
        {
            let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, lines)) = cache.entries.iter().rev().find(|(k, _)| *k == key) {
                return Some(Arc::clone(lines));
            }
        }
        // Made outside the lock: reading a tree may take a while.
        let lines = Arc::new(make()?);
        let weight = weight(key.2, &lines);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.bytes += weight;
        cache.entries.push_back((key, Arc::clone(&lines)));
        // The newest stays whatever it weighs: its file's next finding is about to come.
        while cache.entries.len() > CACHE_ENTRIES
            || (cache.bytes > CACHE_BYTES && cache.entries.len() > 2)
        {
            let Some((key, old)) = cache.entries.pop_front() else {
                break;
            };
            cache.bytes = cache.bytes.saturating_sub(self::weight(key.2, &old));
        }
        Some(lines)
    }

    /// The lines of the target that the diff shows; none for a file outside the diff.
    fn hunks(&self, target: &Target<'_>) -> Arc<SideLines> {
        let key = (target.path.clone(), target.side, Part::Hunks);
        let make = || {
            Some(match target.file {
                Some(file) => SideLines::from_hunks(&self.diff, file, target.side),
                None => SideLines::from_content(Arc::new([])),
            })
        };
        self.cached(key, make)
            .unwrap_or_else(|| Arc::new(SideLines::from_content(Arc::new([]))))
    }

    /// All lines of the target, where the tree has that side and the file is of a sane size.
    fn whole(&self, target: &Target<'_>) -> Option<Arc<SideLines>> {
        if target.side == Side::Old {
            return None;
        }
        let tree = self.tree.as_ref()?;
        let key = (target.path.clone(), target.side, Part::Whole);
        self.cached(key, || {
            let content = tree.read(&target.path, MAX_FILE).ok()??;
            Some(SideLines::from_content(content))
        })
    }

    fn ground_file(
        &self,
        target: &Target<'_>,
        report: &FindingReport,
        quote: Option<&Quote>,
    ) -> Grounding {
        let Some(quote) = quote else {
            let verification = match report.rule {
                Some(_) => grounded(None),
                None => unverified("neither a line nor evidence was given"),
            };
            return Grounding::Placed(file_level(target, verification));
        };
        let lines = self.whole(target).unwrap_or_else(|| self.hunks(target));
        Grounding::Placed(match quote.find_all(&lines)[..] {
            [line] => self.at(target, Span::line(line), grounded(None)),
            [] => file_level(target, unverified("the quoted evidence is not in the file")),
            [..] => file_level(
                target,
                grounded(Some("the quoted evidence is there more than once")),
            ),
        })
    }

    fn ground_line(
        &self,
        target: &Target<'_>,
        report: &FindingReport,
        line: u32,
        quote: Option<&Quote>,
    ) -> Grounding {
        let end = report.location.end_line.unwrap_or(line).max(line);
        let mut lines = self.hunks(target);
        let mut exists = lines.get(line).is_some();
        if (!exists || quote.is_some_and(|q| !q.is_at(&lines, line, end)))
            && let Some(whole) = self.whole(target)
        {
            exists = whole.get(line).is_some();
            lines = whole;
        }
        let claim = Span {
            line,
            end_line: report.location.end_line,
            columns: report.location.columns,
        };
        let claimed = |verification| self.at(target, claim, verification);
        let Some(quote) = quote else {
            if exists {
                let verification = match report.rule {
                    Some(_) => grounded(None),
                    None => unverified("no evidence was quoted"),
                };
                return Grounding::Placed(claimed(verification));
            }
            let words = self.no_such_line(target, line, &lines);
            let fallback = file_level(target, unverified(&words));
            return Grounding::Misplaced { words, fallback };
        };
        if exists && quote.is_at(&lines, line, end) {
            return Grounding::Placed(claimed(grounded(None)));
        }
        let matches = quote.find_all(&lines);
        if matches.is_empty() {
            return self.elsewhere(target, line, quote, exists.then(|| claimed(unverified(""))));
        }
        let words = misplaced_words(line, &matches, "");
        let fallback = match nearest(line, &matches) {
            Some(at) => {
                let why = format!("re-anchored from line {line} to its evidence");
                self.at(target, Span::line(at), grounded(Some(&why)))
            }
            None => file_level(target, grounded(Some(&words))),
        };
        Grounding::Misplaced { words, fallback }
    }

    /// The evidence is not on the claimed side: perhaps it is on the other one.
    fn elsewhere(
        &self,
        target: &Target<'_>,
        line: u32,
        quote: &Quote,
        claimed: Option<Placed>,
    ) -> Grounding {
        if let Some(file) = target.file {
            let side = match target.side {
                Side::Old => Side::New,
                Side::New => Side::Old,
            };
            let path = match (side, &file.old_path) {
                (Side::Old, Some(old)) => old.clone(),
                _ => file.path.clone(),
            };
            let other = Target {
                file: Some(file),
                path,
                side,
            };
            let matches = quote.find_all(&self.hunks(&other));
            if let Some(at) = nearest(line, &matches) {
                let words = misplaced_words(line, &matches, &format!(" on the {side} side"));
                let why = format!("re-anchored to its evidence on the {side} side");
                let fallback = self.at(&other, Span::line(at), grounded(Some(&why)));
                return Grounding::Misplaced { words, fallback };
            }
        }
        let words = if quote.is_searchable() {
            format!(
                "evidence not found in {}: quote one line of it verbatim",
                target.name()
            )
        } else {
            format!("evidence not at line {line} and too short to look for: quote the whole line")
        };
        // An absent quote escalates to verification; it never drops a finding.
        let verification = unverified("the quoted evidence is not in the file");
        let fallback = match claimed {
            Some(placed) => Placed {
                verification,
                ..placed
            },
            None => file_level(target, verification),
        };
        Grounding::Misplaced { words, fallback }
    }

    fn no_such_line(&self, target: &Target<'_>, line: u32, lines: &SideLines) -> String {
        let name = target.name();
        match self.whole(target) {
            Some(_) => format!(
                "line {line} is not in {name}, which has {} lines",
                lines.len()
            ),
            None => format!(
                "line {line} of {name} is not in the diff on the {} side",
                target.side
            ),
        }
    }

    fn at(&self, target: &Target<'_>, span: Span, verification: Verification) -> Placed {
        let hunks = self.hunks(target);
        let in_diff = hunks.get(span.line).is_some();
        let lines = if in_diff {
            hunks
        } else {
            self.whole(target).unwrap_or(hunks)
        };
        let location = Location {
            file: target.path.clone(),
            line: Some(span.line),
            end_line: span
                .end_line
                .filter(|end| *end > span.line && lines.get(*end).is_some()),
            side: target.side,
            columns: span.columns.filter(|(from, to)| from < to),
        };
        Placed {
            in_diff,
            excerpt: excerpt(&lines, &location),
            location,
            verification,
        }
    }
}

/// What an entry costs: a view of the hunks shares the diff's buffer.
fn weight(part: Part, lines: &SideLines) -> usize {
    match part {
        Part::Whole => lines.weight(),
        Part::Hunks => lines.len() * 24,
    }
}

fn file_level(target: &Target<'_>, verification: Verification) -> Placed {
    Placed {
        location: Location {
            file: target.path.clone(),
            line: None,
            end_line: None,
            side: target.side,
            columns: None,
        },
        in_diff: target.file.is_some(),
        excerpt: None,
        verification,
    }
}

fn grounded(reason: Option<&str>) -> Verification {
    Verification {
        status: VerificationStatus::Grounded,
        reason: reason.map(str::to_owned),
    }
}

fn unverified(reason: &str) -> Verification {
    Verification {
        status: VerificationStatus::Unverified,
        reason: Some(reason.to_owned()),
    }
}

/// The match nearest to `line`, unless two are equally near.
fn nearest(line: u32, matches: &[u32]) -> Option<u32> {
    let best = matches.iter().copied().min_by_key(|at| at.abs_diff(line))?;
    let ties = matches
        .iter()
        .filter(|at| at.abs_diff(line) == best.abs_diff(line));
    (ties.count() == 1).then_some(best)
}

fn misplaced_words(line: u32, matches: &[u32], side: &str) -> String {
    const SHOWN: usize = 5;
    if let [only] = matches {
        return format!("evidence not at line {line}; the only match is line {only}{side}");
    }
    let mut list = String::new();
    for (index, at) in matches.iter().take(SHOWN).enumerate() {
        if index > 0 {
            list.push_str(", ");
        }
        list.push_str(&at.to_string());
    }
    if matches.len() > SHOWN {
        list.push_str(", …");
    }
    format!("evidence not at line {line}; it matches lines {list}{side}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::lines::tests::diff_of;
    use crate::model::{Category, Severity};
    use crate::tree::MemoryTree;

    fn report(file: &str, line: Option<u32>, evidence: Option<&str>) -> FindingReport {
        FindingReport {
            severity: Severity::Warning,
            category: Category::Correctness,
            location: Location {
                file: RepoPath::new(file).unwrap(),
                line,
                end_line: None,
                side: Side::New,
                columns: None,
            },
            title: "t".into(),
            rationale: "r".into(),
            suggestion: None,
            evidence: evidence.map(str::to_owned),
            rule: None,
        }
    }

    /// `a.rs` has 60 lines `let value_N = N;`; line 42 was changed, 41 and 43 are context.
    fn grounder(with_tree: bool) -> Grounder {
        let body = " let value_41 = 41;\n-let value_42 = removed_call();\n+let value_42 = 42;\n let value_43 = 43;\n";
        let diff = diff_of("a.rs", &[(41, 41, body)]);
        let content: String = (1..=60).fold(String::new(), |text, n| {
            text + &format!("let value_{n} = {n};\n")
        });
        let mut tree = MemoryTree::new();
        tree.insert(RepoPath::new("a.rs").unwrap(), content.into_bytes());
        tree.insert(
            RepoPath::new("b.rs").unwrap(),
            &b"same line of code\nother\nsame line of code\n"[..],
        );
        Grounder::new(
            Arc::new(diff),
            with_tree.then(|| Arc::new(tree) as Arc<dyn Tree>),
        )
    }

    fn placed(grounding: Grounding) -> Placed {
        match grounding {
            Grounding::Placed(placed) => placed,
            other => panic!("{other:?}"),
        }
    }

    fn misplaced(grounding: Grounding) -> (String, Placed) {
        match grounding {
            Grounding::Misplaced { words, fallback } => (words, fallback),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn evidence_at_the_claimed_line() {
        for with_tree in [true, false] {
            let got = placed(grounder(with_tree).ground(&report(
                "a.rs",
                Some(42),
                Some("let value_42 = 42;"),
            )));
            assert_eq!(got.location.line, Some(42));
            assert!(got.in_diff);
            assert_eq!(got.verification.status, VerificationStatus::Grounded);
            assert_eq!(got.excerpt.unwrap().first_line, 41);
        }
        let outside = placed(grounder(true).ground(&report("a.rs", Some(7), Some("value_7 = 7"))));
        assert!(!outside.in_diff);
        assert_eq!(outside.excerpt.unwrap().first_line, 5);
    }

    #[test]
    fn a_wrong_line_is_answered_with_the_right_one() {
        let grounder = grounder(true);
        let (words, fallback) =
            misplaced(grounder.ground(&report("a.rs", Some(40), Some("let value_42 = 42;"))));
        assert_eq!(words, "evidence not at line 40; the only match is line 42");
        assert_eq!(fallback.location.line, Some(42));
        assert!(fallback.in_diff);

        let quote = Some("same line of code");
        let (words, fallback) = misplaced(grounder.ground(&report("b.rs", Some(2), quote)));
        assert_eq!(words, "evidence not at line 2; it matches lines 1, 3");
        assert_eq!(fallback.location.line, None, "equally near: the whole file");
        let (_, fallback) = misplaced(grounder.ground(&report("b.rs", Some(9), quote)));
        assert_eq!(fallback.location.line, Some(3), "the nearest");
    }

    #[test]
    fn the_other_side() {
        let removed = Some("let value_42 = removed_call();");
        let (words, fallback) =
            misplaced(grounder(true).ground(&report("a.rs", Some(42), removed)));
        assert_eq!(
            words,
            "evidence not at line 42; the only match is line 42 on the old side"
        );
        assert_eq!(fallback.location.side, Side::Old);
        let mut old = report("a.rs", Some(42), removed);
        old.location.side = Side::Old;
        assert!(placed(grounder(true).ground(&old)).in_diff);
    }

    #[test]
    fn absent_evidence_escalates() {
        let grounder = grounder(true);
        let absent = Some("this line was never written");
        let (words, fallback) = misplaced(grounder.ground(&report("a.rs", Some(42), absent)));
        assert!(words.starts_with("evidence not found in a.rs"), "{words}");
        assert_eq!(fallback.location.line, Some(42));
        assert_eq!(fallback.verification.status, VerificationStatus::Unverified);
        let (_, fallback) = misplaced(grounder.ground(&report("a.rs", Some(4_000), absent)));
        assert_eq!(fallback.location.line, None);
        let (words, _) = misplaced(grounder.ground(&report("a.rs", Some(61), None)));
        assert_eq!(words, "line 61 is not in a.rs, which has 60 lines");
        let (words, _) = misplaced(grounder.ground(&report("a.rs", Some(0), None)));
        assert!(words.starts_with("line 0 is not in"), "{words}");
    }

    #[test]
    fn files() {
        let words = |grounding| match grounding {
            Grounding::Rejected { words } => words,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            words(grounder(true).ground(&report("c.rs", Some(1), None))),
            "c.rs is neither in the diff nor in the tree"
        );
        assert_eq!(
            words(grounder(false).ground(&report("b.rs", Some(1), None))),
            "b.rs is not in the diff"
        );
        let whole = placed(grounder(true).ground(&report("a.rs", None, Some("value_42 = 42;"))));
        assert_eq!(whole.location.line, Some(42));
        let whole = placed(grounder(true).ground(&report("a.rs", None, None)));
        assert_eq!(whole.verification.status, VerificationStatus::Unverified);
    }

    #[test]
    fn a_deleted_file_has_only_an_old_side() {
        let mut diff = diff_of("gone.rs", &[(1, 0, "-let secret_value = 1;\n")]);
        diff.files[0].status = ChangeStatus::Deleted;
        let grounder = Grounder::new(Arc::new(diff), None);
        let got = placed(grounder.ground(&report("gone.rs", Some(1), Some("secret_value = 1;"))));
        assert_eq!(got.location.side, Side::Old);
    }
}
