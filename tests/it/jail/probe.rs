//! The escape-probe program, its surroundings, and the jar that it runs in.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ecr::process::sandbox::{PrivateNet, SandboxPlan};
use ecr::process::{Capture, RunFolders, Spec, ToolPath, runtime_files, stream};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What each attempt gave: 0 is success, else the errno.
pub(super) type Results = BTreeMap<String, i32>;

/// The probe, compiled.
pub(super) struct Probe {
    dir: TempDir,
}

impl Probe {
    /// `None`, loudly, where there is no C compiler.
    pub(super) fn build() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let source = dir.path().join("probe.c");
        std::fs::write(&source, include_str!("probe.c")).expect("the source");
        let output = Command::new("cc")
            .args(["-Wall", "-O1", "-o"])
            .arg(dir.path().join("probe"))
            .arg(&source)
            .output();
        match output {
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{words}");
                Some(Self { dir })
            }
            Err(error) => {
                crate::support::skip::skipped(&format!(
                    "the escape probe needs a C compiler: {error}"
                ));
                None
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("probe")
    }

    /// What it needs to start at all.
    pub(super) fn plan(&self) -> SandboxPlan {
        let mut exec = vec![self.path()];
        let (loader, read) = runtime_files(&self.path())
            .expect("its libraries")
            .into_iter()
            .partition(|file| {
                file.file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-"))
            });
        exec.extend::<Vec<_>>(loader);
        SandboxPlan {
            exec,
            read,
            ..SandboxPlan::default()
        }
    }

    pub(super) fn spec(&self, folders: &RunFolders, args: Vec<String>) -> Spec {
        let tool = ToolPath::find("probe", self.dir.path().as_os_str(), &[]).expect("the probe");
        let mut spec = Spec::new(tool, &folders.cwd());
        spec.args = args.into_iter().map(Into::into).collect();
        spec.env = folders.env();
        spec
    }
}

/// Everything there is to attack, fresh.
pub(super) struct Surroundings {
    good: TcpListener,
    other: TcpListener,
    victims: TempDir,
    _unix: [UnixListener; 2],
    target: Child,
    args: Vec<String>,
}

impl Surroundings {
    /// `net`: the port that is allowed is the one of the private network.
    pub(super) fn new(probe: &Probe, net: Option<&PrivateNet>) -> Self {
        let good = match net {
            Some(net) => net.listener(),
            // Every address, so that another one than 127.0.0.1 can be told apart.
            None => TcpListener::bind("0.0.0.0:0"),
        }
        .expect("a port");
        let other = TcpListener::bind("127.0.0.1:0").expect("a port");
        let victims = tempfile::tempdir().expect("a folder");
        for name in [
            "read",
            "truncate",
            "link-from",
            "rename-from",
            "unlink",
            "attribute",
        ] {
            std::fs::write(victims.path().join(name), "content").expect("a victim");
        }
        std::fs::create_dir(victims.path().join("folder")).expect("a victim");
        let path = victims.path().join("socket");
        let name = format!("ecr-probe-{}", victims.path().display());
        let abstract_address = {
            use std::os::linux::net::SocketAddrExt;
            std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name")
        };
        let unix = [
            UnixListener::bind(&path).expect("a socket"),
            UnixListener::bind_addr(&abstract_address).expect("a socket"),
        ];
        let mut target = Command::new(probe.path())
            .arg("victim")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a victim");
        let mut address = String::new();
        BufReader::new(target.stdout.take().expect("its stdout"))
            .read_line(&mut address)
            .expect("its address");
        let port = |listener: &TcpListener| listener.local_addr().expect("its address").port();
        let mut args = vec![
            format!("victims={}", victims.path().display()),
            format!("unix={}", path.display()),
            format!("abstract={name}"),
            format!("good={}", port(&good)),
            format!("other={}", port(&other)),
            format!("target={}", target.id()),
            format!("address={}", address.trim()),
        ];
        if net.is_some() {
            args.push("other-address=127.0.0.2".to_owned());
        }
        Self {
            good,
            other,
            victims,
            _unix: unix,
            target,
            args,
        }
    }

    pub(super) fn good_port(&self) -> u16 {
        self.good.local_addr().expect("its address").port()
    }

    /// Whether anybody has come to the port that nobody may connect to.
    pub(super) fn was_reached(&self) -> bool {
        self.other.set_nonblocking(true).expect("a socket");
        self.other.accept().is_ok()
    }

    /// The names in the folder of victims, and whether the one to be cut is whole.
    pub(super) fn state(&self) -> (Vec<String>, bool) {
        let mut names: Vec<String> = std::fs::read_dir(self.victims.path())
            .expect("the victims")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        let whole = |name: &str| {
            std::fs::read(self.victims.path().join(name)).is_ok_and(|b| b == b"content")
        };
        (names, whole("truncate") && whole("read"))
    }

    pub(super) fn args(&self, verb: &str) -> Vec<String> {
        let mut args = vec![verb.to_owned()];
        args.extend(self.args.iter().cloned());
        args
    }

    /// The attempts with nothing around them.
    pub(super) fn try_outside(&self, probe: &Probe) -> Results {
        let output = Command::new(probe.path())
            .args(self.args("try"))
            .env("TMPDIR", self.victims.path())
            .output()
            .expect("the probe");
        results(&output.stdout)
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        let _ = self.target.kill();
        let _ = self.target.wait();
    }
}

/// Runs `verb` of the probe in a jar for `surroundings`.
pub(super) async fn inside(
    probe: &Probe,
    surroundings: &Surroundings,
    net: Option<Arc<PrivateNet>>,
    verb: &str,
) -> Capture {
    let folders = RunFolders::new().expect("folders");
    let mut spec = probe.spec(&folders, surroundings.args(verb));
    spec.sandbox = Some(SandboxPlan {
        write: folders.writable(),
        port: Some(surroundings.good_port()),
        net,
        ..probe.plan()
    });
    stream(spec, &CancellationToken::new(), |_| {})
        .await
        .expect("the jar starts")
}

pub(super) fn results(stdout: &[u8]) -> Results {
    String::from_utf8_lossy(stdout)
        .lines()
        .map(|line| {
            let (name, errno) = line.split_once('\t').expect("a result");
            (name.to_owned(), errno.parse().expect("an errno"))
        })
        .collect()
}

/// Whether the test runs as root.
pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|meta| meta.uid() == 0)
}
