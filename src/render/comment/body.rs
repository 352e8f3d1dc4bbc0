//! The text of a comment: what a busy reader needs in five seconds first, the rest folded.

use std::fmt::Write as _; // writing to a String cannot fail

use super::super::markdown::{code, escape, fenced};
use super::super::safe::{inert, mask};
use super::super::terminal::stage_words;
use super::super::words;
use super::derive::{Derived, Judged, derive};
use super::links;
use super::shrink::Budget;
use super::{NotReviewed, PrFacts, Subject};
use crate::model::{
    self, Cost, Decision, FindingStatus, NoteKind, Severity, TokenCounts, Usage, printable,
};
use crate::state::comment::{
    CommandError, CommentState, Damage, Dismissal, Effect, Outcome, Permission, StoredReview, Tag,
};
use crate::state::output::{FileOutcome, UsageConfidence, UsageNumbers, VerificationStatus};

/// What a comment is made from.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The configured tag.
    pub tag: &'a Tag,
    /// The configured break-glass marker, to be named in the text.
    pub marker: &'a str,
    /// Where the pull request is.
    pub pr: &'a PrFacts,
    /// The state that the comment will carry.
    pub state: &'a CommentState,
    /// What it is about.
    pub subject: &'a Subject,
    /// What could not be read of the state before.
    pub damage: Damage,
    /// What became of the commands that were just applied.
    pub outcomes: &'a [Outcome],
}

/// The visible part of the comment; `state` stands for `page.state`, shortened to `budget`.
pub(super) fn body(page: &Page<'_>, state: &CommentState, budget: &Budget) -> String {
    let mut out = String::new();
    let derived = state
        .review
        .as_ref()
        .map(|r| (r, derive(r, &state.dismissals)));
    match (page.subject, &derived) {
        (Subject::NotReviewed(why), _) => {
            not_reviewed(&mut out, page, why);
            if let Some((review, derived)) = &derived {
                last_review(&mut out, page, review, derived, budget);
            }
        }
        (subject, Some((review, derived))) => {
            reviewed(&mut out, page, subject, review, derived, budget);
        }
        (_, None) => {
            out.push_str("## ecr: Not reviewed\n\nThere is no review of this pull request yet.\n");
        }
    }
    commands(&mut out, page.outcomes);
    damage(&mut out, page.damage);
    footer(&mut out, page, derived.as_ref().map(|(review, _)| *review));
    out.split_inclusive('\n').map(inert).collect()
}

/// The verdict. A bot's comment does not say "approved": that is for people.
fn verdict(review: &StoredReview, decision: Decision) -> &'static str {
    match (decision, review.complete) {
        (Decision::Approve, true) => "Nothing found, ready for human review",
        (Decision::ApproveWithComments, true) => "Nothing that blocks, with comments",
        _ => words::verdict_of(decision, review.complete, review.totals.reviewed_lines > 0),
    }
}

fn reviewed(
    out: &mut String,
    page: &Page<'_>,
    subject: &Subject,
    review: &StoredReview,
    derived: &Derived<'_>,
    budget: &Budget,
) {
    let _ = writeln!(out, "## ecr: {}", verdict(review, derived.decision));
    lead(out, review, derived);
    let _ = writeln!(out, "\n{}", escape(&derived.summary));
    let _ = writeln!(out, "\n{}", receipt(review));
    if let Subject::Reused { head } = subject {
        let _ = writeln!(
            out,
            "\nNothing that the review depends on has changed: it stands for {} too, and no model was called.",
            short(head)
        );
    } else if page.pr.moved(review) {
        let live = page.pr.live_head.as_deref().unwrap_or_default();
        let _ = writeln!(
            out,
            "\n**The pull request has moved on to {}: this review is of the commit before.**",
            short(live)
        );
    }
    gaps(out, review);
    for severity in [Severity::Critical, Severity::Warning, Severity::Suggestion] {
        section(out, page.pr, review, derived, severity);
    }
    if derived.tally == crate::finding::Tally::default() && derived.dismissed == 0 {
        what_was_read(out, review);
    }
    disputed(out, page.pr, review, derived);
    dismissed(out, page.pr, review, derived, budget);
    fixed(out, review);
    dropped(out, review);
    filtered(out, review);
    notes(out, review);
}

