//! What README.md, AGENTS.md and the LLP documents say in code spans is true of the repository and of the binary.
//!
//! @ref LLP 0008#texts-are-claims — what is read as a claim

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Options of other programs that our texts speak of.
#[rustfmt::skip]
const OTHERS_OPTIONS: &[&str] = &[
    "--locked", "--release", "--lib", "--test",                                             // cargo
    "--raw", "--numstat", "--end-of-options", "--no-ext-diff", "--no-textconv", "--no-index", // git
    "--safe-mode",                                                                          // claude
    "--cached", "--others", "--exclude-standard", "--git-dir", "--work-tree",
];

/// Something a text claims to exist.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// A path from the repository root.
    Path(String),
    /// The words behind `ecr`.
    Command(Vec<String>),
    /// An option on its own, of whichever command.
    Option(String),
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts that are there, by name.
fn documents() -> BTreeMap<String, String> {
    let mut names = vec!["README.md".to_owned(), "AGENTS.md".to_owned()];
    for entry in std::fs::read_dir(root().join("llp")).expect("llp/") {
        names.push(format!(
            "llp/{}",
            entry.expect("an entry").file_name().to_string_lossy()
        ));
    }
    names
        .into_iter()
        .filter_map(|name| {
            Some((
                name.clone(),
                std::fs::read_to_string(root().join(&name)).ok()?,
            ))
        })
        .collect()
}

/// Every code span, and every line of a code block.
fn code(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Code(code) => found.push(code.into_string()),
            Event::Text(text) if in_block => found.extend(text.lines().map(str::to_owned)),
            _ => {}
        }
    }
    found
}

