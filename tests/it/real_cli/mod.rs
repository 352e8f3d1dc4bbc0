//! The real command-line tools, in the jar, with a provider that plays a script: the same cases for each.
//! A tool that cannot be installed here is skipped, loudly.

mod codex;
mod faults;
mod hostile;
mod install;
mod killed;
mod opencode;
mod rehearsal;
pub(crate) mod rig;
mod tape;
mod trace;
mod turns;

use std::sync::Arc;

use ecr::engine::claude::Claude;
use ecr::engine::cli::CliDialect;
use ecr::engine::codex::Codex;
use ecr::engine::opencode::OpenCode;
use ecr::gateway::Protocol;

/// A tool under test.
pub(crate) struct Subject {
    /// The engine's name, and that of its lock files in `tests/fixtures/real_cli`.
    pub(crate) name: &'static str,
    /// The version of the lock file.
    pub(crate) version: &'static str,
    /// The dialect under test.
    pub(crate) dialect: fn() -> Arc<dyn CliDialect>,
    /// What its provider speaks.
    pub(crate) protocol: Protocol,
    /// The name of a model that it knows.
    pub(crate) model: &'static str,
    /// It is asked for a structured answer by a tool of this name; none is by its text.
    pub(crate) answer_tool: Option<&'static str>,
    /// Tools of its own that a model may try.
    pub(crate) own_tools: &'static [&'static str],
    /// Passes at the same time.
    pub(crate) at_once: usize,
}

pub(crate) static CLAUDE: Subject = Subject {
    name: "claude",
    version: "2.1.332",
    dialect: || Arc::new(Claude),
    protocol: Protocol::AnthropicMessages,
    model: "claude-opus-5-5",
    answer_tool: Some("StructuredOutput"),
    own_tools: &[
        "Bash",
        "Read",
        "Write",
        "Edit",
        "WebFetch",
        "Task",
        "Agent",
        "Skill",
        "ToolSearch",
        "ListMcpResourcesTool",
        "mcp__tree__nosuch",
    ],
    at_once: 4,
};

pub(crate) static CODEX: Subject = Subject {
    name: "codex",
    version: "0.171.0",
    dialect: || Arc::new(Codex),
    protocol: Protocol::OpenAiResponses,
    model: "gpt-5.5",
    answer_tool: None,
    own_tools: &[
        "exec_command",
        "write_stdin",
        "shell",
        "local_shell",
        "apply_patch",
        "view_image",
        "web_search",
        "spawn_agent",
        "tool_search",
        "read_file",
        "exec",
        "list_mcp_resources",
        "read_mcp_resource",
        "mcp__tree__nosuch",
    ],
    at_once: 4,
};

/// The three kinds of provider that it has packages for.
pub(crate) static OPENCODE: Subject = opencode(Protocol::OpenAiChat);
pub(crate) static OPENCODE_MESSAGES: Subject = opencode(Protocol::AnthropicMessages);
pub(crate) static OPENCODE_RESPONSES: Subject = opencode(Protocol::OpenAiResponses);

const fn opencode(protocol: Protocol) -> Subject {
    Subject {
        name: "opencode",
        version: "1.18.33",
        dialect: || Arc::new(OpenCode),
        protocol,
        model: "org/big",
        answer_tool: None,
        own_tools: &[
            "bash",
            "read",
            "write",
            "edit",
            "webfetch",
            "task",
            "skill",
            "list_mcp_resources",
            "execute",
            "tree_nosuch",
        ],
        at_once: 2,
    }
}

/// How a served tool is called by the model of `subject`.
pub(crate) fn spelling(subject: &Subject) -> impl Fn(&str) -> String {
    (subject.dialect)().facts().spelling
}

/// One test a case and tool.
macro_rules! for_each_tool {
    ($($case:path as $name:ident),* $(,)?) => {
        mod claude {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                $case(&super::CLAUDE).await;
            })*
        }
        mod codex_table {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                $case(&super::CODEX).await;
            })*
        }
        mod opencode_table {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                $case(&super::OPENCODE).await;
            })*
        }
    };
}

for_each_tool! {
    super::turns::a_clean_pass as a_clean_pass,
    super::turns::the_request_is_ours as the_request_is_ours,
    super::turns::tools_of_its_own_do_not_exist as tools_of_its_own_do_not_exist,
    super::turns::prose_is_never_a_review as prose_is_never_a_review,
    super::turns::a_schema_is_asked_for_and_checked as a_schema_is_asked_for_and_checked,
    super::turns::a_loop_of_tools_ends_with_the_turns as a_loop_of_tools_ends_with_the_turns,
    super::turns::broken_arguments_go_back_to_the_model as broken_arguments_go_back_to_the_model,
    super::turns::six_passes_at_once as six_passes_at_once,
    super::turns::another_model_is_recorded as another_model_is_recorded,
    super::faults::every_fault_has_its_class_and_leaves_nothing as every_fault_has_its_class_and_leaves_nothing,
    super::faults::what_breaks_off_once_is_asked_again as what_breaks_off_once_is_asked_again,
    super::faults::a_dead_tool_door_is_no_review as a_dead_tool_door_is_no_review,
    super::killed::deadline_and_cancellation_end_it_at_once as deadline_and_cancellation_end_it_at_once,
    super::killed::a_pass_that_is_dropped_leaves_nothing as a_pass_that_is_dropped_leaves_nothing,
    super::killed::a_child_that_is_killed_is_no_review as a_child_that_is_killed_is_no_review,
    super::hostile::nothing_outlives_ecr as nothing_outlives_ecr,
    super::hostile::the_obedient_model_gets_nowhere as the_obedient_model_gets_nowhere,
    super::hostile::the_kernel_saw_nothing_else as the_kernel_saw_nothing_else,
    super::rehearsal::a_version_that_was_not_tested_is_rehearsed_once as a_version_that_was_not_tested_is_rehearsed_once,
    super::tape::a_run_repeats_offline as a_run_repeats_offline,
    super::killed::the_placeholder_dies_with_the_pass as the_placeholder_dies_with_the_pass,
}