/// "2 fixed, 1 new, 3 open", for who has read the review before.
fn lead(out: &mut String, review: &StoredReview, derived: &Derived<'_>) {
    let Some(delta) = &review.delta else {
        return;
    };
    // Ids are not kept when there is no room; the count then is that of the review.
    let new = if delta.new.len() as u64 == delta.new_total {
        let stands = |id: &String| {
            derived
                .findings
                .iter()
                .any(|f| f.finding.id == *id && f.stands())
        };
        delta.new.iter().filter(|id| stands(id)).count() as u64
    } else {
        delta.new_total
    };
    let tally = derived.tally;
    let open = tally.critical + tally.warning + tally.suggestion;
    let _ = write!(
        out,
        "\n**{} fixed, {new} new, {open} open",
        delta.fixed_total
    );
    if delta.withdrawn > 0 {
        let _ = write!(out, ", {} withdrawn", delta.withdrawn);
    }
    if delta.unseen > 0 {
        let _ = write!(out, ", {} not looked at again", delta.unseen);
    }
    out.push_str("**");
    match &delta.since {
        Some(since) => {
            let _ = writeln!(out, " since the review of {}.", short(since));
        }
        None => out.push_str(" since the last review.\n"),
    }
}

/// The first digits of a commit id, as code.
fn short(id: &str) -> String {
    code(&escape_free(&id.chars().take(12).collect::<String>()))
}

fn list(names: &[String]) -> String {
    let name = |name: &String| code(&escape_free(&name.chars().take(80).collect::<String>()));
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn receipt(review: &StoredReview) -> String {
    let mut parts = Vec::new();
    let base = match (&review.base_name, &review.base) {
        (Some(name), Some(id)) => format!("{} ({})", code(&escape_free(name)), short(id)),
        (Some(name), None) => code(&escape_free(name)),
        (None, Some(id)) => short(id),
        (None, None) => "its base".to_owned(),
    };
    match &review.head {
        Some(head) => parts.push(format!("{} against {base}", short(head))),
        None => parts.push(format!("against {base}")),
    }
    if !review.agents.is_empty() {
        parts.push(format!("by {}", list(&review.agents)));
    }
    if review.models.is_empty() {
        parts.push("no model".to_owned());
    } else {
        parts.push(list(&review.models));
    }
    if review.tool_calls > 0 {
        parts.push(words::count(review.tool_calls, "look-up"));
    }
    if let Some(usage) = words::usage(&usage(&review.usage)) {
        parts.push(usage);
    }
    parts.push(format!("{} s", review.total_ms.div_ceil(1000)));
    parts.join(" \u{b7} ")
}

fn usage(numbers: &UsageNumbers) -> Usage {
    let tokens = TokenCounts {
        input: numbers.input.unwrap_or(0),
        output: numbers.output.unwrap_or(0),
        cache_read: numbers.cache_read.unwrap_or(0),
        cache_write: numbers.cache_write.unwrap_or(0),
        reasoning: numbers.reasoning.unwrap_or(0),
    };
    let cost = numbers.cost_usd.map(Cost::from_usd);
    match numbers.confidence {
        UsageConfidence::Unavailable => Usage::Unavailable,
        UsageConfidence::Estimated => Usage::Estimated(tokens, cost),
        UsageConfidence::Exact => Usage::Exact(tokens, cost),
    }
}

fn heading(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "Critical",
        Severity::Warning => "Warnings",
        Severity::Suggestion => "Suggestions",
    }
}

