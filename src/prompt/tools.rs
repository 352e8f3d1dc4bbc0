//! What the tools of the tool door say of themselves. Every request carries it, so it is short.

/// The words of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolText {
    /// What it does.
    pub description: &'static str,
    /// Words on those of its fields whose name does not say it all.
    pub fields: &'static [(&'static str, &'static str)],
}

/// How the tools are to be used together; clients put it beside the tools.
pub const INSTRUCTIONS: &str = "The code under review. Paths are relative to the repository's root. \
Report each defect as soon as you are sure of it, quoting the line; call finish when you are done.";

/// The words of the tool `name`; empty for a tool that does not exist.
pub fn tool_text(name: &str) -> ToolText {
    let (description, fields): (_, &[_]) = match name {
        "read" => (
            "Numbered lines of a file.",
            &[("column", "where to go on in a long line")],
        ),
        "grep" => (
            "Lines that match a regular expression (no look-around).",
            &[],
        ),
        "glob" => (
            "Files whose path matches: * ** ? [ab] {a,b}; without / in any folder.",
            &[],
        ),
        "list" => ("Entries of a folder; \"\" is the root.", &[]),
        "diff" => (
            "The change of a file: new numbers at + and context lines, old ones at -. from and to count rows.",
            &[],
        ),
        "report" => (
            "Report one defect. The answer is its id, or what to mend.",
            &[
                ("side", "old for removed lines"),
                ("consequence", "what goes wrong, and when"),
                ("evidence", "the line, verbatim"),
            ],
        ),
        "retract" => ("Take back a defect you reported.", &[]),
        "finish" => (
            "End the review when all is reported, or there is nothing to report.",
            &[("examined", "changed files you examined")],
        ),
        _ => ("", &[]),
    };
    ToolText {
        description,
        fields,
    }
}
