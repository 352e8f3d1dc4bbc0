//! What the jobs of a workflow do: triggers, guards, checkouts, and what runs what was checked out.

use super::expression::{expressions, names_number, names_untrusted_head};
use super::yaml::Item;

/// Events that strangers cause and whose runs hold the repository's secrets and a token that may write.
const PRIVILEGED: &[&str] = &[
    "pull_request_target",
    "issue_comment",
    "issues",
    "discussion",
    "discussion_comment",
    "workflow_run",
    "gollum",
];

/// Privileged events that come with a stranger's code.
const WITH_CODE: &[&str] = &["pull_request_target", "issue_comment", "workflow_run"];

/// Words of a condition that lets only trusted people or the repository's own branches through.
const GUARDS: &[&str] = &[
    "author_association",
    "head.repo.full_name",
    "head.repo.fork",
    "head.repo.owner",
    "head.repo.id",
    "head.user.login",
    "head_repository",
    "github.actor",
    "github.triggering_actor",
    "sender.login",
    "user.login",
    "label",
    "permission",
    "merged",
    "workflow_run.event",
    "is-collaborator",
    "allowed",
    "authorized",
    "trusted",
];

/// The events of a workflow: name and line.
pub(super) fn triggers(root: &Item) -> Vec<(&str, u32)> {
    // YAML 1.1 readers see the bare key as `true`.
    let Some(on) = root.get("on").or_else(|| root.get("true")) else {
        return Vec::new();
    };
    let mut found: Vec<(&str, u32)> = on
        .entries()
        .iter()
        .map(|(name, line, _)| (name.as_str(), *line))
        .collect();
    found.extend(
        on.items()
            .iter()
            .filter_map(|item| Some((item.text()?, item.line))),
    );
    found.extend(on.text().map(|text| (text, on.line)));
    found
}

/// The first privileged event.
pub(super) fn privileged<'a>(triggers: &[(&'a str, u32)]) -> Option<(&'a str, u32)> {
    triggers
        .iter()
        .copied()
        .find(|(name, _)| PRIVILEGED.contains(name))
}

/// The first privileged event that comes with a stranger's code.
pub(super) fn privileged_with_code<'a>(triggers: &[(&'a str, u32)]) -> Option<(&'a str, u32)> {
    triggers
        .iter()
        .copied()
        .find(|(name, _)| WITH_CODE.contains(name))
}

/// True when a job or step runs only for people or branches that something vouches for, or waits for an approval.
pub(super) fn is_guarded(item: &Item) -> bool {
    item.get("environment").is_some()
        || item
            .get("if")
            .and_then(Item::text)
            .is_some_and(|condition| {
                let condition = condition.to_ascii_lowercase();
                GUARDS.iter().any(|guard| condition.contains(guard))
            })
}

/// True when `permissions` of the job, or else of the workflow, allow no writing.
pub(super) fn only_reads(root: &Item, job: &Item) -> bool {
    let Some(permissions) = job.get("permissions").or_else(|| root.get("permissions")) else {
        return false;
    };
    match permissions.text() {
        Some(text) => matches!(text, "read-all" | "{}"),
        None => permissions
            .entries()
            .iter()
            .all(|(.., value)| value.text().is_some_and(|v| v != "write")),
    }
}

/// True when something in the job reads a secret of the repository (the automatic token aside).
pub(super) fn uses_secrets(job: &Item) -> bool {
    let mut used = false;
    job.each_text(&mut |text, _| {
        used |= expressions(text).iter().any(|e| {
            let low = e.to_ascii_lowercase();
            low.contains("secrets.") && low.replace("secrets.github_token", "").contains("secrets.")
                || low.contains("secrets[")
        });
    });
    used
}

/// Where a step fetches a stranger's code, when it does: the line that says so.
pub(super) fn untrusted_checkout(step: &Item) -> Option<u32> {
    if let Some(uses) = step.get("uses").and_then(Item::text)
        && uses.starts_with("actions/checkout@")
    {
        let with = step.get("with")?;
        return ["ref", "repository"].iter().find_map(|key| {
            let value = with.get(key)?;
            let text = value.text()?;
            let inner = expressions(text);
            let head = inner.iter().any(|e| names_untrusted_head(e));
            let pull = text.contains("refs/pull/") && inner.iter().any(|e| names_number(e));
            (head || pull).then_some(value.line)
        });
    }
    let run = step.get("run")?;
    let text = run.text()?;
    text.lines()
        .any(|line| line.trim_start().starts_with("gh pr checkout"))
        .then_some(run.line)
}

/// True when a step runs what lies in the work tree: a local action, or a command that builds, installs or tests it.
pub(super) fn runs_work_tree(step: &Item) -> bool {
    if step
        .get("uses")
        .and_then(Item::text)
        .is_some_and(|uses| uses.starts_with("./"))
    {
        return true;
    }
    let Some(script) = step.get("run").and_then(Item::text) else {
        return false;
    };
    script.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("sudo ");
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        let first = words.next().unwrap_or_default();
        match program {
            "npm" => matches!(
                first,
                "ci" | "install" | "i" | "test" | "t" | "run" | "run-script" | "start" | "rebuild"
            ),
            "yarn" | "pnpm" | "bun" => !matches!(
                first,
                "config" | "--version" | "dlx" | "cache" | "store" | "why" | "info"
            ),
            "make" | "gmake" | "ninja" | "cmake" | "tox" | "nox" | "pytest" | "gradle" | "mvn"
            | "bundle" | "rake" | "composer" | "bazel" | "just" | "meson" | "ant" | "sbt"
            | "mix" | "rebar3" | "stack" | "cabal" | "swift" | "xcodebuild" | "fastlane"
            | "pre-commit" => true,
            "cargo" => matches!(
                first,
                "build"
                    | "test"
                    | "run"
                    | "check"
                    | "clippy"
                    | "bench"
                    | "nextest"
                    | "install"
                    | "doc"
                    | "publish"
                    | "package"
            ),
            "go" => matches!(first, "test" | "run" | "generate" | "build"),
            "pip" | "pip3" => line.contains(" .") || line.contains(" -e") || line.contains(" -r "),
            "python" | "python3" | "node" | "ruby" | "bash" | "sh" | "deno" | "php" | "perl" => {
                first == "-m"
                    || (!first.starts_with('-')
                        && !first.starts_with('/')
                        && first.contains('.')
                        && !first.contains("://"))
            }
            "poetry" | "uv" | "pipenv" | "pdm" | "hatch" => {
                matches!(first, "install" | "run" | "sync" | "build" | "test")
            }
            "docker" => matches!(first, "build" | "buildx" | "compose"),
            _ => program.starts_with("./"),
        }
    })
}