fn section(
    out: &mut String,
    pr: &PrFacts,
    review: &StoredReview,
    derived: &Derived<'_>,
    severity: Severity,
) {
    let unlisted = match severity {
        Severity::Critical => review.unlisted.critical,
        Severity::Warning => review.unlisted.warning,
        Severity::Suggestion => review.unlisted.suggestion,
    };
    let of: Vec<&Judged<'_>> = derived
        .findings
        .iter()
        .filter(|f| Severity::from(f.finding.severity) == severity)
        .filter(|f| FindingStatus::from(f.finding.status) == FindingStatus::Open)
        .filter(|f| f.stands() || f.stays_visible())
        .collect();
    let total = of.len() as u64 + unlisted;
    if total == 0 {
        return;
    }
    let gone = of.iter().filter(|f| !f.stands()).count();
    let mut title = format!("{} ({total}", heading(severity));
    if gone > 0 {
        let _ = write!(title, ", {gone} of them dismissed");
    }
    let _ = writeln!(out, "\n### {title})\n");
    let is_new = |id: &String| review.delta.as_ref().is_some_and(|d| d.new.contains(id));
    for judged in &of {
        if !judged.stands() {
            line_of(out, pr, review, judged);
        } else if !judged.finding.title.is_empty() {
            item(out, pr, review, judged, is_new(&judged.finding.id));
        }
    }
    bare_ids(out, of.iter().filter(|f| f.stands()).copied());
    if unlisted > 0 {
        let _ = writeln!(out, "- {unlisted} more that there is no room for.");
    }
}

/// One finding in full.
fn item(out: &mut String, pr: &PrFacts, review: &StoredReview, judged: &Judged<'_>, is_new: bool) {
    let finding = judged.finding;
    let _ = write!(
        out,
        "- **{}** \u{b7} {} \u{b7} {}",
        escape(&finding.title),
        place(pr, review, judged),
        finding.category.as_str()
    );
    if let Some(scope) = &finding.scope {
        let _ = write!(out, " \u{b7} {}", code(&escape_free(scope)));
    }
    if is_new {
        out.push_str(" \u{b7} new");
    }
    match finding.verification {
        VerificationStatus::Grounded => {}
        other => {
            let _ = write!(out, " \u{b7} {}", other.as_str());
        }
    }
    let _ = writeln!(out, " \u{b7} {}", id(&finding.id));
    let mut paragraph = |label: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "\n  {label}{}", escape(text));
        }
    };
    paragraph("Why: ", &finding.rationale);
    paragraph("Fix: ", &finding.suggestion);
    paragraph("Doubt: ", &finding.doubt);
    if judged.effect == Effect::NeedsReason {
        let who = by(judged.dismissal);
        let _ = writeln!(
            out,
            "\n  Dismissed{who} without a reason: a critical finding or a secret needs one, `/dismiss {} -- reason`.",
            finding.id
        );
    }
    if !finding.evidence.is_empty() {
        out.push_str("\n  <details>\n  <summary>Evidence</summary>\n\n");
        let mut text = String::new();
        for line in finding.evidence.lines() {
            text.push_str(&printable(line));
            text.push('\n');
        }
        for line in fenced(&text).lines() {
            let _ = writeln!(out, "  {line}");
        }
        out.push_str("\n  </details>\n");
    }
    out.push('\n');
}

/// `id:…` as code: what a command takes.
fn id(id: &str) -> String {
    code(&format!("id:{id}"))
}

fn by(dismissal: Option<&Dismissal>) -> String {
    dismissal
        .and_then(|d| d.by.as_deref())
        .map_or_else(String::new, |who| {
            format!(" by {}", code(&escape_free(who)))
        })
}

/// For code spans: one printable line.
fn escape_free(text: &str) -> String {
    super::super::safe::printable_line(text)
}

/// One dismissed finding in a line: who, when, why.
fn line_of(out: &mut String, pr: &PrFacts, review: &StoredReview, judged: &Judged<'_>) {
    let finding = judged.finding;
    let title = if finding.title.is_empty() {
        id(&finding.id)
    } else {
        let place = place(pr, review, judged);
        format!(
            "{} \u{b7} {place} \u{b7} {}",
            escape(&finding.title),
            id(&finding.id)
        )
    };
    let _ = write!(out, "- {title} \u{b7} dismissed{}", by(judged.dismissal));
    if let Some(dismissal) = judged.dismissal {
        if dismissal.at > 0
            && let Ok(at) = jiff::Timestamp::from_second(dismissal.at)
        {
            let _ = write!(out, " on {}", at.strftime("%Y-%m-%d"));
        }
        if let Some(reason) = &dismissal.reason {
            let _ = write!(out, ": {}", escape(&mask(reason)));
        }
    }
    out.push('\n');
}

