//! Verification: which findings get a second look, what it shows, what follows from the verdicts.
//!
//! @ref LLP 0016#the-verifier — verdict first, two refutations for what is grave

use std::fmt::Write as _;

use crate::config::VerifyScope;
use crate::detect::{mask_lines, mask_patch};
use crate::diff::Diff;
use crate::model::{
    Category, DropStage, DroppedFinding, Finding, FindingStatus, Severity, Side, Verification,
    VerificationStatus,
};
use crate::reply::Verdict;
use crate::tree::Tree;

/// A file larger than this is judged on the change alone.
const MAX_FILE: u64 = 2 << 20;
/// A file of so many lines is shown whole; else so many before and after the finding.
const WHOLE: usize = 400;
const AROUND: usize = 120;
/// Bytes of source, and of change, that one task shows.
const MAX_SOURCE: usize = 32_000;
const MAX_CHANGE: usize = 16_000;
/// A consequence shorter than this, in characters, names none.
const LEAST_CONSEQUENCE: usize = 20;

/// True when no maintainer should find out only later that it went: it takes two refutations to fall.
pub(super) fn needs_two(finding: &Finding) -> bool {
    finding.severity == Severity::Critical || finding.category == Category::Secrets
}

/// Whether a finding gets a second look. The checks' own findings do not: a rule matched, which is no opinion.
pub(super) fn wanted(finding: &Finding, scope: VerifyScope) -> bool {
    if finding.rule.is_some() {
        return false;
    }
    let ungrounded = finding.verification.status != VerificationStatus::Grounded;
    let no_consequence = finding.rationale.trim().chars().count() < LEAST_CONSEQUENCE;
    match scope {
        VerifyScope::All => true,
        VerifyScope::Critical => needs_two(finding) || no_consequence,
        VerifyScope::Ungrounded => needs_two(finding) || ungrounded || no_consequence,
    }
}

/// How one look ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// A verdict, with its reason.
    Judged(Verdict, String),
    /// There is none, and why.
    Failed(String),
}

/// What becomes of a finding after its looks.
#[derive(Debug)]
pub(super) enum Fate {
    /// It stands.
    Stands(Box<Finding>),
    /// It falls.
    Falls(Box<DroppedFinding>),
}

fn because(verdict: &str, reason: &str) -> String {
    match reason.trim() {
        "" => verdict.to_owned(),
        reason => format!("{verdict}: {reason}"),
    }
}

/// What becomes of `finding` after one look, or two where the first refuted something grave. `doubt` is why the
/// coordinator would drop it.
pub(super) fn fate(mut finding: Finding, looks: &[Look], doubt: Option<&str>) -> Fate {
    use VerificationStatus::{Uncertain, Unverified, Verified};
    let falls = |finding: Finding, stage, reason: String| {
        Fate::Falls(Box::new(DroppedFinding {
            finding,
            stage,
            reason,
        }))
    };
    let refuted = |look: &Look| match look {
        Look::Judged(Verdict::Refuted, reason) => Some(reason.clone()),
        _ => None,
    };
    let (status, reason) = match looks {
        [] => return Fate::Stands(Box::new(finding)),
        [Look::Judged(Verdict::Confirmed, reason), ..] => (Verified, reason.clone()),
        [Look::Judged(Verdict::Uncertain, reason), ..] => {
            if let Some(doubt) = doubt {
                return falls(finding, DropStage::Coordination, doubt.to_owned());
            }
            (Uncertain, reason.clone())
        }
        [Look::Failed(reason), ..] => (Unverified, reason.clone()),
        [first, rest @ ..] => {
            let first = refuted(first).unwrap_or_default();
            match rest.first() {
                _ if !needs_two(&finding) => {
                    return falls(finding, DropStage::Verification, because("refuted", &first));
                }
                Some(second) if refuted(second).is_some() => {
                    finding.status = FindingStatus::Disputed;
                    let second = refuted(second).unwrap_or_default();
                    let reason = because("refuted twice", &format!("{first} / {second}"));
                    (Uncertain, reason)
                }
                _ => (Uncertain, because("refuted by one of two looks", &first)),
            }
        }
    };
    let reason = (!reason.trim().is_empty()).then_some(reason);
    finding.verification = Verification { status, reason };
    Fate::Stands(Box::new(finding))
}

