//! The workflow rules.

use std::ops::RangeInclusive;

use super::super::added::line_hit;
use super::super::all::rule;
use super::super::path::{is_action, is_workflow};
use super::expression::{dumps_secrets, expressions, untrusted};
use super::jobs::{
    is_guarded, only_reads, privileged, privileged_with_code, runs_work_tree, triggers,
    untrusted_checkout, uses_secrets,
};
use super::yaml::{Item, parse};
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

const INJECTION: &str = "workflow-script-injection";
const UNSAFE_TEXT: &str = "workflow-untrusted-text";
const PWN_REQUEST: &str = "workflow-untrusted-code";
const CHECKOUT: &str = "workflow-untrusted-checkout";
const INHERIT: &str = "workflow-secrets-inherit";
const ALL_SECRETS: &str = "workflow-all-secrets";
const WRITE_ALL: &str = "workflow-write-all";
const UNPINNED: &str = "workflow-unpinned-action";

/// The table.
pub(in super::super) static RULES: &[Rule] = &[
    rule(
        INJECTION,
        Severity::Critical,
        Category::Security,
        [
            "Text that strangers choose is pasted into a script that runs with secrets",
            "Whoever opens an issue or a pull request, or comments, runs commands of their choice with this workflow's token and secrets.",
            "Put the expression into `env:` and use the quoted variable in the script.",
        ],
    ),
    rule(
        UNSAFE_TEXT,
        Severity::Warning,
        Category::Security,
        [
            "Text that others choose is pasted into a script",
            "A quote or `$(…)` in a title, message or branch name breaks the script or runs as a command.",
            "Put the expression into `env:` and use the quoted variable in the script.",
        ],
    ),
    rule(
        PWN_REQUEST,
        Severity::Critical,
        Category::Security,
        [
            "A stranger's code runs with this repository's token and secrets",
            "Anyone who opens a pull request runs commands of their choice with a token that may write, and reads the secrets.",
            "Build strangers' code under `pull_request`; do the privileged part in a second workflow that runs none of it.",
        ],
    ),
    rule(
        CHECKOUT,
        Severity::Warning,
        Category::Security,
        [
            "A stranger's code is checked out in a privileged workflow",
            "A later step that builds, installs or sources anything from the work tree runs a stranger's commands with privileges.",
            "Check out the base, or read the pull request's files as data without running anything from them.",
        ],
    ),
    rule(
        INHERIT,
        Severity::Suggestion,
        Category::Security,
        [
            "All secrets are handed to a workflow of another repository",
            "Whoever can move that branch or tag reads every secret of this repository.",
            "Pass only the secrets it needs, and pin the workflow to a commit.",
        ],
    ),
    rule(
        ALL_SECRETS,
        Severity::Warning,
        Category::Security,
        [
            "All secrets are handed over at once",
            "One leak in that step gives away every secret of the repository, those it does not need included.",
            "Pass only the secrets that the step needs, by name.",
        ],
    ),
    rule(
        WRITE_ALL,
        Severity::Warning,
        Category::Security,
        [
            "The token may write everything",
            "Any step or action that is taken over can push code, publish releases and change settings.",
            "List only the permissions that the job needs.",
        ],
    ),
    rule(
        UNPINNED,
        Severity::Suggestion,
        Category::Security,
        [
            "A third-party action is not pinned to a commit",
            "Whoever can move the tag or branch runs their code in this workflow on the next run.",
            "Use the full commit id, with the version in a comment.",
        ],
    ),
];

struct Reporter<'f, 'a> {
    file: &'f CheckedFile<'a>,
    report: &'f mut dyn FnMut(Hit),
}

impl Reporter<'_, '_> {
    /// Reports at the first of `lines` that was added, if one was.
    fn at(&mut self, rule: &str, lines: &[u32], title: Option<String>) {
        let added = lines
            .iter()
            .find_map(|line| self.file.added_between(*line, *line));
        if let Some((number, text)) = added {
            (self.report)(Hit {
                title,
                ..line_hit(rule, number, text, None)
            });
        }
    }
}

/// Reports what a workflow or action file does that endangers the repository. Needs the whole file.
pub(in super::super) fn check(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    let workflow = is_workflow(file.path);
    if !workflow && !is_action(file.path) {
        return;
    }
    let Some(content) = file.content.get() else {
        return;
    };
    let Some(root) = parse(content) else {
        return;
    };
    let mut reporter = Reporter { file, report };
    if !workflow {
        if let Some(runs) = root.get("runs") {
            check_steps_text(runs, content, UNSAFE_TEXT, &mut reporter);
        }
        return;
    }
    let triggers = triggers(&root);
    write_all(&root, &mut reporter);
    let Some(jobs) = root.get("jobs") else {
        return;
    };
    for (_, _, job) in jobs.entries() {
        write_all(job, &mut reporter);
        let injection = if privileged(&triggers).is_some() && !is_guarded(job) {
            INJECTION
        } else {
            UNSAFE_TEXT
        };
        check_steps_text(job, content, injection, &mut reporter);
        check_actions(job, &mut reporter);
        if let Some((event, event_line)) = privileged_with_code(&triggers) {
            check_checkout(&root, job, (event, event_line), &mut reporter);
        }
    }
}

