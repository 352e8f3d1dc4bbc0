//! The documented table of the structural rules.

use super::super::Rule;
use crate::model::{Category, Severity};

pub(super) const TLS: &str = "tls-verification-off";
pub(super) const SSH_HOST_KEY: &str = "ssh-host-key-unchecked";
pub(super) const SHELL: &str = "shell-from-data";
pub(super) const SQL: &str = "sql-from-data";
pub(super) const CODE: &str = "code-from-data";
pub(super) const DESERIALISATION: &str = "unsafe-deserialisation";
pub(super) const DEBUG_SERVER: &str = "debug-server-exposed";
pub(super) const DEBUGGER: &str = "debugger-left";
pub(super) const DEBUG_PRINT: &str = "debug-print-left";
pub(super) const FOCUSED_TEST: &str = "focused-test";
pub(super) const MUTATED_DEFAULT: &str = "mutated-default-argument";
pub(super) const ASSERT_TUPLE: &str = "assert-on-tuple";
pub(super) const EXCEPT_OR: &str = "except-with-or";
pub(super) const RAISE_NOT_IMPLEMENTED: &str = "raise-notimplemented";
pub(super) const LITERAL_IDENTITY: &str = "literal-identity";
pub(super) const NAN_COMPARISON: &str = "nan-comparison";

/// Every structural rule that is built in, in the order of the documentation.
pub const RULES: &[Rule] = &[
    Rule {
        id: TLS,
        severity: Severity::Warning,
        category: Category::Security,
        title: "TLS certificate verification is switched off",
        consequence: "Anyone between this program and the server (a shared network, a proxy, a forged DNS answer) can \
            present any certificate, read what is sent and change what comes back; nothing fails and nobody notices.",
        remedy: "Keep verification on; for a private authority, add its certificate to the trust store or pass it to the client.",
    },
    Rule {
        id: SSH_HOST_KEY,
        severity: Severity::Warning,
        category: Category::Security,
        title: "The SSH host key is not checked",
        consequence: "The first machine that answers is taken for the server: an attacker on the path receives the \
            password or the forwarded agent, and the commands and files meant for the real host.",
        remedy: "Load the known host keys (a pinned `known_hosts` file) and refuse a host whose key is not among them.",
    },
    Rule {
        id: SHELL,
        severity: Severity::Warning,
        category: Category::Security,
        title: "A shell command is put together from a variable",
        consequence: "The shell parses the finished text: a value with a space, a quote or a `;` in it changes the command, \
            and whoever controls the value runs commands of their own with this program's rights.",
        remedy: "Pass the program and its arguments as a list, without a shell; where a shell is needed, quote every value for it.",
    },
    Rule {
        id: SQL,
        severity: Severity::Warning,
        category: Category::Security,
        title: "A value is pasted into an SQL statement",
        consequence: "A quote in the value ends the SQL literal: the query fails for honest input, and crafted input \
            reads or changes rows that its author has no right to.",
        remedy: "Leave a placeholder in the statement and pass the value as a bound parameter.",
    },
    Rule {
        id: CODE,
        severity: Severity::Warning,
        category: Category::Security,
        title: "Code is put together from data and run",
        consequence: "Whoever controls the data decides what this program executes, with all of its rights and secrets.",
        remedy: "Parse the data (JSON, a literal parser) or look the wanted operation up in a fixed table instead of evaluating text.",
    },
    Rule {
        id: DESERIALISATION,
        severity: Severity::Warning,
        category: Category::Security,
        title: "Data is deserialised by a format that can run code",
        consequence: "The sender of the data chooses which objects are built and so can run commands in this process the \
            moment the data is read, before any check of its content.",
        remedy: "Use a format that carries data only (JSON, `yaml.safe_load`), or authenticate the bytes before reading them.",
    },
    Rule {
        id: DEBUG_SERVER,
        severity: Severity::Warning,
        category: Category::Security,
        title: "The debugging server listens on every interface",
        consequence: "The debug mode of this server serves an interactive console: anyone who can reach the port runs \
            code in the process.",
        remedy: "Bind to 127.0.0.1 while debugging, and take `debug=True` out of anything that is deployed.",
    },
    Rule {
        id: DEBUGGER,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "A debugger breakpoint was left in",
        consequence: "The program stops here and waits for a person: a service hangs or aborts with the first request \
            that comes along, and a test run never ends.",
        remedy: "Remove the breakpoint.",
    },
    Rule {
        id: DEBUG_PRINT,
        severity: Severity::Suggestion,
        category: Category::Quality,
        title: "`dbg!` was left in",
        consequence: "It prints the expression to standard error on every call, in release builds too: noise for users, \
            and a leak where the value is private.",
        remedy: "Remove it, or log through the program's logger.",
    },
    Rule {
        id: FOCUSED_TEST,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "Only this test runs: a focus marker was left in",
        consequence: "Every other test in the file or suite is skipped while the run stays green, so regressions pass \
            unseen from this commit on.",
        remedy: "Remove the focus marker.",
    },
    Rule {
        id: MUTATED_DEFAULT,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "A mutable default argument is changed by the function",
        consequence: "Python builds the default once: what one call adds is still there for every later call, and data \
            of one caller shows up at the next.",
        remedy: "Default to None and make a new list, dict or set inside the function.",
    },
    Rule {
        id: ASSERT_TUPLE,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "This assertion can never fail: it asserts a tuple",
        consequence: "A tuple with something in it is always true, so the condition is not checked at all.",
        remedy: "Take the parentheses away: `assert condition, message`.",
    },
    Rule {
        id: EXCEPT_OR,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "Only the first of these exceptions is caught",
        consequence: "`A or B` is just `A`, so the second exception goes past this handler to the caller.",
        remedy: "Write the exceptions as a tuple: `except (A, B):`.",
    },
    Rule {
        id: RAISE_NOT_IMPLEMENTED,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "`NotImplemented` is not an exception",
        consequence: "Raising it gives `TypeError: exceptions must derive from BaseException`: callers that catch \
            NotImplementedError do not catch it, and the message misleads.",
        remedy: "Raise `NotImplementedError`.",
    },
    Rule {
        id: LITERAL_IDENTITY,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "A string is compared by identity, not by value",
        consequence: "Two equal strings need not be the same object: the comparison holds in a quick try, where both are \
            literals, and fails for a value that was read or built at run time.",
        remedy: "Compare the values: `==` in Python, `equals` in Java.",
    },
    Rule {
        id: NAN_COMPARISON,
        severity: Severity::Warning,
        category: Category::Correctness,
        title: "A comparison with NaN always gives the same answer",
        consequence: "NaN is unequal to everything, itself included: the branch for the bad number is never (or always) taken.",
        remedy: "Use the language's test: `Number.isNaN`, `math.isnan`, `math.IsNaN`, `is_nan`, `Double.isNaN`.",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::RuleId;

    #[test]
    fn ids_are_valid_and_unique_and_texts_fit() {
        let mut seen = BTreeSet::new();
        for rule in RULES {
            assert!(
                RuleId::new(rule.id).is_ok() && seen.insert(rule.id),
                "{}",
                rule.id
            );
            assert!(rule.title.len() <= 120, "{}", rule.id);
            assert!(
                rule.consequence.len() <= 600 && rule.consequence.ends_with('.'),
                "{}",
                rule.id
            );
            assert!(rule.remedy.ends_with('.'), "{}", rule.id);
        }
    }
}
