//! Files that do not belong into a repository.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecr::engine::builtin::CheckSettings;
use ecr::model::ChangeStatus;
use ecr::tree::MemoryTree;

use super::harness::{DiffBuilder, check_new, expect, expect_clean, path, run, summary};

#[test]
fn logins_of_tools() {
    let auth = STANDARD.encode("shop:k3J9vQ2pLx7R");
    let key = STANDARD.encode("-----BEGIN EC PRIVATE");
    let credential = |line: u32| format!("credential-file:{line}");
    for (name, content, line) in [
        (
            ".npmrc",
            "registry=https://r.shop.io\n//r.shop.io/:_authToken=k3J9vQ2pLx7R8t\n".to_owned(),
            2,
        ),
        (
            ".yarnrc.yml",
            "npmAuthToken: \"k3J9vQ2pLx7R8t\"\n".to_owned(),
            1,
        ),
        (
            ".pypirc",
            "[pypi]\nusername = shop\npassword = k3J9vQ2pLx7R8t\n".to_owned(),
            3,
        ),
        (
            ".netrc",
            "machine h.shop.io login shop password k3J9vQ2pLx7R8t\n".to_owned(),
            1,
        ),
        (
            ".git-credentials",
            ["https://shop", ":k3J9vQ2pLx7R@localhost\n"].concat(),
            1,
        ),
        (
            ".docker/config.json",
            format!("{{\"auths\":{{\"r.shop.io\":{{\"auth\": \"{auth}\"}}}}}}\n"),
            1,
        ),
        (
            "kubeconfig",
            format!("users:\n- user:\n    client-key-data: {key}\n"),
            3,
        ),
        (
            ".cargo/credentials.toml",
            "[registry]\ntoken = \"k3J9vQ2pLx7R8t\"\n".to_owned(),
            2,
        ),
    ] {
        assert_eq!(check_new(name, &content), [credential(line)], "{name}");
    }
    for (name, content) in [
        (".npmrc", "//r.shop.io/:_authToken=${NPM_TOKEN}\n"),
        (".npmrc", "save-exact=true\n# _authToken=k3J9vQ2pLx7R8t\n"),
        (".npmrc", "//r.shop.io/:_authToken=<your-token-1>\n"),
        (".yarnrc.yml", "npmAuthToken: \"${NPM_TOKEN}\"\n"),
        (
            ".pypirc",
            "[pypi]\nusername = __token__\npassword = changeme-1234\n",
        ),
        ("docs/.npmrc", "_authToken=k3J9vQ2pLx7R8t\n"),
        (
            "src/netrc.rs",
            "machine h login shop password k3J9vQ2pLx7R8t\n",
        ),
        (".docker/config.json", "{\"credsStore\": \"desktop\"}\n"),
        (
            "kubeconfig.yaml",
            "users:\n- user:\n    client-key: /home/x/key.pem\n",
        ),
        ("config.json", "{\"auth\": \"c2hvcDprM0o5dlEycA==\"}\n"),
    ] {
        assert_eq!(
            check_new(name, content),
            [] as [&str; 0],
            "{name}\n{content}"
        );
    }
}

