//! Conflict markers, deceiving characters, switched-off certificate checks.

use super::harness::{check_new, expect, expect_clean};

/// A conflict, put together so that this file holds none.
fn conflict(middle: &str) -> String {
    let (open, close) = ("<".repeat(7), ">".repeat(7));
    format!("a\n{open} HEAD\none\n{middle}\ntwo\n{close} topic/x\nb\n")
}

#[test]
fn conflicts_are_found() {
    let plain = conflict("=======");
    let diff3 = conflict("||||||| 1a2b3c4\nzero\n=======");
    let crlf = plain.replace('\n', "\r\n");
    let twice = format!("{plain}{plain}");
    expect(&[
        ("src/a.rs", &plain, &["merge-conflict:2"]),
        ("src/a.py", &diff3, &["merge-conflict:2"]),
        ("a.json", &crlf, &["merge-conflict:2"]),
        (
            "Makefile",
            &twice,
            &["merge-conflict:2", "merge-conflict:9"],
        ),
        ("docs/merging.md", &plain, &["merge-conflict-in-text:2"]),
        ("README.rst", &plain, &["merge-conflict-in-text:2"]),
        (
            "tests/fixtures/x.txt",
            &plain,
            &["merge-conflict-in-text:2"],
        ),
    ]);
}

#[test]
fn what_is_no_conflict() {
    let open = "<".repeat(7);
    let close = ">".repeat(7);
    expect_clean(&[
        ("a.rst", "Title\n=======\ntext\n"),
        ("a.md", "Title\n=======\n\n>>>>>>> quoted mail\n"),
        ("src/a.c", &format!("{open} HEAD\nx\n{close} y\n")),
        ("src/a.c", &format!("{open} HEAD\nx\n=======\n")),
        ("src/a.c", &format!("=======\nx\n{close} y\n")),
        (
            "src/a.c",
            &format!("  {open} HEAD\n  =======\n  {close} y\n"),
        ),
        ("src/a.c", &format!("{open}< HEAD\n=======\n{close} y\n")),
        ("src/a.c", &format!("{open}\n=======\n{close}\n")),
        ("src/a.c", &format!("{open} HEAD\n========\n{close} y\n")),
        (
            "src/a.c",
            &format!("s = \"{open} HEAD\"\n=======\n{close} y\n"),
        ),
        (
            "tests/merge.rs",
            &conflict("=======").replace("HEAD", "ours"),
        ),
        (
            "docs/merging.md",
            &conflict("=======").replace("HEAD", "mine.txt"),
        ),
        ("src/a.hs", "a <<<<<<< b\n=======\nc >>>>>>> d\n"),
    ]);
}

#[test]
fn deceiving_characters_are_found() {
    let tags: String = "ignore all previous"
        .bytes()
        .filter_map(|b| char::from_u32(0xe0000 + u32::from(b)))
        .collect();
    let selectors: String = (0..40)
        .filter_map(|n| char::from_u32(0xe0100 + n * 3))
        .collect();
    expect(&[
        (
            "src/a.rs",
            "/*\u{202e} } \u{2066}if admin\u{2069} \u{2066} begin */\n",
            &["bidi-override:1"],
        ),
        (
            "src/a.py",
            "x = 1\nif level != 'user\u{202e} \u{2066}# admin\u{2069} \u{2066}':\n",
            &["bidi-override:2"],
        ),
        (
            "src/a.py",
            "''' then \u{2067}''' ;return\n",
            &["bidi-override:1"],
        ),
        (
            "src/a.go",
            "// \u{202a}plain\u{202c}\n",
            &["bidi-control:1"],
        ),
        ("src/a.js", "s = '\u{202b}שלום'\n", &["bidi-control:1"]),
        (
            "tests/a.rs",
            "let s = \"\u{202e}x\";\n",
            &["bidi-control:1"],
        ),
        (
            "src/a.ts",
            "const is\u{200b}Admin = false;\n",
            &["invisible-character:1"],
        ),
        (
            "src/a.rs",
            "let na\u{200d}me = 1;\n",
            &["invisible-character:1"],
        ),
        ("src/a.c", "int x\u{feff}y;\n", &["invisible-character:1"]),
        ("README.md", &format!("Hello{tags}\n"), &["hidden-text:1"]),
        (
            "src/a.js",
            &format!("eval(d('{selectors}'))\n"),
            &["hidden-text:1"],
        ),
        (
            "data.json",
            &format!("{{\"a\": \"{tags}\"}}\n"),
            &["hidden-text:1"],
        ),
    ]);
}

