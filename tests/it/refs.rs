//! `ref-check` as a whole, over trees in memory and over this repository.

pub(crate) mod dir_tree;

use ecr::app::ref_check::{Format, Options, Problem, ProblemKind, check, run};
use ecr::model::RepoPath;
use ecr::tree::{EntryKind, MemoryTree};

use self::dir_tree::DirTree;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a repository path")
}

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let mut tree = MemoryTree::new();
    for (name, text) in files {
        tree.insert(path(name), text.as_bytes());
    }
    tree
}

fn problems(files: &[(&str, &str)]) -> Vec<Problem> {
    check(&tree(files), &Options::default())
        .expect("a readable tree")
        .problems
}

/// `line kind problem` of each problem.
fn lines(files: &[(&str, &str)]) -> Vec<String> {
    problems(files)
        .into_iter()
        .map(|p| format!("{} {} {}", p.line, p.kind, p.problem))
        .collect()
}

/// A repository with a setup of one scope, and `text` in one of its agents.
fn agent(text: &str) -> Vec<Problem> {
    problems(&[
        ("billing/.expo-code-review/agents/a.md", text),
        ("billing/finops/ledger.ts", "export const f = 1"),
        ("src/auth.ts", "export class Auth { check() {} }"),
        ("src/util.ts", "export function f() {}"),
        ("docs/D.md", "# Title\n\n## How it works\n"),
        ("docs/how.md", "x"),
        ("infra/cert/a.tf", "x"),
        (".github/workflows/ci.yml", "x"),
        ("general/module/x.ts", "x"),
    ])
}

#[track_caller]
fn agent_is(text: &str, kind: ProblemKind, part: &str, suggestion: Option<&str>) {
    let found = agent(text);
    assert_eq!(found.len(), 1, "{text}: {found:#?}");
    assert_eq!(found[0].kind, kind, "{text}");
    assert!(
        found[0].problem.contains(part),
        "{text}: {}",
        found[0].problem
    );
    assert_eq!(found[0].suggestion.as_deref(), suggestion, "{text}");
}

#[test]
fn broken_references_of_a_setup() {
    use ProblemKind::{BrokenRef, LineNumberRef};
    agent_is(
        "<!-- @ref src/moved/auth.ts -->",
        BrokenRef,
        "no such path",
        Some("src/auth.ts"),
    );
    agent_is("<!-- @ref zzz -->", BrokenRef, "no such path", None);
    agent_is(
        "<!-- @ref src/auth.ts#gone -->",
        BrokenRef,
        "no longer contains",
        None,
    );
    agent_is("<!-- @ref src/auth.ts#. -->", BrokenRef, "contains", None);
    agent_is(
        "<!-- @ref src/auth.ts#Auth.gone -->",
        BrokenRef,
        "no longer contains",
        None,
    );
    agent_is(
        "<!-- @ref docs/D.md#how-it-work -->",
        BrokenRef,
        "no heading",
        Some("docs/D.md#how-it-works"),
    );
    agent_is(
        "<!-- @ref src/auth.ts/ -->",
        BrokenRef,
        "is no folder",
        Some("src/auth.ts"),
    );
    agent_is("<!-- @ref src#Auth -->", BrokenRef, "is a folder", None);
    agent_is(
        "<!-- @ref ../out/s.ts -->",
        BrokenRef,
        "escapes the repository",
        None,
    );
    agent_is(
        "<!-- @ref glob:nope/** -->",
        BrokenRef,
        "matches no file",
        None,
    );
    agent_is("<!-- @ref https:// -->", BrokenRef, "no web address", None);
    agent_is("<!-- @ref -->", BrokenRef, "names no target", None);
    agent_is(
        "<!-- @ref src/auth.ts:42 -->",
        LineNumberRef,
        "line number",
        Some("src/auth.ts#<symbol>"),
    );
    agent_is(
        "<!-- @ref src/auth.ts#L42 -->",
        LineNumberRef,
        "line number",
        Some("src/auth.ts#<symbol>"),
    );
}

#[test]
fn references_of_a_setup_that_hold() {
    for text in [
        "<!-- @ref src/auth.ts — why -->",
        "<!-- @ref src/auth.ts#Auth.check [implements] -->",
        "<!-- @ref docs/D.md#how-it-works -->",
        "<!-- @ref infra/cert/ -->\n`infra/cert/`",
        "<!-- @ref infra/cert -->",
        "<!-- @ref glob:infra/cert/** -->\n`infra/cert/`",
        "<!-- @ref glob:**/*.tf -->",
        "<!-- @ref https://example.com/x#y -->",
        "<!-- @ref <path>#<symbol> -->",
        "<!-- @ref LLP 0042#x -->", // no LLP folder here: somebody else's
        "<!-- @ref src/util.ts#f -->\nsee `src/util.ts`",
        "<!--\n@ref src/util.ts — one\n@ref src/auth.ts — two\n-->\n`util.ts` and `src/auth.ts`",
        "<!-- @ref general/module/ -->\n`general/module`",
        "```\n<!-- @ref nowhere.ts -->\n`nowhere.ts`\n```",
        "`knex.raw()`, `anthropic/claude-opus-5`, `critical`, `label:<agent>`",
        "`src/auth.ts` and `src/auth.ts:12` <!-- @ref-ignore src/auth.ts, src/auth.ts:12 -->",
    ] {
        assert_eq!(agent(text), [], "{text}");
    }
}

