//! The jar of one child: its folders, its network, and what it may do.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::launch::environment;
use crate::gateway::{Gateway, ListenerGuard};
use crate::process::sandbox::{PrivateNet, SandboxPlan, probe};
use crate::process::{Binary, RunFolders, Spec};

/// Bytes of stdout that are read at most; its tool results stand in it.
const STDOUT: usize = 256 * 1024 * 1024;
/// Bytes of one line that are kept: the last answer has to fit.
const LINE: usize = 4 * 1024 * 1024;

/// Folders, and a network of its own where the system gives one. All of it goes when this is dropped.
pub(super) struct Jar {
    folders: RunFolders,
    net: Option<Arc<PrivateNet>>,
    doors: SocketAddr,
    _listener: Option<ListenerGuard>,
}

impl Jar {
    /// Makes one from which the doors of `gateway` can be reached.
    pub(super) fn new(gateway: &Gateway) -> io::Result<Self> {
        let folders = RunFolders::new()?;
        let mut jar = Self {
            folders,
            net: None,
            doors: gateway.address(),
            _listener: None,
        };
        // Without, it has the one port on every address of the machine.
        if probe().private_net {
            let net = PrivateNet::open()?;
            let listener = gateway.serve(net.listener()?)?;
            jar.doors = listener.address();
            jar._listener = Some(listener);
            jar.net = Some(Arc::new(net));
        }
        Ok(jar)
    }

    /// Where the child finds both doors.
    pub(super) fn doors(&self) -> SocketAddr {
        self.doors
    }

    /// Makes the folder that the child starts in, with its configuration. It may not write there, so
    /// that it installs nothing.
    pub(super) fn configure(&self, config: &str) -> io::Result<()> {
        let home = self.home();
        std::fs::DirBuilder::new().mode(0o700).create(&home)?;
        let file = home.join("opencode.json");
        let text = self.folders.root().file("config.json", config.as_bytes())?;
        std::fs::rename(text, file)
    }

    fn root(&self) -> &Path {
        self.folders.root().path()
    }

    fn home(&self) -> PathBuf {
        self.root().join("config").join("opencode")
    }

    /// How `binary` is started in here, without arguments.
    pub(super) fn spec(&self, binary: &Binary, libraries: &[PathBuf]) -> Spec {
        let mut spec = Spec::new(binary.tool().clone(), &self.home());
        spec.env = environment(self.root());
        spec.stdout_limit = STDOUT;
        spec.line_limit = LINE;
        let mut exec = libraries.to_vec();
        exec.push(binary.target().to_owned());
        spec.sandbox = Some(SandboxPlan {
            exec,
            read: vec!["/dev/urandom".into(), self.root().join("config")],
            write: ["cache", "data", "state", "tmp"]
                .iter()
                .map(|name| self.root().join(name))
                .collect(),
            proc_self: true,
            port: Some(self.doors.port()),
            net: self.net.clone(),
            ..SandboxPlan::default()
        });
        spec
    }
}
