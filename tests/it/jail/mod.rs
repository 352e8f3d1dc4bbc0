//! The jar for engine processes: what gets out of it, and what is left of it.

mod escape;
mod ladder;
mod leftovers;
#[cfg(target_os = "linux")]
mod probe;
mod runtimes;

use std::path::Path;

use ecr::process::{Spec, ToolPath};

/// `sh -c SCRIPT`, with the host's PATH and nothing else.
fn shell(script: &str) -> Spec {
    let path = std::env::var_os("PATH").expect("PATH");
    let sh = ToolPath::find("sh", &path, &[]).expect("a shell");
    let mut spec = Spec::new(sh, Path::new("/"));
    spec.args = vec!["-c".into(), script.into()];
    spec.env = vec![("PATH".into(), path)];
    spec
}
