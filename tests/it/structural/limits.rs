//! Where hits point to, what is left out, and hostile inputs.

use ecr::engine::builtin::structural::{RULES, Unparsed, check};

use super::{check_new, with_file};

#[test]
fn a_hit_points_at_its_line_and_columns() {
    let source = b"import requests\n\nr = requests.get(url, verify=False)\n";
    let (hits, _) = check_new("a.py", source);
    let [hit] = hits.as_slice() else {
        panic!("{hits:?}")
    };
    assert_eq!((hit.line, hit.end_line), (3, 3));
    assert_eq!(
        hit.evidence.as_deref(),
        Some(&b"r = requests.get(url, verify=False)"[..])
    );
    let columns = hit.columns.clone().unwrap();
    assert_eq!(&hit.evidence.as_ref().unwrap()[columns], b"verify=False");
    assert!(hit.title.is_none());
}

#[test]
fn only_added_lines_are_reported() {
    let source = b"debugger;\nlet a = 1;\ndebugger;\n";
    let lines = |added: &[u32]| {
        with_file("a.js", source, Some(added), |file| {
            let mut lines = Vec::new();
            check(file, &mut |hit| lines.push(hit.line)).unwrap();
            lines
        })
    };
    assert_eq!(lines(&[3]), [3]);
    assert_eq!(lines(&[1, 2]), [1]);
    assert!(lines(&[2]).is_empty());
}

#[test]
fn a_hit_over_several_lines_anchors_on_the_first_added_one() {
    let source = b"db.query(`\n  SELECT * FROM t\n  WHERE a = '${a}'`);\n";
    with_file("a.js", source, Some(&[3]), |file| {
        let mut hits = Vec::new();
        check(file, &mut |hit| hits.push(hit)).unwrap();
        assert_eq!(hits.len(), 1);
        assert_eq!((hits[0].line, hits[0].end_line), (3, 3));
        assert_eq!(hits[0].columns, None);
        assert_eq!(
            hits[0].evidence.as_deref(),
            Some(&b"  WHERE a = '${a}'`);"[..])
        );
    });
}

#[test]
fn carriage_returns_and_invalid_utf8_stay_verbatim() {
    let (hits, _) = check_new("a.js", b"let s = '\xff';\r\ndebugger;\r\n");
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].line, 2);
    assert_eq!(hits[0].evidence.as_deref(), Some(&b"debugger;\r"[..]));
}

#[test]
fn without_the_tree_nothing_is_guessed() {
    with_file("a.js", b"debugger;\n", None, |file| {
        let patch_only = ecr::engine::builtin::CheckedFile {
            path: file.path,
            status: file.status,
            mode: file.mode,
            content: ecr::engine::builtin::Content::unknown(),
            added: file.added.clone(),
        };
        let mut count = 0;
        assert_eq!(check(&patch_only, &mut |_| count += 1), Ok(()));
        assert_eq!(count, 0);
    });
}

#[test]
fn other_languages_and_machine_made_lines_are_left_alone() {
    assert!(check_new("a.rb", b"debugger;\n").0.is_empty());
    assert!(check_new("a.yaml", b"debugger: 1\n").0.is_empty());
    let minified = format!("{}debugger;\n", "a();".repeat(1_000));
    assert!(check_new("a.min.js", minified.as_bytes()).0.is_empty());
    let broken = b"function ( { ] debugger; <<<\n";
    assert_eq!(check_new("a.js", broken).1, Ok(()));
}

#[test]
fn too_large_a_file_says_so() {
    let mut source = b"debugger;\n".to_vec();
    source.resize(1024 * 1024 + 1, b' ');
    assert_eq!(check_new("a.js", &source).1, Err(Unparsed::TooLarge));
    let mut quiet = b"let a = 1;\n".to_vec();
    quiet.resize(1024 * 1024 + 1, b' ');
    assert_eq!(
        check_new("a.js", &quiet).1,
        Ok(()),
        "nothing in it calls for a parse"
    );
}

#[test]
fn hits_of_one_rule_are_capped() {
    let (hits, _) = check_new("a.js", "debugger;\n".repeat(500).as_bytes());
    assert_eq!(hits.len(), 50);
}

/// A first line that calls for a parse, per language.
const TRIGGERS: [(&str, &str); 8] = [
    ("a.js", "debugger;\n"),
    ("a.ts", "debugger;\n"),
    ("a.tsx", "debugger;\n"),
    ("a.py", "breakpoint()\n"),
    ("a.go", "package a\nfunc f() { runtime.Breakpoint() }\n"),
    ("a.rs", "fn f() { dbg!(1); }\n"),
    ("A.java", "class A { boolean b = name == \"x\"; }\n"),
    ("a.sh", "curl -k https://example.com\n"),
];

