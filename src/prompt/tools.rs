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

const WHERE: &[(&str, &str)] = &[
    ("from", "first line"),
    ("column", "where to go on in a long line"),
];

/// The words of the tool `name`; empty for a tool that does not exist.
pub fn tool_text(name: &str) -> ToolText {
    let (description, fields): (_, &[_]) = match name {
        "read" => ("Numbered lines of a file.", WHERE),
        "grep" => (
            "Lines that match a regular expression (no look-around).",
            &[
                ("glob", "only these files"),
                ("context", "lines around a hit"),
            ],
        ),
        "glob" => (
            "Files whose path matches: * ** ? [ab] {a,b}; without / any folder.",
            &[],
        ),
        "list" => ("Entries of a folder; \"\" is the root.", &[]),
        "diff" => (
            "The change of a file: + and context lines with new numbers, - lines with old ones.",
            &[
                ("from", "first row"),
                ("column", "where to go on in a long row"),
            ],
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
            "End the review, with nothing or everything reported.",
            &[("examined", "changed files you examined")],
        ),
        _ => ("", &[]),
    };
    ToolText {
        description,
        fields,
    }
}