fn write_all(item: &Item, reporter: &mut Reporter<'_, '_>) {
    if let Some(permissions) = item.get("permissions")
        && permissions.text() == Some("write-all")
    {
        reporter.at(WRITE_ALL, &[permissions.line], None);
    }
}

/// Untrusted expressions in `run:` and in the scripts of `actions/github-script`.
fn check_steps_text(job: &Item, content: &[u8], rule: &str, reporter: &mut Reporter<'_, '_>) {
    let Some(steps) = job.get("steps") else {
        return;
    };
    for step in steps.items() {
        let script_action = step
            .get("uses")
            .and_then(Item::text)
            .is_some_and(|uses| uses.starts_with("actions/github-script@"));
        let script = if script_action {
            step.get("with").and_then(|with| with.get("script"))
        } else {
            step.get("run")
        };
        let Some(script) = script else {
            continue;
        };
        let rule = if is_guarded(step) { UNSAFE_TEXT } else { rule };
        let mut cursor = script.line;
        for expression in expressions(script.text().unwrap_or_default()) {
            let line = line_of(content, expression, cursor..=u32::MAX).unwrap_or(cursor);
            cursor = line;
            if let Some(context) = untrusted(expression) {
                reporter.at(
                    rule,
                    &[line],
                    Some(format!("`{context}` is pasted into a script")),
                );
            }
        }
    }
}

/// The first line within `lines` that holds `expression` (its first line, when it spans several).
fn line_of(content: &[u8], expression: &str, lines: RangeInclusive<u32>) -> Option<u32> {
    let needle = expression
        .lines()
        .find(|l| !l.trim().is_empty())?
        .as_bytes();
    (1_u32..)
        .zip(content.split(|b| *b == b'\n'))
        .skip_while(|(number, _)| number < lines.start())
        .find(|(_, line)| memchr::memmem::find(line, needle).is_some())
        .map(|(number, _)| number)
}

/// Third-party actions and reusable workflows, and what is handed to them.
fn check_actions(job: &Item, reporter: &mut Reporter<'_, '_>) {
    if let Some(uses) = job.get("uses") {
        let text = uses.text().unwrap_or_default();
        let secrets = job.get("secrets");
        if let Some(secrets) = secrets
            && secrets.text() == Some("inherit")
            && is_third_party(text)
        {
            reporter.at(INHERIT, &[secrets.line, uses.line], None);
        }
        unpinned(uses, reporter);
    }
    for step in job.get("steps").map(Item::items).unwrap_or_default() {
        if let Some(uses) = step.get("uses") {
            unpinned(uses, reporter);
        }
    }
    job.each_text(&mut |text, line| {
        if expressions(text).iter().any(|e| dumps_secrets(e)) {
            reporter.at(ALL_SECRETS, &[line], None);
        }
    });
}

fn unpinned(uses: &Item, reporter: &mut Reporter<'_, '_>) {
    let text = uses.text().unwrap_or_default();
    if is_third_party(text) {
        let action = text.split('@').next().unwrap_or_default();
        reporter.at(
            UNPINNED,
            &[uses.line],
            Some(format!("`{action}` is not pinned to a commit")),
        );
    }
}

/// True for an action from elsewhere whose version can move. GitHub's own actions and container images by digest count as fixed.
fn is_third_party(uses: &str) -> bool {
    let Some((name, version)) = uses.split_once('@') else {
        return uses.starts_with("docker://");
    };
    let own = ["actions/", "github/", "./"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    let fixed = (version.len() >= 40 && version.bytes().all(|b| b.is_ascii_hexdigit()))
        || version.starts_with("sha256:");
    !own && !fixed && !version.contains("${{")
}

/// A checkout of a stranger's code under an event that carries privileges.
fn check_checkout(root: &Item, job: &Item, event: (&str, u32), reporter: &mut Reporter<'_, '_>) {
    let steps = job.get("steps").map(Item::items).unwrap_or_default();
    for (index, step) in steps.iter().enumerate() {
        let Some(line) = untrusted_checkout(step) else {
            continue;
        };
        let later = &steps[index..];
        let runner = later.iter().find(|step| runs_work_tree(step));
        let guarded = is_guarded(job)
            || is_guarded(step)
            || runner.is_some_and(is_guarded)
            || steps[..index].iter().any(is_gate);
        let harmless = only_reads(root, job) && !uses_secrets(job);
        let certain = runner.is_some() && !guarded && !harmless;
        let runner_line = runner
            .and_then(|step| step.get("run").or_else(|| step.get("uses")))
            .map_or(line, |item| item.line);
        let title = format!("A stranger's code is checked out under `{}`", event.0);
        reporter.at(
            if certain { PWN_REQUEST } else { CHECKOUT },
            &[line, runner_line, event.1],
            Some(title),
        );
        return;
    }
}

/// True for an earlier step that checks who asked.
fn is_gate(step: &Item) -> bool {
    let mut text = String::new();
    step.each_text(&mut |part, _| {
        text.push_str(part);
        text.push('\n');
    });
    let text = text.to_ascii_lowercase();
    [
        "permission",
        "author_association",
        "collaborator",
        "membership",
        "authorized",
        "head.repo",
    ]
    .iter()
    .any(|word| text.contains(word))
}
