//! Which finding is which label: by place and by words, one to one.
//!
//! @ref LLP 0017#matching — why both, and what a near miss is

use super::case::{Case, Label, LabelSide};
use super::similarity::Words;
use crate::state::output::{Finding, Side};

/// How strict a match is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Lines that a finding may be away from a label.
    pub tolerance: u32,
    /// The least similarity of the words, 0 to 1, where the lines agree.
    pub similarity: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tolerance: 5,
            similarity: 0.2,
        }
    }
}

/// Where only the file agrees, the words have to agree this many times more; where a label has no file, this. Set by
/// measurement over comments of AACR-Bench, in which each is another remark (llp/0017).
const FILE_FACTOR: f64 = 1.5;
const TEXT_FACTOR: f64 = 1.8;

/// A finding and the label that it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Position among the findings.
    pub finding: usize,
    /// Position among the case's labels of that kind.
    pub label: usize,
    /// Lines between the two, 0 when they overlap; none when one of them has no line.
    pub distance: Option<u32>,
    /// How much the words agree, 0 to 1.
    pub similarity: f64,
}

/// What a finding turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A known defect.
    Hit,
    /// A known defect that another finding has already.
    Duplicate,
    /// What is known not to hold.
    Refuted,
    /// A known defect, by its words, in the same file at another place.
    Misplaced,
    /// Nothing that is labelled.
    Unknown,
}

/// The result for one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matching {
    /// Findings that are known defects; each finding and each label at most once.
    pub hits: Vec<Pair>,
    /// Findings that are known non-findings; the same.
    pub refuted: Vec<Pair>,
    /// One entry a finding.
    pub outcomes: Vec<Outcome>,
}

/// Matches the findings of a review with the labels of its case. The best pairs go first, known defects and known
/// non-findings alike, so a finding is what it is most like. The result does not depend on the order of equal pairs'
/// labels beyond their position.
pub fn matching(findings: &[&Finding], case: &Case, settings: Settings) -> Matching {
    let known: Vec<Words> = case.findings.iter().map(|l| Words::of(&l.text)).collect();
    let not: Vec<Words> = case
        .non_findings
        .iter()
        .map(|l| Words::of(&l.text))
        .collect();
    let mut candidates = Vec::new();
    let mut elsewhere = vec![false; findings.len()];
    for (at, finding) in findings.iter().enumerate() {
        let said = Said::of(finding);
        for (labels, words, good) in [
            (&case.findings, &known, true),
            (&case.non_findings, &not, false),
        ] {
            for (position, (label, words)) in labels.iter().zip(words).enumerate() {
                let similarity = said.similarity(words);
                match place(finding, label, settings.tolerance) {
                    Place::Near(nearness, distance) => {
                        let needed = settings.similarity * nearness.factor();
                        if similarity >= needed.min(0.9) {
                            let pair = Pair {
                                finding: at,
                                label: position,
                                distance,
                                similarity,
                            };
                            candidates.push((
                                nearness.score(settings.tolerance, distance) + similarity,
                                good,
                                pair,
                            ));
                        }
                    }
                    Place::SameFile => {
                        let needed = (settings.similarity * TEXT_FACTOR).min(0.9);
                        elsewhere[at] |= good && similarity >= needed;
                    }
                    Place::Elsewhere => {}
                }
            }
        }
    }
    candidates.sort_by(|(a, a_good, x), (b, b_good, y)| {
        b.total_cmp(a)
            .then(b_good.cmp(a_good))
            .then((x.finding, x.label).cmp(&(y.finding, y.label)))
    });
    let mut result = Matching::default();
    let mut outcomes = vec![None; findings.len()];
    for (_, good, pair) in &candidates {
        let taken = if *good {
            &mut result.hits
        } else {
            &mut result.refuted
        };
        if outcomes[pair.finding].is_none()
            && taken.iter().all(|other: &Pair| other.label != pair.label)
        {
            outcomes[pair.finding] = Some(if *good {
                Outcome::Hit
            } else {
                Outcome::Refuted
            });
            taken.push(*pair);
        }
    }
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let left = |good: bool| {
            candidates
                .iter()
                .any(|(_, g, pair)| *g == good && pair.finding == at)
        };
        result.outcomes.push(outcome.unwrap_or_else(|| {
            if left(true) {
                Outcome::Duplicate
            } else if left(false) {
                // The same wrong thing said twice is wrong twice.
                Outcome::Refuted
            } else if elsewhere[at] {
                Outcome::Misplaced
            } else {
                Outcome::Unknown
            }
        }));
    }
    result
}