#[test]
fn prose_that_no_reference_covers() {
    use ProblemKind::{LineNumberRef, UnannotatedCitation};
    let unannotated = |text, suggestion| {
        agent_is(
            text,
            UnannotatedCitation,
            "cited in prose",
            Some(suggestion),
        );
    };
    unannotated("`src/auth.ts`", "src/auth.ts");
    unannotated("`auth.ts`", "glob:**/auth.ts");
    unannotated("`finops`", "billing/finops/");
    unannotated("`general/{module,production}`", "general/module/");
    unannotated("`.github/workflows/**`", "glob:.github/workflows/**");
    unannotated("`.../finops/Ledger.ts`", "glob:**/finops/Ledger.ts");
    unannotated("<!-- @ref src/util.ts -->\n`src/auth.ts`", "src/auth.ts");
    agent_is(
        "`src/auth.ts:42-51`",
        LineNumberRef,
        "line number",
        Some("src/auth.ts#<symbol>"),
    );
}

#[test]
fn comments_of_json_files_count_and_lines_are_right() {
    let files = [(
        ".expo-code-review/config.jsonc",
        "{\n  // @ref lib/c.rs — why\n  \"a\": 1\n}\n",
    )];
    assert_eq!(lines(&files), ["2 broken-ref no such path `lib/c.rs`"]);
    let hidden = [
        (".expo-code-review/.runs/x.md", "`a.ts`"),
        (".expo-code-review/a.png", "@ref x"),
    ];
    assert_eq!(lines(&hidden), [""; 0]);
}

#[test]
fn routing_names_what_is_there() {
    let routing = r#"{
      // three scopes
      "defaults": { "enforceAgents": ["secrets", "ghost"] },
      "scopes": [
        { "name": "api", "paths": ["apps/api/**", "**/*.md"], "config": "apps/api" },
        { "name": "billing", "paths": ["nope/**"], "config": "billing" },
        { "name": "out", "paths": ["**"], "config": "../x" },
        { "name": "rest", "paths": ["**"], "config": "." },
      ],
    }"#;
    let files = [
        (".expo-code-review/routing.jsonc", routing),
        (".expo-code-review/agents/secrets.md", "x"),
        ("apps/api/.expo-agents/code-review/config.jsonc", "{}"),
        ("README.md", "x"),
        ("billing/x.ts", "x"),
    ];
    assert_eq!(
        lines(&files),
        [
            "3 structural the enforced agent `ghost` has no file agents/ghost.md",
            "6 structural the scope folder `billing` has no review setup (.expo-agents/code-review or .expo-code-review)",
            "6 structural the scope path `nope/**` matches no file in the repository",
            "7 structural the scope folder `../x` has no review setup (.expo-agents/code-review or .expo-code-review)",
        ]
    );
    let broken = [(".expo-code-review/routing.jsonc", "{\n  \"scopes\": [\n")];
    assert!(
        lines(&broken)[0].contains("structural cannot be read"),
        "{:?}",
        lines(&broken)
    );
    assert_eq!(
        lines(&[(".expo-code-review/routing.jsonc", "[]")]),
        ["1 structural is no JSON object"]
    );
}

fn document(number: &str, body: &str) -> String {
    format!(
        "# LLP {number}: T\n\n**Type:** Spec\n**Status:** Draft\n**Systems:** x\n**Author:** y\n**Date:** 2026-11-30\n\n{body}"
    )
}