#[test]
fn environment_files() {
    expect(&[
        (
            ".env",
            "PORT=80\nDB_PASSWORD=k3J9vQ2pLx7R\n",
            &["env-file-with-secrets:2"],
        ),
        (
            "api/.env.production",
            "export STRIPE_SECRET='k3J9vQ2pLx7R'\nB_TOKEN=z9K2mV7qWx4T\n",
            &["env-file-with-secrets:1"],
        ),
        (
            ".env.local",
            "JWT_SECRET=\"a8f5f167f44f4964e6c998dee827110c\"\n",
            &["env-file-with-secrets:1"],
        ),
    ]);
    expect_clean(&[
        (".env.example", "DB_PASSWORD=k3J9vQ2pLx7R\n"),
        (".env.sample", "DB_PASSWORD=k3J9vQ2pLx7R\n"),
        (".env", "DB_PASSWORD=\nPORT=8080\n"),
        (".env", "DB_PASSWORD=changeme123456\n"),
        (".env", "DB_PASSWORD=${DB_PASSWORD}\n"),
        (".env", "# DB_PASSWORD=k3J9vQ2pLx7R\n"),
        (".env", "VITE_API_KEY=k3J9vQ2pLx7R\n"),
        (".env", "TOKEN_URL=https://id.shop.io/oauth2/v1\n"),
        ("tests/.env", "DB_PASSWORD=k3J9vQ2pLx7R\n"),
        (".env", "SECRET_NAME=production-database\n"),
        (".envrc", "use flake\n"),
    ]);
}

#[test]
fn state_and_generated_folders() {
    expect(&[
        (
            "infra/terraform.tfstate",
            "{\n  \"version\": 4,\n  \"terraform_version\": \"1.9.0\"\n}\n",
            &["terraform-state"],
        ),
        (
            "prod.tfstate",
            "{\"terraform_version\": \"1.9.0\"}\n",
            &["terraform-state"],
        ),
        ("node_modules/a/index.js", "x\n", &["generated-folder"]),
        ("web/node_modules/a/index.js", "x\n", &["generated-folder"]),
        (".venv/lib/a.py", "x = 1\n", &["generated-folder"]),
    ]);
    expect_clean(&[
        ("infra/main.tf", "terraform_version = \"1.9.0\"\n"),
        ("a.tfstate", "{}\n"),
        ("src/node_modules.rs", "x\n"),
        ("tests/fixtures/node_modules/a/index.js", "x\n"),
        ("src/pycache/a.py", "x = 1\n"),
        ("docs/venv.md", "x\n"),
    ]);
}

#[test]
fn sizes_come_from_the_diff_or_the_tree() {
    let line = "0123456789 abcdefghij klmnopqrst\n";
    assert_eq!(check_new("data/a.csv", line.repeat(40_000)), ["large-file"]);
    assert_eq!(
        check_new("data/a.csv", line.repeat(20_000)),
        [] as [&str; 0]
    );
    let mut tree = MemoryTree::new();
    let random: Vec<u8> = (0..6_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    tree.insert(path("big.bin"), random.clone());
    tree.insert(path("small.bin"), random[..50_000].to_vec());
    tree.insert(path("release.p12"), random[..3_000].to_vec());
    tree.insert(path("tests/a.p12"), random[..3_000].to_vec());
    tree.insert(path("old.bin"), random);
    let diff = DiffBuilder::default()
        .binary("big.bin", ChangeStatus::Added)
        .binary("small.bin", ChangeStatus::Added)
        .binary("release.p12", ChangeStatus::Added)
        .binary("tests/a.p12", ChangeStatus::Added)
        .binary("debug.keystore", ChangeStatus::Added)
        .binary("old.bin", ChangeStatus::Modified)
        .binary(".DS_Store", ChangeStatus::Added)
        .build();
    let (findings, outcome) = run(&diff, Some(Arc::new(tree)), CheckSettings::default());
    assert_eq!(
        summary(&findings),
        ["large-binary", "key-store-file", "generated-folder"]
    );
    assert_eq!(outcome.expect("complete").unexamined, []);
}

#[test]
fn a_generated_folder_is_reported_once() {
    let diff = DiffBuilder::default()
        .added("node_modules/a/1.js", "x\n")
        .added("node_modules/b/2.js", "x\n")
        .added("web/node_modules/c/3.js", "x\n")
        .build();
    let (findings, _) = run(&diff, None, CheckSettings::default());
    let files: Vec<_> = findings
        .iter()
        .map(|f| f.location.file.to_lossy())
        .collect();
    assert_eq!(files, ["node_modules/a/1.js", "web/node_modules/c/3.js"]);
}