/// A finding's words: its title, and all that it says.
struct Said {
    title: Words,
    all: Words,
}

impl Said {
    fn of(finding: &Finding) -> Self {
        Self {
            title: Words::of(&finding.title),
            all: Words::of(&format!("{} {}", finding.title, finding.rationale)),
        }
    }

    fn similarity(&self, label: &Words) -> f64 {
        self.title.similarity(label).max(self.all.similarity(label))
    }
}

#[derive(Debug, Clone, Copy)]
enum Nearness {
    Lines,
    File,
    Text,
}

impl Nearness {
    fn factor(self) -> f64 {
        match self {
            Self::Lines => 1.0,
            Self::File => FILE_FACTOR,
            Self::Text => TEXT_FACTOR,
        }
    }

    /// 0 to 1: lines that overlap before lines nearby, before a file, before nothing but words.
    fn score(self, tolerance: u32, distance: Option<u32>) -> f64 {
        match (self, distance) {
            (Self::Lines, Some(distance)) => {
                1.0 - 0.5 * f64::from(distance) / (f64::from(tolerance) + 1.0)
            }
            (Self::Lines | Self::File, _) => 0.25,
            (Self::Text, _) => 0.0,
        }
    }
}

enum Place {
    Near(Nearness, Option<u32>),
    SameFile,
    Elsewhere,
}

