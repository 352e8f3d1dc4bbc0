//! The jar of one child: its folders, its network, and what it may do.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::Launch;
use crate::gateway::{Gateway, ListenerGuard};
use crate::process::sandbox::{PrivateNet, SandboxPlan, probe};
use crate::process::{Binary, RunFolders, Spec};

/// Bytes of stdout that are read at most; tool results stand in it.
const STDOUT: usize = 256 * 1024 * 1024;
/// Bytes of one line that are kept: the last answer has to fit.
const LINE: usize = 4 * 1024 * 1024;

/// Folders, and a network of its own where the system gives one. All of it goes when this is dropped.
pub(super) struct Jar {
    folders: RunFolders,
    net: Option<Arc<PrivateNet>>,
    doors: Option<SocketAddr>,
    _listener: Option<ListenerGuard>,
}

impl Jar {
    /// One from which the doors of `gateway` can be reached.
    pub(super) fn with_doors(gateway: &Gateway) -> io::Result<Self> {
        let folders = RunFolders::new()?;
        // Without a network of its own it has the one port on every address of the machine.
        if !probe().private_net {
            return Ok(Self {
                folders,
                net: None,
                doors: Some(gateway.address()),
                _listener: None,
            });
        }
        let net = PrivateNet::open()?;
        let listener = gateway.serve(net.listener()?)?;
        Ok(Self {
            folders,
            net: Some(Arc::new(net)),
            doors: Some(listener.address()),
            _listener: Some(listener),
        })
    }

    /// One without any network.
    pub(super) fn without_doors() -> io::Result<Self> {
        Ok(Self {
            folders: RunFolders::new()?,
            net: None,
            doors: None,
            _listener: None,
        })
    }

    /// Where the child finds both doors.
    pub(super) fn doors(&self) -> Option<SocketAddr> {
        self.doors
    }

    /// The folder that holds the others.
    pub(super) fn root(&self) -> &Path {
        self.folders.root().path()
    }

    /// Writes the files of `launch` and says how `binary` is started by it.
    pub(super) fn spec(
        &self,
        binary: &Binary,
        libraries: &[PathBuf],
        launch: Launch,
    ) -> io::Result<Spec> {
        let root = self.root();
        let cwd = launch.cwd.unwrap_or_else(|| "cwd".into());
        let write: Vec<PathBuf> = self
            .folders
            .writable()
            .into_iter()
            .filter(|folder| !launch.locked.iter().any(|name| folder.ends_with(name)))
            .collect();
        let mut read = launch.read;
        read.retain(|path| path.exists());
        for file in &launch.files {
            self.put(&file.path, &file.bytes)?;
            let path = root.join(&file.path);
            if !write.iter().any(|folder| path.starts_with(folder)) {
                read.push(path);
            }
        }
        let cwd = root.join(cwd);
        make(&cwd)?;
        read.push(cwd.clone());
        let mut exec = libraries.to_vec();
        exec.push(binary.target().to_owned());
        exec.extend(launch.exec);
        let mut spec = Spec::new(binary.tool().clone(), &cwd);
        spec.args = launch.args;
        spec.env = joined(self.folders.env(), launch.env);
        spec.stdin = Some(launch.stdin);
        spec.stdout_limit = STDOUT;
        spec.line_limit = LINE;
        spec.sandbox = Some(SandboxPlan {
            exec,
            read,
            write,
            proc_self: launch.proc_self,
            port: self.doors.map(|doors| doors.port()),
            net: self.net.clone(),
            ..SandboxPlan::default()
        });
        Ok(spec)
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let name = path.to_str().filter(|_| plain).ok_or_else(|| {
            io::Error::other(format!("{} is no path below a folder", path.display()))
        })?;
        if let Some(folder) = path.parent() {
            make(&self.root().join(folder))?;
        }
        self.folders.root().file(name, bytes).map(drop)
    }
}

/// Makes a folder and those above it, mode 0700; it may be there.
fn make(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// `more` over `base`.
fn joined(
    mut base: Vec<(OsString, OsString)>,
    more: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    base.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    base.extend(more);
    base
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::engine::cli::LaunchFile;
    use crate::process::ToolPath;

    fn spec(launch: Launch) -> (Jar, io::Result<Spec>) {
        let path = std::env::var_os("PATH").unwrap();
        let binary = Binary::examine(ToolPath::find("sh", &path, &[]).unwrap()).unwrap();
        let jar = Jar::without_doors().unwrap();
        let spec = jar.spec(&binary, &[], launch);
        (jar, spec)
    }

    #[test]
    fn files_are_private_and_only_those_are_readable() {
        let (jar, spec) = spec(Launch {
            files: vec![
                LaunchFile {
                    path: "config/tool/settings.json".into(),
                    bytes: b"{}".to_vec(),
                },
                LaunchFile {
                    path: "mcp.json".into(),
                    bytes: b"secret".to_vec(),
                },
            ],
            read: vec!["/nonexistent/file".into()],
            locked: &["config"],
            env: vec![("HOME".into(), "/elsewhere".into())],
            ..Launch::default()
        });
        let spec = spec.unwrap();
        let plan = spec.sandbox.unwrap();
        let settings = jar.root().join("config/tool/settings.json");
        let secret = jar.root().join("mcp.json");
        assert_eq!(
            plan.read,
            [settings.clone(), secret.clone(), jar.root().join("cwd")]
        );
        for file in [settings, secret] {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(!plan.write.contains(&jar.root().join("config")));
        assert!(plan.write.contains(&jar.root().join("tmp")));
        assert_eq!((plan.port, plan.net.is_some()), (None, false));
        let homes: Vec<_> = spec.env.iter().filter(|(name, _)| name == "HOME").collect();
        assert_eq!(homes.len(), 1);
        assert_eq!(homes[0].1, OsStr::new("/elsewhere"));
    }

    #[test]
    fn no_file_is_written_outside() {
        for path in ["../x", "/tmp/x", "a/../../x"] {
            let (_jar, spec) = spec(Launch {
                files: vec![LaunchFile {
                    path: path.into(),
                    bytes: Vec::new(),
                }],
                ..Launch::default()
            });
            assert!(spec.is_err(), "{path}");
        }
    }
}