/// The change of the finding's file, credentials masked: all of it, or as many of the hunks nearest to it as fit.
pub(super) fn change(diff: &Diff, finding: &Finding) -> String {
    let place = &finding.location;
    let file = diff.files.iter().find(|file| match place.side {
        Side::New => file.path == place.file,
        Side::Old => file.old_path.as_ref().unwrap_or(&file.path) == &place.file,
    });
    let Some(file) = file else {
        return String::new();
    };
    let whole = diff.patch.get(file.section.clone()).unwrap_or_default();
    if whole.len() <= MAX_CHANGE {
        return mask_patch(&String::from_utf8_lossy(whole)).into_owned();
    }
    let line = place.line.unwrap_or(1);
    let mut hunks: Vec<_> = file.hunks.iter().collect();
    let distance = |start: u32, len: u32| {
        if line < start {
            start - line
        } else {
            line.saturating_sub(start.saturating_add(len))
        }
    };
    hunks.sort_by_key(|hunk| match place.side {
        Side::New => distance(hunk.new_start, hunk.new_len),
        Side::Old => distance(hunk.old_start, hunk.old_len),
    });
    let mut text = String::new();
    for hunk in hunks {
        let body = diff.patch.get(hunk.body.clone()).unwrap_or_default();
        let body = String::from_utf8_lossy(body);
        let numbers = format!(
            "@@ -{},{} +{},{} @@\n",
            hunk.old_start, hunk.old_len, hunk.new_start, hunk.new_len
        );
        let masked = mask_patch(&format!("{numbers}{body}")).into_owned();
        if text.len() + masked.len() > MAX_CHANGE {
            if text.is_empty() {
                text.push_str(clip(&masked, MAX_CHANGE));
                text.push('\n');
            }
            break;
        }
        text.push_str(&masked);
    }
    text
}

/// The numbered lines of the file under review around the finding, credentials masked; empty when there is no text.
pub(super) fn source(tree: &dyn Tree, finding: &Finding) -> String {
    let place = &finding.location;
    if place.side == Side::Old {
        return String::new();
    }
    let Ok(Some(bytes)) = tree.read(&place.file, MAX_FILE) else {
        return String::new();
    };
    if memchr::memchr(0, &bytes[..bytes.len().min(8_000)]).is_some() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = mask_lines(&text);
    let lines: Vec<&str> = text.lines().collect();
    let at = place.line.map_or(0, |line| line as usize - 1);
    let range = if lines.len() <= WHOLE {
        0..lines.len()
    } else {
        at.saturating_sub(AROUND)..lines.len().min(at + AROUND)
    };
    // From the finding outwards, as far as the bytes go.
    let mut shown: Vec<usize> = range.collect();
    shown.sort_by_key(|line| line.abs_diff(at));
    let mut bytes = 0;
    shown.retain(|line| {
        bytes += lines[*line].len() + 8;
        bytes <= MAX_SOURCE
    });
    shown.sort_unstable();
    let mut out = String::new();
    let mut before = None;
    for line in shown {
        if before.is_some_and(|before| before + 1 != line) {
            out.push_str("…\n");
        }
        let _ = writeln!(out, "{:>5}  {}", line + 1, lines[line]);
        before = Some(line);
    }
    out
}