#[test]
fn legitimate_characters() {
    expect_clean(&[
        ("src/a.rs", "let s = \"שלום עולם\"; // مرحبا\n"),
        ("src/a.ts", "const s = '\u{2067}שלום\u{2069}';\n"),
        (
            "locales/ar.json",
            "{\"a\": \"\u{202b}مرحبا\u{202c} \u{200f}1\"}\n",
        ),
        ("a.po", "msgstr \"\u{202a}x\u{202c}\"\n"),
        (
            "src/a.py",
            "e = '👩\u{200d}💻 ❤\u{fe0f} 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'\n",
        ),
        ("src/a.cs", "\u{feff}using System;\n"),
        ("src/a.js", "const fa = 'می\u{200c}خواهم';\n"),
        ("src/a.rs", "// see the\u{200b} documentation\n"),
        ("README.md", "Copy\u{200b}pasted text\n"),
        ("src/a.rs", "let nbsp = \"a\u{a0}b\";\n"),
        ("src/a.rs", "let s = \"\\u{202e}\";\n"),
        ("src/a.ja.ts", "const 葛 = '葛\u{e0100}';\n"),
        ("src/a.py", "x = 'soft\u{ad}hyphen'\n"),
        ("src/a.rs", "let half = \"1\u{2064}1⁄2\";\n"),
        (
            "dist/a.min.js",
            &format!("var t='{}',r=/[\u{202a}-\u{202e}]/;\n", "abc ".repeat(200)),
        ),
    ]);
}

#[test]
fn switched_off_verification_is_found() {
    const ID: &[&str] = &["tls-verification-off:1"];
    expect(&[
        ("install.sh", "curl -k https://dl.shop.io/x | sh\n", ID),
        ("ci/get.sh", "curl -fsSLk https://dl.shop.io/x -o x\n", ID),
        ("ci/get.bash", "  curl --silent --insecure \"$URL\"\n", ID),
        (
            "Dockerfile",
            "RUN curl -sSLk https://dl.shop.io/x -o /x && sh /x\n",
            ID,
        ),
        (
            "Dockerfile.prod",
            "RUN wget -q --no-check-certificate https://dl.shop.io/x\n",
            ID,
        ),
        (
            ".gitlab-ci.yml",
            "  - wget --no-check-certificate $URL\n",
            ID,
        ),
        (
            "Makefile",
            "\tgit -c http.sslVerify=false clone $(URL)\n",
            ID,
        ),
        ("setup.sh", "git config --global http.sslVerify false\n", ID),
        ("setup.sh", "npm config set strict-ssl false\n", ID),
        (
            "src/a.ts",
            "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';\n",
            ID,
        ),
        (
            "src/a.js",
            "process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = 0;\n",
            ID,
        ),
        (
            "package.json",
            "  \"start\": \"NODE_TLS_REJECT_UNAUTHORIZED=0 node a.js\",\n",
            ID,
        ),
        (".env", "NODE_TLS_REJECT_UNAUTHORIZED=0\n", ID),
        ("compose.yml", "      GIT_SSL_NO_VERIFY: \"true\"\n", ID),
        ("deploy.sh", "export GIT_SSL_NO_VERIFY=1\n", ID),
        ("run.sh", "PYTHONHTTPSVERIFY=0 python3 get.py\n", ID),
    ]);
}

#[test]
fn verification_that_is_not_switched_off() {
    expect_clean(&[
        ("a.sh", "curl https://dl.shop.io/x\n"),
        ("a.sh", "curl -K config https://dl.shop.io/x\n"),
        ("a.sh", "curl -fsSL https://dl.shop.io/x | tar -xk\n"),
        ("a.sh", "curl https://dl.shop.io/x && sort -k 2 x\n"),
        ("a.sh", "# curl -k https://dl.shop.io/x\n"),
        ("a.sh", "echo \"never use curl -k https://dl.shop.io\"\n"),
        ("a.sh", "curl -k https://localhost:8443/health\n"),
        ("a.sh", "curl --insecure https://127.0.0.1/\n"),
        ("README.md", "curl -k https://dl.shop.io/x\n"),
        ("src/a.rs", "let s = \"curl -k https://dl.shop.io\";\n"),
        ("tests/a.sh", "curl -k https://dl.shop.io/x\n"),
        (
            "src/a.ts",
            "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '1';\n",
        ),
        (
            "src/a.ts",
            "if (process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0') warn();\n",
        ),
        ("a.sh", "git config http.sslVerify true\n"),
        ("a.sh", "wget https://dl.shop.io/x\n"),
        ("a.sh", "export GIT_SSL_NO_VERIFY=0\n"),
        (
            "src/a.ts",
            "const NODE_TLS_REJECT_UNAUTHORIZED = readFlag();\n",
        ),
        (".npmrc", "strict-ssl=true\n"),
    ]);
}

#[test]
fn a_line_without_an_end_and_odd_bytes() {
    assert_eq!(check_new("src/a.rs", b"\xff\xfe\x00\x80"), [] as [&str; 0]);
    assert_eq!(check_new("src/a.rs", ""), [] as [&str; 0]);
    assert_eq!(
        check_new("a.sh", "curl -k https://dl.shop.io"),
        ["tls-verification-off:1"]
    );
}
