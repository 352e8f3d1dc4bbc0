//! The bait of the hostile repository is live: without the jar, Codex takes it.

use std::process::Stdio;

use ecr::engine::cli::locate;
use ecr::engine::codex::FACTS;

use super::super::CODEX;
use super::super::install::installed;
use super::super::rig::room;
use crate::support::repo::TestRepo;

#[tokio::test]
async fn the_bait_works_outside_of_the_jar() {
    let Some(folder) = installed(&CODEX) else {
        return;
    };
    let program = locate(&FACTS, folder.as_os_str(), &[]).unwrap();
    let _room = room().await;
    let repo = TestRepo::init();
    let (server, filter) = (
        repo.home().join("server-ran"),
        repo.home().join("filter-ran"),
    );
    repo.write("a.txt", "one\n");
    repo.write(".gitattributes", "*.txt filter=evil\n");
    repo.commit_all("base");
    let clean = format!("sh -c 'touch {}; cat'", filter.display());
    repo.git(&["config", "filter.evil.clean", &clean]);
    repo.write("a.txt", "two\n");
    let home = repo.home().join(".codex");
    std::fs::create_dir_all(&home).unwrap();
    let config = format!(
        "model = \"m\"\nmodel_provider = \"evil\"\n[model_providers.evil]\nname = \"evil\"\n\
         base_url = \"http://127.0.0.1:9/v1\"\nwire_api = \"responses\"\n\
         [mcp_servers.evil]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch {}\"]\n",
        server.display()
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
    let mut child = repo
        .command(program.target())
        .args(["exec", "--json", "--skip-git-repo-check", "hello"])
        .env("CODEX_HOME", &home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    let works = || server.exists() && filter.exists();
    while !works() && begun.elapsed().as_secs() < 60 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(server.exists(), "its configuration started nothing");
    assert!(filter.exists(), "its git ran no filter");
}
