//! GitHub workflows.

use std::sync::Arc;

use ecr::engine::builtin::CheckSettings;
use ecr::model::ChangeStatus;
use ecr::tree::MemoryTree;

use super::harness::{DiffBuilder, check_new, path, run, summary};

fn check(content: &str) -> Vec<String> {
    check_new(".github/workflows/ci.yml", content)
}

/// A workflow with one job; `job` is indented by four, `steps` by six.
fn workflow(on: &str, job: &str, steps: &str) -> String {
    format!("on: {on}\njobs:\n  a:\n    runs-on: ubuntu-latest\n{job}    steps:\n{steps}")
}

#[test]
fn text_of_strangers_in_scripts() {
    for (on, step, expected) in [
        (
            "issues",
            "      - run: echo \"${{ github.event.issue.title }}\"\n",
            "workflow-script-injection:6",
        ),
        (
            "[push, issue_comment]",
            "      - run: |\n          echo a\n          echo ${{ github.event.comment.body }}\n",
            "workflow-script-injection:8",
        ),
        (
            "pull_request_target",
            "      - name: x\n        run: git switch ${{ github.head_ref }}\n",
            "workflow-script-injection:7",
        ),
        (
            "discussion",
            "      - run: >\n          echo\n          ${{ format('{0}', github.event.discussion.body) }}\n",
            "workflow-script-injection:8",
        ),
        (
            "issues",
            "      - uses: actions/github-script@v7\n        with:\n          script: |\n            const t = `${{ github.event.issue.body }}`;\n",
            "workflow-script-injection:9",
        ),
        (
            "workflow_run",
            "      - run: echo ${{ github.event.workflow_run.head_branch }}\n",
            "workflow-script-injection:6",
        ),
        (
            "issues",
            "      - run: echo '${{ toJSON(github.event) }}'\n",
            "workflow-script-injection:6",
        ),
        (
            "pull_request",
            "      - run: echo ${{ github.event.pull_request.title }}\n",
            "workflow-untrusted-text:6",
        ),
        (
            "push",
            "      - run: echo \"${{ github.event.head_commit.message }}\"\n",
            "workflow-untrusted-text:6",
        ),
        (
            "push",
            "      - run: echo \"${{ github.event.commits[0].author.name }}\"\n",
            "workflow-untrusted-text:6",
        ),
    ] {
        assert_eq!(check(&workflow(on, "", step)), [expected], "{on}\n{step}");
    }
}

#[test]
fn text_that_is_handled_well() {
    for step in [
        "      - run: echo \"$TITLE\"\n        env:\n          TITLE: ${{ github.event.issue.title }}\n",
        "      - run: echo ${{ github.event.issue.number }}\n",
        "      - run: echo ${{ github.event.pull_request.head.sha }}\n",
        "      - run: echo ${{ contains(github.event.comment.body, '/go') }}\n",
        "      - if: github.event.comment.body == '/go'\n        run: make\n",
        "      - name: ${{ github.event.issue.title }}\n        run: echo ok\n",
        "      - uses: actions/labeler@v5\n        with:\n          title: ${{ github.event.issue.title }}\n",
        "      - run: echo ${{ steps.x.outputs.title }} ${{ inputs.body }}\n",
        "      - run: echo github.event.issue.title\n",
        "      # run: echo ${{ github.event.issue.title }}\n      - run: echo ok\n",
        "      - uses: actions/github-script@v7\n        with:\n          script: console.log(context.payload.issue.title)\n",
    ] {
        assert_eq!(
            check(&workflow("issues", "", step)),
            [] as [&str; 0],
            "{step}"
        );
    }
}

const HEAD: &str = "      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.event.pull_request.head.sha }}\n";

#[test]
fn code_of_strangers_with_privileges() {
    let merge = "      - uses: actions/checkout@v4\n        with:\n          ref: refs/pull/${{ github.event.pull_request.number }}/merge\n";
    let of_run = "      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.event.workflow_run.head_sha }}\n";
    let by_cli = "      - run: |\n          gh pr checkout ${{ github.event.issue.number }}\n          npm ci\n";
    for (on, steps, expected) in [
        (
            "pull_request_target",
            format!("{HEAD}      - run: npm ci && npm test\n"),
            "workflow-untrusted-code:8",
        ),
        (
            "pull_request_target",
            format!("{HEAD}      - run: |\n          make\n"),
            "workflow-untrusted-code:8",
        ),
        (
            "pull_request_target",
            format!("{HEAD}      - uses: ./.github/actions/build\n"),
            "workflow-untrusted-code:8",
        ),
        (
            "{pull_request_target: {types: [opened]}}",
            format!("{merge}      - run: ./build.sh\n"),
            "workflow-untrusted-code:8",
        ),
        (
            "workflow_run",
            format!("{of_run}      - run: cargo test\n"),
            "workflow-untrusted-code:8",
        ),
        (
            "issue_comment",
            by_cli.to_owned(),
            "workflow-untrusted-code:7",
        ),
        (
            "pull_request_target",
            format!("{HEAD}      - run: cat README.md\n"),
            "workflow-untrusted-checkout:8",
        ),
        (
            "pull_request_target",
            HEAD.to_owned(),
            "workflow-untrusted-checkout:8",
        ),
    ] {
        assert_eq!(
            check(&workflow(on, "", &steps)),
            [expected],
            "{on}\n{steps}"
        );
    }
    let guarded = "    if: github.event.pull_request.head.repo.full_name == github.repository\n";
    assert_eq!(
        check(&workflow(
            "pull_request_target",
            guarded,
            &format!("{HEAD}      - run: make\n")
        )),
        ["workflow-untrusted-checkout:9"]
    );
    let reading = "    permissions:\n      contents: read\n";
    assert_eq!(
        check(&workflow(
            "pull_request_target",
            reading,
            &format!("{HEAD}      - run: make\n")
        )),
        ["workflow-untrusted-checkout:10"]
    );
    let with_secret =
        format!("{HEAD}      - run: make\n        env:\n          K: ${{{{ secrets.DEPLOY }}}}\n");
    assert_eq!(
        check(&workflow("pull_request_target", reading, &with_secret)),
        ["workflow-untrusted-code:10"]
    );
}

