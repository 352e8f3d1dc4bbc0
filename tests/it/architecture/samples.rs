//! Each guard catches what it is for, and nothing else.

use super::{BTreeMap, BTreeSet, MAX_LINES, problems_of, reached, strangers};

#[track_caller]
fn caught(file: &str, text: &str, expected: &[&str]) {
    let problems = problems_of(file, text, false);
    let matches = problems.len() == expected.len()
        && problems
            .iter()
            .zip(expected)
            .all(|(problem, part)| problem.contains(part));
    assert!(matches, "{file}: expected {expected:?}, got {problems:#?}");
}

#[test]
fn finds_forbidden_edges_however_they_are_written() {
    for text in [
        "use crate::app::x;",
        "use crate::{model::Finding, app};",
        "use crate::{model::{Finding, Severity}, app::{self, y}};",
        "pub(crate) use crate::app as other;",
        "fn f() { crate::app::run(); }",
        "fn f() { g(vec![crate::app::X]); }",
        "macro_rules! m { () => { $crate::app::x() } }",
        "use super::super::app;",
        "mod inner { use super::super::super::app; }",
        "use super::{super::app, sibling};",
        "fn f() -> <crate::app::T as Tr>::Out { x }",
    ] {
        caught(
            "src/diff/parse.rs",
            text,
            &["src/diff/parse.rs:1: `diff` (layer 1) may not use `app`"],
        );
    }
    caught(
        "src/diff/parse.rs",
        "\n\nuse crate::nowhere::x;",
        &[":3: `crate::nowhere` is no module"],
    );
    caught(
        "src/diff/parse.rs",
        "use crate as root;",
        &["`crate::crate`"],
    );
    caught("src/diff/parse.rs", "use crate::*;", &["`crate::*`"]);
    caught("src/diff/parse.rs", "use ecr::app;", &["`crate::ecr`"]);
    caught(
        "src/stray.rs",
        "use crate::model::x;",
        &["module `stray` is not in the layer table"],
    );
    caught(
        "src/main.rs",
        "fn main() { ecr::pipeline::run() }",
        &["main may only use cli and app"],
    );
    caught("src/git/mod.rs", "mod a;", &[]);
    caught(
        "src/git/a.rs",
        "use crate::pipeline::x;",
        &["`git` (layer 3) may not use `pipeline` (layer 2)"],
    );
}

#[test]
fn does_not_mistake_text_for_code() {
    for text in [
        "// use crate::app;\n/* crate::app::x */\n/// [crate::app]\nfn f() {}",
        r##"const A: &str = "crate::app::x"; const B: &str = r#"println!("{}", crate::app)"#;"##,
        "use crate::model::{Finding, app};",
        "use super::app;",
        "fn f() { other::crate_like::app::x() }",
        "fn f<'a>(x: &'a str) -> char { '\"' } // todo!()",
    ] {
        caught("src/diff/parse.rs", text, &[]);
    }
}

#[test]
fn lower_layers_stay_pure() {
    for text in [
        "use std::fs;",
        "use std::{fmt, fs::File};",
        "fn f() { ::std::fs::read(p); }",
        "use std::process::Command;",
        "use std::net::TcpStream;",
        "use tokio::time::Instant;",
        "fn f() { std::env::var(\"X\"); }",
    ] {
        caught("src/diff/parse.rs", text, &["which does no I/O"]);
        caught("src/git/a.rs", text, &[]);
    }
    caught("src/config/a.rs", "use std::net::{IpAddr, Ipv4Addr};", &[]);
    caught(
        "src/port/engine.rs",
        "use tokio::{sync::Notify, time::Instant};",
        &[],
    );
    caught(
        "src/port/engine.rs",
        "use tokio::time::sleep;",
        &["tokio::time::sleep"],
    );
    caught(
        "src/port/engine.rs",
        "use tokio::process::Command;",
        &["tokio::process::Command"],
    );
    caught(
        "src/tree/a.rs",
        "#[cfg(test)]\nmod tests { use std::fs; }\nuse std::fmt;",
        &[],
    );
    caught(
        "src/tree/a.rs",
        "#[cfg(test)]\nmod tests {}\nuse std::fs;",
        &["src/tree/a.rs:3: `std::fs`"],
    );
    assert!(problems_of("src/tree/tests.rs", "use std::fs;", true).is_empty());
}