/// Findings that only their id is left of.
fn bare_ids<'a>(out: &mut String, findings: impl Iterator<Item = &'a Judged<'a>>) {
    let ids: Vec<&str> = findings
        .filter(|f| f.finding.title.is_empty())
        .map(|f| f.finding.id.as_str())
        .collect();
    if !ids.is_empty() {
        let _ = writeln!(
            out,
            "- {} without room for the text: {}",
            words::count(ids.len() as u64, "finding"),
            code(&ids.join(" "))
        );
    }
}

fn place(pr: &PrFacts, review: &StoredReview, judged: &Judged<'_>) -> String {
    let finding = judged.finding;
    if finding.file.is_empty() {
        return "place too long to show".to_owned();
    }
    let mut text = escape_free(&finding.file);
    if let Some(line) = finding.line {
        let _ = write!(text, ":{line}");
        if let Some(end) = finding.end_line.filter(|end| *end > line) {
            let _ = write!(text, "-{end}");
        }
    }
    let shown = match links::finding(pr, review, finding) {
        Some(link) => format!("[{}]({link})", code(&text)),
        None => code(&text),
    };
    match model::Side::from(finding.side) {
        model::Side::Old => format!("{shown} before the change"),
        model::Side::New => shown,
    }
}

fn fold(out: &mut String, summary: &str, body: &str) {
    let _ = writeln!(
        out,
        "\n<details>\n<summary>{summary}</summary>\n\n{}\n\n</details>",
        body.trim_end()
    );
}

fn gaps(out: &mut String, review: &StoredReview) {
    let gap = |kind: &str| kind.parse::<NoteKind>().map_or(true, NoteKind::is_gap);
    let missing: Vec<_> = review
        .files
        .iter()
        .filter(|f| matches!(f.outcome, FileOutcome::Missed | FileOutcome::Partial))
        .collect();
    if review.complete {
        return;
    }
    out.push_str("\n### Not reviewed\n\nThe review is incomplete; take it as no judgement of what is listed here.\n\n");
    for note in review.notes.iter().filter(|note| gap(&note.kind)) {
        let _ = writeln!(out, "- {}", escape(&note.text));
    }
    for file in missing.iter().take(20) {
        let how = if file.outcome == FileOutcome::Partial {
            "read in part"
        } else {
            "not read"
        };
        let why = file.reason.as_deref().unwrap_or("no reason given");
        let _ = writeln!(
            out,
            "- {} {how}: {}",
            code(&escape_free(&file.path)),
            escape(why)
        );
    }
    if missing.len() > 20 {
        let _ = writeln!(
            out,
            "- and {}.",
            words::count(missing.len() as u64 - 20, "more file")
        );
    }
}

/// A clean review says what was read.
fn what_was_read(out: &mut String, review: &StoredReview) {
    let read: Vec<_> = review
        .files
        .iter()
        .filter(|f| f.outcome == FileOutcome::Reviewed)
        .collect();
    if read.is_empty() {
        return;
    }
    let names: Vec<_> = read
        .iter()
        .take(10)
        .map(|f| {
            format!(
                "{} (+{} -{})",
                code(&escape_free(&f.path)),
                f.added,
                f.deleted
            )
        })
        .collect();
    let more = review
        .totals
        .reviewed_files
        .saturating_sub(names.len() as u64);
    let _ = write!(out, "\nRead: {}", names.join(", "));
    if more > 0 {
        let _ = write!(out, " and {}", words::count(more, "more file"));
    }
    out.push_str(".\n");
}

fn disputed(out: &mut String, pr: &PrFacts, review: &StoredReview, derived: &Derived<'_>) {
    let of: Vec<_> = derived
        .findings
        .iter()
        .filter(|f| FindingStatus::from(f.finding.status) == FindingStatus::Disputed && f.stands())
        .collect();
    let total = of.len() as u64 + review.unlisted.disputed;
    if total == 0 {
        return;
    }
    let mut body = String::new();
    for judged in of.iter().filter(|f| !f.finding.title.is_empty()) {
        item(&mut body, pr, review, judged, false);
    }
    bare_ids(&mut body, of.iter().copied());
    if body.is_empty() {
        body.push_str("There is no room for them.");
    }
    fold(out, &format!("Disputed, not deciding ({total})"), &body);
}