#[test]
fn documents_and_code_refer_to_what_exists() {
    let one = document(
        "0001",
        "## Retry table\n\nSee LLP 0002#there, LLP 0002#nowhere and LLP 0009.\n\n```\nLLP 0008\n```\n",
    );
    let two = document(
        "0002",
        "## There\n\n[a](0001-a.spec.md#retry-table) [b](0003-c.spec.md) [c](#their)\n",
    );
    let again = document("0002", "");
    let mark = "@ref LLP";
    let code = format!(
        "// {mark} 0001#retry-table — why\nlet s = \"{mark} 0009#x\";\n/// {mark} 0001#retry-tabel — why\n// {mark} 12#x\n"
    );
    let files = [
        ("llp/0001-a.spec.md", one.as_str()),
        ("llp/0002-b.spec.md", two.as_str()),
        ("llp/0002-d.spec.md", again.as_str()),
        ("llp/notes.md", "x"),
        ("llp/diagram.svg", "x"),
        ("src/a.rs", code.as_str()),
        (
            "README.md",
            "`@ref LLP 0009#x`, and <!-- @ref LLP 0007#x -->",
        ),
        (".expo-code-review/shared.md", "<!-- @ref LLP 0006 -->"),
    ];
    let found: Vec<_> = problems(&files)
        .into_iter()
        .map(|p| format!("{}:{} {} {}", p.file.to_lossy(), p.line, p.kind, p.problem))
        .collect();
    assert_eq!(
        found,
        [
            ".expo-code-review/shared.md:1 broken-ref there is no LLP 0006",
            "README.md:1 broken-ref there is no LLP 0007",
            "llp/0001-a.spec.md:11 broken-ref LLP 0002 (llp/0002-b.spec.md) has no heading `#nowhere`",
            "llp/0001-a.spec.md:11 broken-ref there is no LLP 0009",
            "llp/0002-b.spec.md:11 broken-ref `llp/0002-b.spec.md` has no heading `#their`",
            "llp/0002-b.spec.md:11 broken-ref no such path `llp/0003-c.spec.md`",
            "llp/0002-d.spec.md:1 document the number 0002 is taken by llp/0002-b.spec.md",
            "llp/notes.md:1 document the file name is not NNNN-slug.type.md (types: explainer, design, spec, decision, principles, guide)",
            "src/a.rs:3 broken-ref LLP 0001 (llp/0001-a.spec.md) has no heading `#retry-tabel`",
            "src/a.rs:4 broken-ref `LLP 12#x` is not LLP and four digits",
        ]
    );
    let suggestion = problems(&files)
        .into_iter()
        .find(|p| p.file == path("src/a.rs"))
        .and_then(|p| p.suggestion);
    assert_eq!(suggestion.as_deref(), Some("LLP 0001#retry-table"));
}

#[test]
fn links_submodules_and_odd_files_are_no_trap() {
    let mut tree = tree(&[(
        ".expo-code-review/shared.md",
        "<!-- @ref link.md#x -->\n<!-- @ref vendor/lib/x.c#f -->\n<!-- @ref bin#f -->",
    )]);
    tree.insert_as(path("link.md"), EntryKind::Symlink, &b"/etc/passwd"[..]);
    tree.insert_as(path("vendor/lib"), EntryKind::Submodule, &b""[..]);
    tree.insert(path("bin"), &b"f\0f"[..]);
    tree.insert(RepoPath::new(b"odd\xff\n.rs").expect("a path"), &b"x"[..]);
    let found = check(&tree, &Options::default())
        .expect("readable")
        .problems;
    let texts: Vec<_> = found.iter().map(|p| (p.line, p.problem.as_str())).collect();
    let why = "cannot be searched: not a text file of a size written by hand";
    assert_eq!(
        texts,
        [
            (1, &*format!("`link.md` {why}")),
            (3, &*format!("`bin` {why}"))
        ]
    );
}

#[test]
fn a_setup_folder_under_another_name_is_checked_on_request() {
    let tree = tree(&[("review/shared.md", "`src/gone.ts`")]);
    let count = |options: &Options| check(&tree, options).expect("readable").problems.len();
    assert_eq!(count(&Options::default()), 0);
    assert_eq!(
        count(&Options {
            setup_folder: Some(path("review"))
        }),
        1
    );
}

#[test]
fn run_gives_text_json_and_the_exit_code() {
    let broken = tree(&[(".expo-code-review/shared.md", "<!-- @ref gone.ts -->")]);
    let text = run(&broken, &Options::default(), Format::Text).expect("readable");
    assert_eq!(text.exit_code, 1);
    assert!(text.text.starts_with(
        ".expo-code-review/shared.md:1: broken-ref: no such path `gone.ts`\n1 problem ("
    ));
    let json = run(&broken, &Options::default(), Format::Json).expect("readable");
    let value: serde_json::Value = serde_json::from_str(&json.text).expect("JSON");
    assert_eq!(value["problems"][0]["file"], ".expo-code-review/shared.md");
    let fine = run(&tree(&[("a", "b")]), &Options::default(), Format::Json).expect("readable");
    assert_eq!(fine.exit_code, 0);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(\\PC|[ `<>!#@*{}\\[\\]():/.,\n\"-]|@ref |@ref-ignore |LLP 000[0-3]|<!--|-->|```|src/a.rs|glob:|config|scopes|paths){0,60}",
    ) {
        let one = document("0001", &text);
        let files = [
            ("llp/0001-a.spec.md", one.as_str()),
            ("llp/0002-b.spec.md", &text),
            (".expo-code-review/shared.md", &text),
            (".expo-code-review/config.jsonc", &text),
            (".expo-code-review/routing.jsonc", &text),
            ("src/a.rs", &text),
            ("README.md", &text),
        ];
        let outcome = run(&tree(&files), &Options::default(), Format::Text).expect("readable");
        let lines = outcome.text.lines().count();
        proptest::prop_assert_eq!(lines, outcome.report.problems.len() + 1);
    }
}

#[test]
fn our_own_citations_resolve() {
    let outcome = run(
        &DirTree::of_this_repository(),
        &Options::default(),
        Format::Text,
    )
    .expect("readable");
    assert!(outcome.report.is_ok(), "{}", outcome.text);
    assert!(
        outcome.report.documents >= 9 && outcome.report.code_refs >= 7,
        "{}",
        outcome.text
    );
}