/// What a piece of code claims. `top` are the entries of the repository root.
fn claims(code: &str, top: &BTreeSet<String>) -> Vec<Claim> {
    let words: Vec<_> = code
        .split_whitespace()
        .take_while(|word| *word != "#")
        .collect();
    let Some(first) = words.first() else {
        return Vec::new();
    };
    let arguments = match *first {
        "ecr" | "target/release/ecr" => Some(&words[1..]),
        "./ref-check" => {
            return vec![Claim::Command(
                std::iter::once("ref-check")
                    .chain(words[1..].iter().copied())
                    .map(str::to_owned)
                    .collect(),
            )];
        }
        "cargo" if words.get(1) == Some(&"run") => words
            .iter()
            .position(|w| *w == "--")
            .map(|at| &words[at + 1..]),
        _ => None,
    };
    if let Some(arguments) = arguments {
        return vec![Claim::Command(
            arguments.iter().map(|word| (*word).to_owned()).collect(),
        )];
    }
    if first.starts_with("--") {
        return words
            .iter()
            .filter(|w| w.starts_with("--"))
            .map(|w| Claim::Option(option_name(w)))
            .collect();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_path = top.contains(first.split('/').next().unwrap_or(first));
    let placeholder = first.contains("NNNN") || first.contains("..");
    if words.len() == 1 && is_path && !placeholder && first.chars().all(plain) {
        return vec![Claim::Path((*first).to_owned())];
    }
    Vec::new()
}

/// `--format` of `--format=json`, `[--format` and `--format]`.
fn option_name(word: &str) -> String {
    let word = word.trim_matches(|c: char| "[](),.;`".contains(c));
    word.split(['=', '|']).next().unwrap_or(word).to_owned()
}

/// The sub-command of a claim and its options; the command is `review` where none is named.
fn split_command(words: &[String]) -> (String, Vec<String>) {
    let named = words
        .first()
        .filter(|w| !w.starts_with('-') && w.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    let options = words
        .iter()
        .map(|w| w.trim_start_matches('['))
        .filter(|w| w.starts_with("--") && w.len() > 2);
    (
        named.cloned().unwrap_or_else(|| "review".to_owned()),
        options.map(option_name).collect(),
    )
}

fn help(arguments: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_ecr"))
        .args(arguments)
        .arg("--help")
        .output()
        .expect("ecr starts");
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True when a help text explains the option: the whole word, not the start of a longer one.
fn explains(help: &str, option: &str) -> bool {
    help.match_indices(option).any(|(at, _)| {
        !help[at + option.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// The commands that `ecr --help` lists.
fn commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

fn top_level() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root()).expect("the repository");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    names
        .filter(|name| !matches!(name.as_str(), "target" | ".git" | ".runs"))
        .collect()
}

/// All claims with the file that makes them.
fn all_claims() -> Vec<(String, Claim)> {
    let top = top_level();
    let mut found = Vec::new();
    for (name, text) in documents() {
        let pieces = code(&text);
        let commands = pieces
            .iter()
            .flat_map(|code| code.split(" | "))
            .flat_map(|code| code.split(" && "));
        for code in commands {
            found.extend(
                claims(code, &top)
                    .into_iter()
                    .map(|claim| (name.clone(), claim)),
            );
        }
    }
    found
}

#[test]
fn paths_exist() {
    let mut seen = 0;
    let mut missing = Vec::new();
    for (file, claim) in all_claims() {
        let Claim::Path(path) = claim else { continue };
        seen += 1;
        if !root().join(&path).exists() {
            missing.push(format!("{file}: `{path}`"));
        }
    }
    assert!(seen > 10, "the texts name {seen} paths");
    assert!(
        missing.is_empty(),
        "these do not exist:\n{}",
        missing.join("\n")
    );
}

#[test]
fn commands_and_options_exist() {
    let overview = help(&[]).expect("ecr --help succeeds");
    let names = commands(&overview);
    let texts: BTreeMap<_, _> = names
        .iter()
        .map(|name| (*name, help(&[name]).unwrap_or_default()))
        .collect();
    assert!(
        texts.len() > 3,
        "ecr --help lists its commands:\n{overview}"
    );
    let mut wrong = BTreeSet::new();
    for (file, claim) in all_claims() {
        match claim {
            Claim::Path(_) => {}
            // `---` is the rule of front matter, not an option.
            Claim::Option(option) if option.bytes().all(|b| b == b'-') => {}
            Claim::Option(option) => {
                let known = OTHERS_OPTIONS.contains(&option.as_str())
                    || explains(&overview, &option)
                    || texts.values().any(|text| explains(text, &option));
                if !known {
                    wrong.insert(format!("{file}: no command has `{option}`"));
                }
            }
            Claim::Command(words) => {
                let (name, options) = split_command(&words);
                let Some(text) = texts.get(name.as_str()) else {
                    wrong.insert(format!("{file}: there is no `ecr {name}`"));
                    continue;
                };
                for option in options {
                    if !explains(text, &option) && !explains(&overview, &option) {
                        wrong.insert(format!("{file}: `ecr {name}` has no `{option}`"));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.into_iter().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn the_guide_for_agents_stays_short() {
    let text = std::fs::read_to_string(root().join("AGENTS.md")).expect("AGENTS.md");
    assert!(text.lines().count() <= 150);
}

#[test]
fn claims_are_read_from_code() {
    let top = BTreeSet::from(["src", "llp", ".ci"].map(str::to_owned));
    let command = |words: &[&str]| {
        vec![Claim::Command(
            words.iter().map(|w| (*w).to_owned()).collect(),
        )]
    };
    for (text, expected) in [
        (
            "src/diff/types.rs",
            vec![Claim::Path("src/diff/types.rs".to_owned())],
        ),
        (".ci/run", vec![Claim::Path(".ci/run".to_owned())]),
        ("src/<module>/", vec![]),
        ("agents/a.md", vec![]),
        ("llp/NNNN-slug.type.md", vec![]),
        ("ecr review --staged", command(&["review", "--staged"])),
        (
            "cargo run --release --locked -- demo  # the main job",
            command(&["demo"]),
        ),
        ("cargo test --locked", vec![]),
        ("./ref-check --json", command(&["ref-check", "--json"])),
        ("--format json", vec![Claim::Option("--format".to_owned())]),
        ("", vec![]),
    ] {
        assert_eq!(claims(text, &top), expected, "{text}");
    }
    assert_eq!(
        code("`a`\n\n```sh\nb c\nd\n```\n\nnot `e f`\n"),
        ["a", "b c", "d", "e f"]
    );
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        split_command(&words("--staged -- x")),
        ("review".to_owned(), vec!["--staged".to_owned()])
    );
    let expected = ("explain".to_owned(), vec!["--run".to_owned()]);
    assert_eq!(split_command(&words("explain <id> [--run FILE]")), expected);
}

#[test]
fn help_texts_are_read() {
    let help = "Usage: ecr\n\nCommands:\n  review  Reviews\n            more\n  demo    Shows\n  help    Prints\n\nOptions:\n  -v, --verbose-all\n      --format <F>\n";
    assert_eq!(commands(help), ["review", "demo"]);
    assert!(explains(help, "--format") && explains(help, "--verbose-all"));
    assert!(!explains(help, "--verbose") && !explains(help, "--form"));
}