fn clip(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diff::parse_patch;
    use crate::finding::testing::finding;
    use crate::model::RepoPath;
    use crate::tree::MemoryTree;

    fn judged(verdict: Verdict) -> Look {
        Look::Judged(verdict, "because of line 3".to_owned())
    }

    #[test]
    fn a_warning_falls_by_one_refutation_and_a_critical_by_none() {
        use Verdict::{Confirmed, Refuted, Uncertain};
        use VerificationStatus as V;
        let warning = || finding(Severity::Warning, Category::Quality, 1);
        let critical = || finding(Severity::Critical, Category::Quality, 1);
        let secret = || finding(Severity::Warning, Category::Secrets, 1);
        let failed = || Look::Failed("timed out".to_owned());
        let Fate::Falls(fallen) = fate(warning(), &[judged(Refuted)], None) else {
            panic!("a refuted warning stands");
        };
        assert_eq!(fallen.stage, DropStage::Verification);
        assert_eq!(fallen.reason, "refuted: because of line 3");
        for (finding, looks, status, verification) in [
            (warning(), vec![], FindingStatus::Open, V::Grounded),
            (
                warning(),
                vec![judged(Confirmed)],
                FindingStatus::Open,
                V::Verified,
            ),
            (
                warning(),
                vec![judged(Uncertain)],
                FindingStatus::Open,
                V::Uncertain,
            ),
            (
                warning(),
                vec![failed()],
                FindingStatus::Open,
                V::Unverified,
            ),
            (
                critical(),
                vec![judged(Refuted), judged(Refuted)],
                FindingStatus::Disputed,
                V::Uncertain,
            ),
            (
                secret(),
                vec![judged(Refuted), judged(Refuted)],
                FindingStatus::Disputed,
                V::Uncertain,
            ),
            (
                critical(),
                vec![judged(Refuted), judged(Confirmed)],
                FindingStatus::Open,
                V::Uncertain,
            ),
            (
                critical(),
                vec![judged(Refuted), failed()],
                FindingStatus::Open,
                V::Uncertain,
            ),
            (
                critical(),
                vec![judged(Refuted)],
                FindingStatus::Open,
                V::Uncertain,
            ),
        ] {
            let Fate::Stands(after) = fate(finding, &looks, None) else {
                panic!("falls: {looks:?}");
            };
            assert_eq!(
                (after.status, after.verification.status),
                (status, verification),
                "{looks:?}"
            );
        }
    }

    #[test]
    fn what_the_coordinator_doubts_stands_only_when_confirmed_or_unread() {
        let look = |verdict| {
            fate(
                finding(Severity::Warning, Category::Quality, 1),
                &[judged(verdict)],
                Some("vague"),
            )
        };
        assert!(matches!(look(Verdict::Confirmed), Fate::Stands(_)));
        let Fate::Falls(fallen) = look(Verdict::Uncertain) else {
            panic!("doubted twice and stands");
        };
        assert_eq!(
            (fallen.stage, fallen.reason.as_str()),
            (DropStage::Coordination, "vague")
        );
    }

    #[test]
    fn who_is_looked_at() {
        let mut plain = finding(Severity::Warning, Category::Quality, 1);
        plain.rationale = "Orders of zero items are charged.".to_owned();
        let mut lost = plain.clone();
        lost.verification.status = VerificationStatus::Unverified;
        let mut vague = plain.clone();
        vague.rationale = "bad".to_owned();
        let mut rule = finding(Severity::Critical, Category::Secrets, 1);
        rule.rule = Some(crate::model::RuleId::new("some-rule").unwrap());
        let of = |finding: &Finding| {
            [
                VerifyScope::Critical,
                VerifyScope::Ungrounded,
                VerifyScope::All,
            ]
            .map(|scope| wanted(finding, scope))
        };
        assert_eq!(of(&plain), [false, false, true]);
        assert_eq!(of(&lost), [false, true, true]);
        assert_eq!(of(&vague), [true, true, true]);
        assert_eq!(of(&rule), [false, false, false]);
    }

    #[test]
    fn the_source_around_a_line_is_numbered_masked_and_bounded() {
        let token = ["ghp_", &"a1B2".repeat(9)].concat();
        let text: String = (1..=3_000).fold(String::new(), |text, n| {
            text + &format!("line {n} \"{token}\"\n")
        });
        let mut tree = MemoryTree::new();
        tree.insert(RepoPath::new("a.ts").unwrap(), text.into_bytes());
        let shown = source(&tree, &finding(Severity::Warning, Category::Quality, 1_500));
        assert!(
            shown.contains(" 1500  line 1500 ") && !shown.contains("line 1379 "),
            "{shown}"
        );
        assert!(shown.len() < MAX_SOURCE + 2_000 && !shown.contains(&token));
        let whole = finding(Severity::Warning, Category::Quality, 2_999);
        assert!(source(&tree, &whole).ends_with(&format!(
            "3000  line 3000 \"{}\"\n",
            crate::detect::mask(&token)
        )));
    }

    #[test]
    fn of_a_large_change_the_nearest_hunks_are_shown() {
        let hunk = |n: u32| {
            let lines = format!(
                "+value of hunk {n:>3} {}
",
                "x".repeat(80)
            )
            .repeat(100);
            format!("@@ -0,0 +{},100 @@\n{lines}", n * 1_000 + 1)
        };
        let body: String = (0..5).map(hunk).collect();
        let patch = format!("diff --git a/a.ts b/a.ts\n--- a/a.ts\n+++ b/a.ts\n{body}");
        let diff = parse_patch(Arc::from(patch.into_bytes())).unwrap();
        let text = change(&diff, &finding(Severity::Warning, Category::Quality, 3_050));
        assert!(
            text.contains("hunk   3 ") && !text.contains("hunk   0 "),
            "{text}"
        );
        assert!(text.len() <= MAX_CHANGE + 1);
    }
}
