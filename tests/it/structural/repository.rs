//! Rules that a repository brings along.

use ecr::engine::builtin::Hit;
use ecr::engine::builtin::structural::{RepositoryRules, RuleFileError, Unparsed};
use ecr::model::{Category, Severity};

use super::with_file;

const NO_CONSOLE: &str = "\
id: no-console
language: TypeScript
severity: error
message: Log through the logger
note: Nobody sees what the console says in production.
rule:
  pattern: console.log($$$ARGS)
";

fn compile(yaml: &str) -> Result<RepositoryRules, Vec<RuleFileError>> {
    RepositoryRules::compile(&[("rules/a.yml", yaml.as_bytes())], &[])
}

fn only_error(yaml: &str) -> RuleFileError {
    let mut errors = compile(yaml).err().unwrap_or_default();
    assert_eq!(errors.len(), 1, "{yaml}\n{errors:?}");
    let error = errors.remove(0);
    assert!(!error.next_step.is_empty());
    assert_eq!(error.file, "rules/a.yml");
    error
}

fn hits(
    rules: &RepositoryRules,
    path: &str,
    source: &[u8],
    added: Option<&[u32]>,
) -> (Vec<Hit>, Result<(), Unparsed>) {
    with_file(path, source, added, |file| {
        let mut hits = Vec::new();
        let outcome = rules.check(file, &mut |hit| hits.push(hit));
        (hits, outcome)
    })
}

#[test]
fn a_rule_finds_syntax_on_added_lines_only() {
    let rules = compile(NO_CONSOLE).unwrap();
    let [rule] = rules.rules() else {
        panic!("{rules:?}")
    };
    assert_eq!(
        (rule.severity, rule.category),
        (Severity::Warning, Category::Quality)
    );
    assert_eq!(rule.title, "Log through the logger");
    assert_eq!(
        rule.consequence,
        "Nobody sees what the console says in production."
    );
    let source = b"// console.log(1)\nconsole.log('a', b);\nconst s = \"console.log(1)\";\n  console.log();\n";
    let (found, outcome) = hits(&rules, "src/a.ts", source, None);
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        found
            .iter()
            .map(|hit| (hit.rule.as_str(), hit.line))
            .collect::<Vec<_>>(),
        [("no-console", 2), ("no-console", 4)]
    );
    assert_eq!(found[1].evidence.as_deref(), Some(&b"  console.log();"[..]));
    assert_eq!(found[1].columns, Some(2..15));
    let (found, _) = hits(&rules, "src/a.ts", source, Some(&[3, 4]));
    assert_eq!(found.len(), 1);
    assert!(
        hits(&rules, "src/a.py", source, None).0.is_empty(),
        "another language"
    );
}

#[test]
fn documents_severities_categories_and_globs() {
    let yaml = "\
id: no-sleep
language: python
severity: hint
rule: { pattern: 'time.sleep($A)' }
files: ['app/**']
---
id: no-exec
language: Py
severity: warning
metadata: { severity: critical, category: security }
message: No exec
rule:
  kind: call
  has: { field: function, regex: ^exec$ }
---
id: silent
language: Go
severity: 'off'
rule: { pattern: 'panic($A)' }
";
    let rules = compile(yaml).unwrap();
    let facts: Vec<_> = rules
        .rules()
        .iter()
        .map(|rule| (rule.id.as_str(), rule.severity, rule.category))
        .collect();
    assert_eq!(
        facts,
        [
            ("no-sleep", Severity::Suggestion, Category::Quality),
            ("no-exec", Severity::Critical, Category::Security)
        ]
    );
    let source = b"time.sleep(1)\nexec(x)\n";
    let names = |path: &str| -> Vec<String> {
        hits(&rules, path, source, None)
            .0
            .into_iter()
            .map(|hit| hit.rule)
            .collect()
    };
    assert_eq!(names("app/a.py"), ["no-sleep", "no-exec"]);
    assert_eq!(names("tools/a.py"), ["no-exec"]);
}

#[test]
fn yaml_is_a_language_too() {
    let rules = compile(
        "id: no-latest\nlanguage: yaml\nrule:\n  kind: plain_scalar\n  regex: ':latest$'\n",
    )
    .unwrap();
    let (found, _) = hits(
        &rules,
        "deploy.yaml",
        b"# image: a:latest\nimage: a:latest\n",
        None,
    );
    assert_eq!(found.iter().map(|hit| hit.line).collect::<Vec<_>>(), [2]);
}