fn dismissed(
    out: &mut String,
    pr: &PrFacts,
    review: &StoredReview,
    derived: &Derived<'_>,
    budget: &Budget,
) {
    if derived.dismissed == 0 && derived.idle == 0 {
        return;
    }
    let of: Vec<_> = derived.findings.iter().filter(|f| !f.stands()).collect();
    let mut body = String::new();
    for judged in of.iter().take(budget.lists) {
        line_of(&mut body, pr, review, judged);
    }
    let more = of.len().saturating_sub(budget.lists);
    if more > 0 {
        let _ = writeln!(body, "- and {more} more.");
    }
    if derived.idle > 0 {
        let verb = if derived.idle == 1 {
            "concerns"
        } else {
            "concern"
        };
        let _ = writeln!(
            body,
            "- {} {verb} findings that are not in this review.",
            words::count(derived.idle, "dismissal")
        );
    }
    body.push_str("\n`/undismiss` with the id brings a finding back.");
    fold(out, &format!("Dismissed ({})", derived.dismissed), &body);
}

fn fixed(out: &mut String, review: &StoredReview) {
    let Some(delta) = review.delta.as_ref().filter(|d| !d.fixed.is_empty()) else {
        return;
    };
    let mut body = String::new();
    for (found, title) in &delta.fixed {
        let _ = match title.as_str() {
            "" => writeln!(body, "- {}", id(found)),
            title => writeln!(body, "- {} \u{b7} {}", escape(title), id(found)),
        };
    }
    fold(out, &format!("Fixed ({})", delta.fixed_total), &body);
}

fn dropped(out: &mut String, review: &StoredReview) {
    let total = review.dropped_total();
    if total == 0 {
        return;
    }
    let stages: Vec<_> = review
        .dropped_totals
        .iter()
        .map(|(stage, n)| format!("{n} {}", stage_words((*stage).into())))
        .collect();
    let mut body = String::new();
    for dropped in &review.dropped {
        let _ = writeln!(
            body,
            "- {} \u{b7} {} \u{b7} {}: {}",
            escape(&dropped.title),
            code(&escape_free(&dropped.place)),
            stage_words(dropped.stage.into()),
            escape(&dropped.reason)
        );
    }
    let more = total.saturating_sub(review.dropped.len() as u64);
    if more > 0 {
        let _ = writeln!(body, "- and {more} more.");
    }
    fold(
        out,
        &format!("Dropped ({total}): {}", stages.join(", ")),
        &body,
    );
}

fn filtered(out: &mut String, review: &StoredReview) {
    let total = review.filtered_total();
    if total == 0 {
        return;
    }
    let mut body = String::new();
    for (reason, n) in &review.filtered {
        let _ = writeln!(body, "- {}: {}", words::count(*n, "file"), escape(reason));
    }
    fold(
        out,
        &format!("Left out on purpose ({})", words::count(total, "file")),
        &body,
    );
}

fn notes(out: &mut String, review: &StoredReview) {
    let plain = |kind: &str| kind.parse::<NoteKind>().is_ok_and(|kind| !kind.is_gap());
    let of: Vec<_> = review
        .notes
        .iter()
        .filter(|note| plain(&note.kind))
        .collect();
    if of.is_empty() {
        return;
    }
    let mut body = String::new();
    for note in &of {
        let _ = writeln!(body, "- {}", escape(&note.text));
    }
    fold(out, &format!("Notes ({})", of.len()), &body);
}

