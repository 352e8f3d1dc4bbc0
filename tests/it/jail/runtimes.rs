//! What has to work inside: a real JavaScript engine with its threads, its code generator and its connection.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use ecr::process::sandbox::SandboxPlan;
use ecr::process::{Binary, RunFolders, Spec, ToolPath, run, runtime_files};
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = r#"
const fs = require("fs"), net = require("net"), os = require("os"), { Worker } = require("worker_threads");
const { spawnSync } = require("child_process");
const hot = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; };
for (let i = 0; i < 50; i++) hot(10000);
fs.writeFileSync(os.tmpdir() + "/file", "x");
const denied = (f) => { try { f(); return "ALLOWED"; } catch (e) { return e.code; } };
console.log("read", denied(() => fs.readFileSync("/etc/passwd")), "exec", spawnSync("/bin/sh", ["-c", "true"]).error.code,
  "self", fs.readFileSync("/proc/self/statm").length > 0, "other", denied(() => fs.readFileSync("/proc/1/cmdline")));
new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true }).on("message", (m) => {
  console.log(m);
  net.connect(Number(process.argv[1]), "127.0.0.1").on("data", (d) => { console.log(String(d)); process.exit(0); });
});
"#;

#[tokio::test]
async fn node_lives_in_the_jar() {
    let path = std::env::var_os("PATH").unwrap();
    let Ok(node) = ToolPath::find("node", &path, &[]) else {
        crate::support::skip::skipped("there is no node here");
        return;
    };
    let Ok(binary) = Binary::examine(node) else {
        crate::support::skip::skipped("the node here belongs to somebody else");
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"served").unwrap();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
    });
    let folders = RunFolders::new().unwrap();
    let mut exec = runtime_files(binary.target()).unwrap();
    exec.push(binary.target().to_owned());
    let mut spec = Spec::new(binary.tool().clone(), &folders.cwd());
    spec.args = vec!["-e".into(), SCRIPT.into(), port.to_string().into()];
    spec.env = folders.env();
    // Its OpenSSL insists on reading a configuration, and dies without.
    let settings = folders.root().file("openssl.cnf", b"").unwrap();
    spec.env
        .push(("OPENSSL_CONF".into(), settings.clone().into()));
    spec.deadline = Some(Duration::from_secs(60));
    spec.sandbox = Some(SandboxPlan {
        exec,
        read: vec![PathBuf::from("/dev/urandom"), settings],
        write: folders.writable(),
        proc_self: true,
        port: Some(port),
        ..SandboxPlan::default()
    });
    let output = run(spec, &CancellationToken::new()).await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "read EACCES exec EACCES self true other EACCES\nworker\nserved\n",
        "{words}"
    );
    assert!(output.status.success());
    served.join().unwrap();
}
