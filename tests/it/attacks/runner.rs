//! What a GitHub runner reads in a job's output.

use crate::support::repo::TestRepo;

#[test]
fn no_path_and_no_line_of_code_is_a_workflow_command() {
    let repo = TestRepo::init();
    repo.write("base", "1\n");
    repo.commit_all("base");
    let bad = "##[add-mask]x\n::stop-commands::x\ncurl -k https://dl.shop.io/x\n";
    for name in ["::set-output name=x::y.sh", "##[add-mask]x.sh"] {
        repo.write(name, bad);
    }
    for format in [
        "terminal", "json", "markdown", "sarif", "rdjson", "gitlab", "agent",
    ] {
        let output = repo.ecr(&["review", "-v", "--format", format]);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(text.contains("set-output"), "{format}: {text}");
        let command = text
            .lines()
            .find(|line| line.trim_start().starts_with("::") || line.contains("##["));
        assert_eq!(command, None, "{format}");
    }
}