fn not_reviewed(out: &mut String, page: &Page<'_>, why: &NotReviewed) {
    let names = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => list(&names[..names.len().min(20)]),
    };
    let (title, text) = match why {
        NotReviewed::BreakGlass => {
            let glass = page.state.break_glass.as_ref();
            let by = glass.map_or_else(String::new, |g| {
                format!(" by {}", code(&escape_free(&g.by)))
            });
            (
                "Skipped",
                format!(
                    "Switched off for this pull request{by} with {}. `/review` switches it on again. This says nothing about the code.",
                    code(page.marker)
                ),
            )
        }
        NotReviewed::Skipped(reason) => (
            "Skipped",
            format!(
                "Not reviewed: {}. This says nothing about the code.",
                escape(&start(reason))
            ),
        ),
        NotReviewed::CouldNotRun(reason) => (
            "Not reviewed: the review could not run",
            format!(
                "What went wrong: {}. This says nothing about the code.",
                escape(&start(reason))
            ),
        ),
        NotReviewed::CredentialLock { expected, declared } => (
            "Not reviewed: the credentials do not match",
            format!(
                "The workflow expects {} and the configuration of the base branch names {}. No model was called. Make `ECR_EXPECTED_TOKEN_ENV` and the configuration's `tokenEnv` name the same variables.",
                names(expected),
                names(declared)
            ),
        ),
        NotReviewed::SetupMissing(reason) => (
            "Not reviewed: the set-up is missing",
            format!(
                "What is missing: {}. No model was called. A setup folder that is new in this pull request takes effect once it is merged.",
                escape(&start(reason))
            ),
        ),
    };
    let _ = writeln!(out, "## ecr: {title}\n\n{text}");
}

fn start(text: &str) -> String {
    let masked = mask(text);
    let mut start: String = masked.trim_end_matches('.').chars().take(600).collect();
    if masked.chars().nth(600).is_some() {
        start.push('\u{2026}');
    }
    start
}

/// The review before, in short, under a comment that is about something else.
fn last_review(
    out: &mut String,
    page: &Page<'_>,
    review: &StoredReview,
    derived: &Derived<'_>,
    budget: &Budget,
) {
    let mut body = format!(
        "{}: {}.\n\n{}\n",
        verdict(review, derived.decision),
        words::tally_of(derived.tally),
        receipt(review)
    );
    for severity in [Severity::Critical, Severity::Warning, Severity::Suggestion] {
        section(&mut body, page.pr, review, derived, severity);
    }
    disputed(&mut body, page.pr, review, derived);
    dismissed(&mut body, page.pr, review, derived, budget);
    fold(out, "The last review", &body);
}

fn commands(out: &mut String, outcomes: &[Outcome]) {
    let mut body = String::new();
    for outcome in outcomes
        .iter()
        .filter(|o| o.permission == Permission::Granted)
    {
        let who = code(&escape_free(&outcome.author));
        if let Err(error) = &outcome.command {
            let _ = writeln!(
                body,
                "- A command of {who} was not understood: {}.",
                error_text(error)
            );
        }
        if !outcome.unknown.is_empty() {
            let ids: Vec<_> = outcome.unknown.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                body,
                "- A command of {who} names what is not in this review: {}.",
                code(&ids[..ids.len().min(20)].join(" "))
            );
        }
    }
    if !body.is_empty() {
        let kept: Vec<&str> = body.lines().take(10).collect();
        let _ = writeln!(out, "\n### Commands\n\n{}", kept.join("\n"));
    }
}

fn error_text(error: &CommandError) -> String {
    escape(&start(&error.to_string()))
}

fn damage(out: &mut String, damage: Damage) {
    if !damage.any() {
        return;
    }
    let mut lost = Vec::new();
    if damage.dismissals {
        lost.push("some dismissals may be missing (those given as comments were read again)");
    }
    if damage.review {
        lost.push("the last review is lost, so that nothing is said about what is new");
    }
    if damage.newer {
        lost.push("what a newer ecr had kept here was damaged or too long to keep");
    }
    let _ = writeln!(
        out,
        "\nThe data in this comment were damaged: {}.",
        lost.join("; ")
    );
}

fn footer(out: &mut String, page: &Page<'_>, review: Option<&StoredReview>) {
    let version = review.map_or(env!("CARGO_PKG_VERSION"), |review| &review.version);
    let _ = writeln!(
        out,
        "\n---\n\nAdvice from a program that can be wrong; a person decides. For those who may write here: `/dismiss <id> -- reason` and `/undismiss <id>` for a finding, `/review` to review again, {} to switch it off. ecr {}",
        code(page.marker),
        escape(version)
    );
}