#[test]
fn tests_may_borrow_sideways_but_not_upwards() {
    let test = |used: &str| format!("#[cfg(test)] mod tests {{ use crate::{used}::x; }}");
    caught("src/detect/a.rs", &test("tree"), &[]);
    caught(
        "src/detect/a.rs",
        &test("pipeline"),
        &["may not use `pipeline`"],
    );
}

#[test]
fn printing_exiting_unsafe_and_stubs_are_found() {
    caught(
        "src/git/a.rs",
        "fn f() { println!(\"x\"); }",
        &["`println!`"],
    );
    caught(
        "src/git/a.rs",
        "fn f() { std::process::exit(1) }",
        &["`std::process::exit`"],
    );
    caught(
        "src/git/a.rs",
        "use std::io::stdout;",
        &["`std::io::stdout`"],
    );
    caught(
        "src/git/a.rs",
        "#[cfg(test)] mod t { fn f() { println!(\"x\"); } }",
        &[],
    );
    caught("src/cli/a.rs", "fn f() { eprintln!(\"x\"); }", &[]);
    caught("src/reporter/terminal.rs", "fn f() { print!(\"x\"); }", &[]);
    caught(
        "src/reporter/files.rs",
        "fn f() { print!(\"x\"); }",
        &["`print!`"],
    );
    caught("src/git/a.rs", "fn f() { todo!() }", &["`todo!`"]);
    caught(
        "src/git/a.rs",
        "fn f() { unsafe { g() } }",
        &["`unsafe` outside"],
    );
    caught("src/process/a.rs", "fn f() { unsafe { g() } }", &[]);
}

#[test]
fn shapes_and_sizes_are_found() {
    caught(
        "src/diff/mod.rs",
        "//! Docs.\nmod a;\npub use a::X;\n#[cfg(test)]\nmod tests;",
        &[],
    );
    caught(
        "src/diff/mod.rs",
        "fn f() {}",
        &["Other in a file that only declares"],
    );
    caught(
        "src/diff/mod.rs",
        "mod a { }",
        &["Other in a file that only declares"],
    );
    caught("src/diff/mod.rs", "type A = u8;", &["Alias in a file"]);
    caught("src/port/mod.rs", "pub type A = u8;", &[]);
    caught(
        "src/tree/mod.rs",
        "pub trait T {}\npub fn f() {}",
        &["src/tree/mod.rs:2: Other"],
    );
    let seven = "fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: HashMap<u8, u8>) {}\ntrait T { fn g(&self, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8); }";
    caught("src/diff/a.rs", seven, &["src/diff/a.rs:2: 7 parameters"]);
    caught("src/diff/a.rs", &"\n".repeat(MAX_LINES), &[]);
    caught("src/diff/a.rs", &"\n".repeat(MAX_LINES + 1), &["901 lines"]);
    caught("src/diff/a.rs", "fn f( {", &["cannot be read"]);
}

#[test]
fn undeclared_files_and_strangers_are_found() {
    let files = BTreeMap::from(
        [
            ("src/lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
            (
                "src/a.rs",
                "mod deep;\n#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;",
            ),
            ("src/a_tests.rs", ""),
            ("src/a/deep.rs", ""),
            ("src/b/mod.rs", ""),
            ("src/b/stray.rs", ""),
            ("src/c.rs", ""),
        ]
        .map(|(file, text)| (file.to_owned(), text.to_owned())),
    );
    let reached = reached(&files, "src/lib.rs");
    let names: Vec<_> = reached
        .iter()
        .map(|(file, test)| (file.as_str(), *test))
        .collect();
    let expected = [
        ("src/a.rs", false),
        ("src/a/deep.rs", false),
        ("src/a_tests.rs", true),
        ("src/b/mod.rs", false),
        ("src/c.rs", true),
    ];
    assert_eq!(names[..5], expected);
    assert_eq!(names[5..], [("src/lib.rs", false)]);

    let entries = BTreeSet::from(["src".to_owned(), "notes.txt".to_owned()]);
    assert_eq!(strangers(&entries), ["notes.txt"]);
}