fn place(finding: &Finding, label: &Label, tolerance: u32) -> Place {
    let Some(path) = &label.path else {
        return Place::Near(Nearness::Text, None);
    };
    // An escaped path is not UTF-8, and a label's path is.
    if finding.path_encoding.is_some() || finding.file != *path {
        return Place::Elsewhere;
    }
    let side = match finding.side {
        Side::Old => LabelSide::Old,
        Side::New => LabelSide::New,
    };
    let (Some(line), Some(first)) = (finding.line, label.line) else {
        return Place::Near(Nearness::File, None);
    };
    if label.side.is_some_and(|labelled| labelled != side) {
        return Place::SameFile;
    }
    let end = finding.end_line.unwrap_or(line).max(line);
    let last = label.end_line.unwrap_or(first).max(first);
    let distance = first.saturating_sub(end).max(line.saturating_sub(last));
    if distance <= tolerance {
        Place::Near(Nearness::Lines, Some(distance))
    } else {
        Place::SameFile
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::eval) fn finding(file: &str, line: u32, title: &str) -> Finding {
        serde_json::from_value(json!({
            "id": "0123456789ab", "severity": "warning", "category": "correctness", "file": file, "line": line,
            "side": "new", "inDiff": true, "title": title, "rationale": "It breaks.", "agents": ["a"],
            "status": "open", "verification": {"status": "grounded"},
        }))
        .unwrap()
    }

    pub(in crate::eval) fn label(file: &str, line: u32, text: &str) -> Label {
        serde_json::from_value(json!({"path": file, "line": line, "side": "new", "text": text}))
            .unwrap()
    }

    fn run(findings: &[Finding], case: &Case) -> Matching {
        matching(
            &findings.iter().collect::<Vec<_>>(),
            case,
            Settings::default(),
        )
    }

    const OVERFLOW: &str = "The sum overflows for large orders";
    const LEAK: &str = "The connection is never closed on errors";

    #[test]
    fn near_lines_and_like_words_match_and_nothing_else_does() {
        let case = Case {
            findings: vec![label("a.rs", 10, OVERFLOW)],
            ..Case::default()
        };
        for (file, line, title, expected) in [
            ("a.rs", 10, "Sum overflow", Outcome::Hit),
            ("a.rs", 15, "Sum overflow", Outcome::Hit),
            (
                "a.rs",
                16,
                "Sum overflows with large orders",
                Outcome::Misplaced,
            ),
            ("a.rs", 16, "Naming", Outcome::Unknown),
            ("b.rs", 10, OVERFLOW, Outcome::Unknown),
            ("a.rs", 10, LEAK, Outcome::Unknown),
        ] {
            assert_eq!(
                run(&[finding(file, line, title)], &case).outcomes,
                [expected],
                "{file}:{line} {title}"
            );
        }
        let mut old = finding("a.rs", 10, OVERFLOW);
        old.side = Side::Old;
        assert_eq!(run(&[old.clone()], &case).outcomes, [Outcome::Misplaced]);
        let mut either = case.clone();
        either.findings[0].side = None;
        assert_eq!(run(&[old], &either).outcomes, [Outcome::Hit]);
    }

    #[test]
    fn one_label_is_hit_once_and_the_best_pair_wins() {
        let case = Case {
            findings: vec![label("a.rs", 10, OVERFLOW), label("a.rs", 12, LEAK)],
            ..Case::default()
        };
        let said = [
            finding("a.rs", 11, "Connection never closed"),
            finding("a.rs", 11, "Sum overflows"),
            finding("a.rs", 10, "Overflow of the sum in large orders"),
        ];
        let result = run(&said, &case);
        assert_eq!(
            result.outcomes,
            [Outcome::Hit, Outcome::Duplicate, Outcome::Hit]
        );
        let mut pairs: Vec<_> = result
            .hits
            .iter()
            .map(|p| (p.finding, p.label, p.distance))
            .collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 1, Some(1)), (2, 0, Some(0))]);
    }

    #[test]
    fn a_finding_is_what_it_is_most_like() {
        let case = Case {
            findings: vec![label("a.rs", 10, OVERFLOW)],
            non_findings: vec![label("a.rs", 10, "Large orders should be logged")],
            ..Case::default()
        };
        let result = run(&[finding("a.rs", 10, "Large orders are not logged")], &case);
        assert_eq!(result.outcomes, [Outcome::Refuted]);
        assert_eq!((result.hits.len(), result.refuted.len()), (0, 1));
        let twice = [
            finding("a.rs", 10, "Large orders are not logged"),
            finding("a.rs", 11, "Logged large orders"),
        ];
        let mut only = case.clone();
        only.findings.clear();
        assert_eq!(
            run(&twice, &only).outcomes,
            [Outcome::Refuted, Outcome::Refuted]
        );
    }

    #[test]
    fn without_a_line_or_a_file_the_words_have_to_say_more() {
        let mut whole = label("a.rs", 1, OVERFLOW);
        whole.line = None;
        let nowhere: Label = serde_json::from_value(json!({"text": OVERFLOW})).unwrap();
        for known in [whole, nowhere] {
            let case = Case {
                findings: vec![known],
                ..Case::default()
            };
            let good = run(
                &[finding("a.rs", 99, "Sum overflows with large orders")],
                &case,
            );
            assert_eq!(good.outcomes, [Outcome::Hit]);
            assert_eq!(good.hits[0].distance, None);
            let bad = run(
                &[finding(
                    "a.rs",
                    99,
                    "The orders are sorted twice for no gain here",
                )],
                &case,
            );
            assert_eq!(bad.outcomes, [Outcome::Unknown]);
        }
    }

    #[test]
    fn ranges_overlap() {
        let mut known = label("a.rs", 10, OVERFLOW);
        known.end_line = Some(20);
        let case = Case {
            findings: vec![known],
            ..Case::default()
        };
        for (line, distance) in [(20, 0), (22, 2), (8, 2), (15, 0)] {
            let result = run(&[finding("a.rs", line, OVERFLOW)], &case);
            assert_eq!(result.hits[0].distance, Some(distance), "{line}");
        }
    }
}