/// Opens and closes that nest in some language; most of them are nonsense in the others, which is the harder case.
const NESTS: [(&str, &str); 35] = [
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("{{", "}}"),
    ("f(", ")"),
    ("a[", "]"),
    ("!", ""),
    ("-", ""),
    ("a+", "a"),
    ("\"a\"+", "a"),
    ("$(", ")"),
    ("`", "`"),
    ("${", "}"),
    ("`${", "}`"),
    ("if (a) ", "b"),
    ("a ? b : ", "c"),
    ("<a>", "</a>"),
    ("<", ">"),
    ("eval(", ")"),
    ("f\"{", "}\""),
    ("lambda: ", "a"),
    ("a=>", "a"),
    ("a.b(c).", "d"),
    ("\"", ""),
    ("/*", ""),
    ("#", ""),
    ("'''", ""),
    ("&", ""),
    ("*", ""),
    ("|a| ", "a"),
    ("async ", ""),
    ("@a\n", ""),
    ("else if a {", "}"),
    ("case a:\n", ""),
    ("a::<", ">"),
];

/// The outcome is the parser's business; that there is one, without a crash and without a hang, is ours.
fn survives(path: &str, source: &str) {
    let (hits, _) = check_new(path, source.as_bytes());
    assert!(hits.len() <= 200);
}

#[test]
fn deeply_nested_brackets_do_not_overflow() {
    for (path, trigger) in TRIGGERS {
        for (open, close) in &NESTS[..3] {
            let (open, close) = (open.repeat(100_000), close.repeat(100_000));
            survives(path, &format!("{trigger}{open}"));
            survives(path, &format!("{trigger}{open}x{close}\n"));
        }
    }
}

#[test]
fn nesting_of_every_kind_is_survived() {
    for (path, trigger) in TRIGGERS {
        for (open, close) in NESTS {
            let lines = format!("{open}\n").repeat(400);
            let (open, close) = (open.repeat(400), close.repeat(400));
            survives(path, &format!("{trigger}{open}"));
            survives(path, &format!("{trigger}{open}x{close}\n"));
            survives(path, &format!("{trigger}{lines}"));
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    // A small generator of its own, so that a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = [
        "eval(",
        "`${",
        "}`",
        "'",
        "\"",
        "+",
        "%",
        "%s",
        "(",
        ")",
        "{",
        "}",
        "\n",
        " ",
        "x",
        "SELECT a = ",
        "db.query(",
        "format!(",
        "fmt.Sprintf(",
        ".format(",
        "f\"",
        "\\",
        "\u{e9}",
        "exec(",
        "child_process",
        "os.system(",
        "raise NotImplemented",
        ",",
        "=",
        "def f(a=[]):",
    ];
    for (path, trigger) in TRIGGERS {
        for _ in 0..200 {
            let mut source = trigger.to_owned();
            for _ in 0..next() % 120 {
                source.push_str(words[(next() % words.len() as u64) as usize]);
            }
            let (hits, _) = check_new(path, source.as_bytes());
            for hit in hits {
                assert!(RULES.iter().any(|rule| rule.id == hit.rule));
                let evidence = hit.evidence.unwrap();
                assert!(
                    hit.columns
                        .is_none_or(|columns| columns.end <= evidence.len())
                );
                assert!(hit.line <= hit.end_line);
            }
        }
    }
}

/// Many places that each call for a look at the whole file or at everything around them.
#[test]
fn many_candidates_in_one_file_end_soon() {
    let repeated = |head: &str, unit: &str, tail: &str| {
        let times = 100_000 / unit.len();
        format!("{head}{}{tail}", format!("{unit}\n").repeat(times))
    };
    let cases = [
        ("a.js", repeated("child_process;\n", "exec(`a ${b}`);", "")),
        (
            "a.js",
            repeated("debugger;\n", "x.rejectUnauthorized = false;", ""),
        ),
        (
            "a.js",
            format!(
                "debugger;{}{}",
                "if (tls) {\n".repeat(400),
                "x.rejectUnauthorized = false;\n".repeat(5_000)
            ),
        ),
        ("a.js", format!("debugger;a{}", ".exec(b)\n".repeat(8_000))),
        (
            "a.js",
            format!(
                "x.query(`SELECT 1 FROM t WHERE a = '{}`);\n",
                "${a}".repeat(10_000)
            ),
        ),
        (
            "a.test.js",
            format!(
                "{}{}",
                "var a = 1;\n".repeat(10_000),
                "fit('x', a);\n".repeat(10_000)
            ),
        ),
        ("a.py", repeated("import yaml\n", "yaml.load(x)", "")),
        (
            "a.py",
            format!(
                "def f(a=[]):\n{}",
                "  def f(a=[]): a.append(1)\n".repeat(8_000)
            ),
        ),
        ("a.rs", repeated("", "fn f() { dbg!(1); }", "")),
        (
            "A.java",
            format!(
                "class A {{ Object o = x{}; boolean b = o == \"x\"; }}",
                ".exec(y)\n".repeat(8_000)
            ),
        ),
    ];
    for (path, source) in cases {
        let (hits, _) = check_new(path, source.as_bytes());
        assert!(hits.len() <= 100, "{path}: {}", hits.len());
    }
}