#[test]
fn broken_files_name_the_place_and_the_next_step() {
    let error = only_error("id: a\nlanguage: Go\nrule: { pattern: [\n");
    assert!(error.position.is_some(), "{error:?}");

    let error = only_error("id: a\nlanguage: Ruby\nrule: { pattern: a }\n");
    assert!(
        error.problem.contains("\"Ruby\" is not linked in"),
        "{error:?}"
    );
    assert!(error.problem.contains("TypeScript"), "{error:?}");

    let error = only_error("id: a\nlanguage: Klingon\nrule: { pattern: a }\n");
    assert!(error.problem.contains("Klingon"), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nrule: { pattern: a }\nseverty: error\n");
    assert!(error.problem.contains("severty"), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nrule: { patern: a }\n");
    assert!(error.problem.contains("patern"), "{error:?}");

    let error = only_error("\n\nid: a\nlanguage: Go\nrule: { kind: no_such_kind }\n");
    assert_eq!(error.position, Some((3, 1)), "{error:?}");
    assert!(error.problem.contains("\"a\""), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nrule: { regex: '(' , kind: identifier }\n");
    assert!(error.problem.contains("rule"), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nrule: { regex: a }\n");
    assert!(error.problem.contains("kind"), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nseverity: fatal\nrule: { pattern: a }\n");
    assert!(error.problem.contains("fatal"), "{error:?}");

    let error =
        only_error("id: a\nlanguage: Go\nmetadata: { category: style }\nrule: { pattern: a }\n");
    assert!(error.problem.contains("style"), "{error:?}");

    let error = only_error("id: a\nlanguage: Go\nfiles: ['[']\nrule: { pattern: a }\n");
    assert!(error.next_step.contains("glob"), "{error:?}");

    let errors = RepositoryRules::compile(&[("rules/a.yml", b"id: \xff")], &[]).unwrap_err();
    assert!(errors[0].next_step.contains("UTF-8"), "{errors:?}");
}

#[test]
fn ids_are_kebab_case_and_unique_over_all_rules() {
    for id in ["", "No-Console", "no_console", "-a", "a b"] {
        let error = only_error(&NO_CONSOLE.replace("id: no-console", &format!("id: '{id}'")));
        assert!(error.problem.contains("is not usable"), "{error:?}");
    }
    let error = only_error(&NO_CONSOLE.replace("no-console", "sql-from-data"));
    assert!(error.problem.contains("taken"), "{error:?}");
    let error = only_error(&format!("{NO_CONSOLE}---\n{NO_CONSOLE}"));
    assert!(error.problem.contains("taken"), "{error:?}");
    let files = [("rules/a.yml", NO_CONSOLE.as_bytes())];
    assert!(RepositoryRules::compile(&files, &["no-console"]).is_err());
    assert!(RepositoryRules::compile(&files, &["another"]).is_ok());
}

#[test]
fn limits() {
    let error = only_error(&format!("{NO_CONSOLE}# {}\n", "x".repeat(70_000)));
    assert!(error.problem.contains("64 KiB"), "{error:?}");

    let error = only_error(&format!(
        "id: a\nlanguage: JavaScript\nrule:\n  pattern: '{}a'\n",
        "!".repeat(5_000)
    ));
    assert!(error.problem.contains("nested"), "{error:?}");

    let deep = format!(
        "id: a\nlanguage: Go\nrule: {}{{ pattern: a }}{}\n",
        "{ not: ".repeat(500),
        "}".repeat(500)
    );
    assert!(compile(&deep).is_err());

    let many: Vec<String> = (0..201)
        .map(|at| NO_CONSOLE.replace("no-console", &format!("r{at}")))
        .collect();
    let many = many.join("---\n");
    assert!(only_error(&many).problem.contains("201 rules"));

    let files: Vec<(String, String)> = (0..101)
        .map(|at| {
            (
                format!("rules/{at}.yml"),
                NO_CONSOLE.replace("no-console", &format!("r{at}")),
            )
        })
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, yaml)| (name.as_str(), yaml.as_bytes()))
        .collect();
    let errors = RepositoryRules::compile(&files, &[]).unwrap_err();
    assert_eq!(errors[0].file, "rules/100.yml");
}

#[test]
fn hostile_sources_end() {
    let rules = compile(&format!(
        "{NO_CONSOLE}---\nid: nested\nlanguage: TypeScript\nrule:\n  kind: identifier\n  inside: {{ kind: class_declaration, stopBy: end }}\n  follows: {{ kind: number, stopBy: end }}\n"
    ))
    .unwrap();
    for source in [
        "(".repeat(100_000),
        "f(".repeat(100_000),
        "a,".repeat(100_000),
        "a;\n".repeat(30_000),
        "\"".repeat(1_000),
    ] {
        let (found, _) = hits(&rules, "a.ts", source.as_bytes(), None);
        assert!(found.is_empty());
    }
    let deep = format!("{}a{};\n", "(".repeat(600), ")".repeat(600));
    assert_eq!(
        hits(&rules, "a.ts", deep.as_bytes(), None).1,
        Err(Unparsed::TooContorted)
    );
}

#[test]
fn invalid_utf8_keeps_lines_and_evidence() {
    let rules = compile(NO_CONSOLE).unwrap();
    let (found, _) = hits(
        &rules,
        "a.ts",
        b"let s = '\xff\xff';\n/* \xff */ console.log(1);\n",
        None,
    );
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].columns.clone()), (2, None));
    assert_eq!(
        found[0].evidence.as_deref(),
        Some(&b"/* \xff */ console.log(1);"[..])
    );
}
