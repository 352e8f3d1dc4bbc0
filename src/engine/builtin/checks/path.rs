//! What a path says about a file.

use crate::engine::builtin::CheckedFile;
use crate::model::RepoPath;

/// Words that, as a part of a folder or file name, mark tests, examples and documentation.
const FIXTURE_WORDS: &[&str] = &[
    "test",
    "tests",
    "testing",
    "testdata",
    "testsuite",
    "testsuites",
    "testutil",
    "testutils",
    "unittest",
    "unittests",
    "spec",
    "specs",
    "mock",
    "mocks",
    "fixture",
    "fixtures",
    "example",
    "examples",
    "sample",
    "samples",
    "demo",
    "demos",
    "doc",
    "docs",
    "e2e",
    "snapshot",
    "snapshots",
    "stub",
    "stubs",
    "dummy",
    "fake",
    "tutorial",
    "tutorials",
    "bench",
    "benches",
    "fuzz",
    "corpus",
];
const DOC_EXTENSIONS: &[&str] = &[
    "md", "mdx", "markdown", "rst", "adoc", "asciidoc", "txt", "tex", "html", "htm", "ipynb",
    "org", "pod", "po", "pot",
];
const CODE_EXTENSIONS: &[&str] = &[
    "rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "java", "kt",
    "kts", "scala", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "cs", "fs", "rb", "php", "swift",
    "m", "mm", "sh", "bash", "zsh", "fish", "ps1", "pl", "pm", "lua", "r", "jl", "ex", "exs",
    "erl", "hs", "ml", "clj", "dart", "groovy", "gradle", "sql", "vue", "svelte", "zig", "nim",
    "sol", "tf", "cmake", "mk",
];

fn extension(path: &RepoPath) -> String {
    path.extension()
        .map(|e| String::from_utf8_lossy(e).to_ascii_lowercase())
        .unwrap_or_default()
}

/// True in tests, fixtures, examples and documentation, where a credential is mostly made up.
pub(super) fn is_fixture(path: &RepoPath) -> bool {
    let text = path.to_lossy().to_ascii_lowercase();
    is_doc(path)
        || text
            .split(['/', '.', '-', '_'])
            .any(|word| FIXTURE_WORDS.contains(&word))
}

/// True when line `number` is an example although its file is not: in a unit test beside the code, in a documentation comment, or
/// named so (`TEST_KEY = …`).
pub(super) fn is_example_line(file: &CheckedFile<'_>, number: u32, line: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "test", "tests", "sample", "example", "dummy", "mock", "fake", "fixture",
    ];
    let line = &line[..line.len().min(300)];
    let trimmed = line.trim_ascii_start();
    let documentation = [&b"///"[..], b"//!", b"* "]
        .iter()
        .any(|mark| trimmed.starts_with(mark));
    let text = String::from_utf8_lossy(line).to_ascii_lowercase();
    let named = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| WORDS.contains(&word));
    documentation || named || is_rust_test(file, number)
}

/// True in or behind the first unit test of a Rust file, where tests stand by custom.
fn is_rust_test(file: &CheckedFile<'_>, number: u32) -> bool {
    let Some(content) = Some(file)
        .filter(|file| extension(file.path) == "rs")
        .and_then(|file| file.content.get())
    else {
        return false;
    };
    let first = [&b"#[cfg(test)]"[..], b"#[test]"]
        .iter()
        .filter_map(|mark| memchr::memmem::find(content, mark))
        .min();
    first.is_some_and(|at| memchr::memchr_iter(b'\n', &content[..at]).count() < number as usize)
}

/// True for prose.
pub(super) fn is_doc(path: &RepoPath) -> bool {
    DOC_EXTENSIONS.contains(&extension(path).as_str())
}

/// True for a programming language's source.
pub(super) fn is_code(path: &RepoPath) -> bool {
    CODE_EXTENSIONS.contains(&extension(path).as_str())
}

/// True for a script, a container file, a build file or a CI configuration: where commands are written bare.
pub(super) fn holds_commands(path: &RepoPath) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    matches!(
        extension(path).as_str(),
        "sh" | "bash" | "zsh" | "yml" | "yaml" | "mk" | "dockerfile" | "containerfile"
    ) || [
        "dockerfile",
        "containerfile",
        "makefile",
        "justfile",
        "jenkinsfile",
        "procfile",
        "vagrantfile",
    ]
    .iter()
    .any(|known| name == *known || name.starts_with(&format!("{known}.")))
        || path.parent().ends_with(b".husky")
}

/// True for a file that GitHub runs as a workflow.
pub(super) fn is_workflow(path: &RepoPath) -> bool {
    path.parent() == b".github/workflows" && matches!(extension(path).as_str(), "yml" | "yaml")
}

/// True for an action's own description.
pub(super) fn is_action(path: &RepoPath) -> bool {
    matches!(path.file_name(), b"action.yml" | b"action.yaml")
}

/// True when a text rule needs the whole file rather than its added lines.
pub(in crate::engine::builtin) fn wants_content(path: &RepoPath) -> bool {
    is_workflow(path) || is_action(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).unwrap()
    }

    #[test]
    fn tells_fixtures_from_sources() {
        for text in [
            "tests/a.rs",
            "src/foo.test.ts",
            "pkg/x_test.go",
            "a/__mocks__/b.js",
            "README.md",
            "examples/key.pem",
            "test-certs/k.pem",
        ] {
            assert!(is_fixture(&path(text)), "{text}");
        }
        for text in [
            "src/main.rs",
            "config/prod.env",
            "contest/a.py",
            "latest.json",
            "src/attestation.rs",
            "deploy/key.pem",
        ] {
            assert!(!is_fixture(&path(text)), "{text}");
        }
    }

    #[test]
    fn tells_where_commands_are() {
        for text in [
            "Dockerfile",
            "a/Dockerfile.prod",
            "ci/x.sh",
            ".github/workflows/a.yml",
            "Makefile",
            ".husky/pre-commit",
        ] {
            assert!(holds_commands(&path(text)), "{text}");
        }
        assert!(
            !holds_commands(&path("src/Dockerfile_parser.rs")) && !holds_commands(&path("a.py"))
        );
        assert!(
            is_workflow(&path(".github/workflows/a.yaml"))
                && !is_workflow(&path("x/.github/workflows/a.yaml"))
        );
    }
}