#[test]
fn code_that_is_trusted() {
    let base = "      - uses: actions/checkout@v4\n";
    for (on, steps) in [
        ("pull_request", format!("{HEAD}      - run: make\n")),
        ("push", format!("{HEAD}      - run: make\n")),
        ("pull_request_target", format!("{base}      - run: make\n")),
        ("pull_request_target", "      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.base_ref }}\n      - run: make\n".to_owned()),
        ("workflow_run", format!("{base}      - run: make\n")),
        ("issue_comment", "      - run: gh pr comment 1 --body ok\n".to_owned()),
    ] {
        assert_eq!(check(&workflow(on, "", &steps)), [] as [&str; 0], "{on}\n{steps}");
    }
}

#[test]
fn pins_permissions_and_secrets() {
    let sha = "a".repeat(20) + &"1".repeat(20);
    for (content, expected) in [
        (workflow("push", "", "      - uses: some/action@v1\n"), vec!["workflow-unpinned-action:6"]),
        (workflow("push", "", "      - uses: some/action/sub@main\n"), vec!["workflow-unpinned-action:6"]),
        (workflow("push", "", "      - uses: docker://alpine:3\n"), vec!["workflow-unpinned-action:6"]),
        (workflow("push", "    permissions: write-all\n", "      - run: make\n"), vec!["workflow-write-all:5"]),
        (format!("permissions: write-all\n{}", workflow("push", "", "      - run: make\n")), vec!["workflow-write-all:1"]),
        (
            "on: push\njobs:\n  a:\n    uses: other/repo/.github/workflows/x.yml@main\n    secrets: inherit\n".to_owned(),
            vec!["workflow-unpinned-action:4", "workflow-secrets-inherit:5"],
        ),
        (workflow("push", "", "      - run: make\n        env:\n          ALL: ${{ toJSON(secrets) }}\n"), vec!["workflow-all-secrets:8"]),
        // What is fine.
        (workflow("push", "", &format!("      - uses: some/action@{sha} # v1\n")), vec![]),
        (workflow("push", "", "      - uses: actions/checkout@v4\n"), vec![]),
        (workflow("push", "", "      - uses: github/codeql-action/init@v3\n"), vec![]),
        (workflow("push", "", "      - uses: ./local\n"), vec![]),
        (workflow("push", "    permissions: read-all\n", "      - run: make\n"), vec![]),
        (workflow("push", "    permissions:\n      contents: write\n", "      - run: make\n"), vec![]),
        ("on: push\njobs:\n  a:\n    uses: ./.github/workflows/x.yml\n    secrets: inherit\n".to_owned(), vec![]),
        (workflow("push", "", "      - run: make\n        env:\n          ONE: ${{ secrets.ONE }}\n          M: ${{ toJSON(matrix) }}\n"), vec![]),
    ] {
        assert_eq!(check(&content), expected, "{content}");
    }
}

#[test]
fn only_real_workflows_and_actions_count() {
    let bad = workflow(
        "issues",
        "",
        "      - run: echo ${{ github.event.issue.title }}\n",
    );
    for name in [
        "workflows/ci.yml",
        "vendor/x/.github/workflows/ci.yml",
        ".github/workflows/ci.txt",
        "docs/ci.yml",
        ".github/dependabot.yml",
    ] {
        assert_eq!(check_new(name, &bad), [] as [&str; 0], "{name}");
    }
    let action = "runs:\n  using: composite\n  steps:\n    - run: echo ${{ github.event.issue.title }}\n      shell: bash\n";
    assert_eq!(
        check_new("tool/action.yml", action),
        ["workflow-untrusted-text:4"]
    );
    assert_eq!(check("on: [\n"), [] as [&str; 0]);
    assert_eq!(check("just text"), [] as [&str; 0]);
}

#[test]
fn a_new_trigger_over_old_steps_counts_and_old_faults_do_not() {
    let old = workflow(
        "pull_request_target",
        "",
        &format!("{HEAD}      - run: make\n"),
    );
    let mut tree = MemoryTree::new();
    tree.insert(path(".github/workflows/ci.yml"), old.as_bytes());
    let tree = Arc::new(tree);
    for (line, expected) in [
        (1, vec!["workflow-untrusted-code:1"]),
        (9, vec!["workflow-untrusted-code:9"]),
        (4, vec![]),
    ] {
        let text = old.lines().nth(line - 1).unwrap_or_default();
        let diff = DiffBuilder::default()
            .file(
                ".github/workflows/ci.yml",
                ChangeStatus::Modified,
                &[(line as u32, vec![('+', text.as_bytes())])],
            )
            .build();
        let (findings, _) = run(&diff, Some(tree.clone()), CheckSettings::default());
        assert_eq!(summary(&findings), expected, "line {line}");
    }
}
