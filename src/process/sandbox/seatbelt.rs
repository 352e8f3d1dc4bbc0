//! The same plan as a profile of macOS's `sandbox-exec`. Untested on a real machine.

use std::fmt::Write;
use std::path::Path;

use super::{PlanError, SandboxPlan};

/// The program that applies a profile.
#[cfg(target_os = "macos")]
pub(in crate::process) const LAUNCHER: &str = "/usr/bin/sandbox-exec";

/// Whether the launcher is there.
#[cfg(target_os = "macos")]
pub(super) fn is_available() -> bool {
    Path::new(LAUNCHER).is_file()
}

/// The profile for `plan`: everything is refused but what it names.
pub(in crate::process) fn profile(plan: &SandboxPlan) -> Result<String, PlanError> {
    let mut text = String::from(
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow signal (target same-sandbox))\n\
         (allow sysctl-read)\n(allow file-read-metadata)\n",
    );
    for path in &plan.read {
        rule(&mut text, "file-read*", path)?;
    }
    for path in &plan.exec {
        rule(
            &mut text,
            "file-read* process-exec file-map-executable",
            path,
        )?;
    }
    for path in &plan.write {
        rule(&mut text, "file-read* file-write*", path)?;
    }
    if let Some(port) = plan.port {
        // The only host names that a profile knows are `localhost` and `*`.
        let _ = writeln!(
            text,
            "(allow network-outbound (remote tcp \"localhost:{port}\"))"
        );
    }
    Ok(text)
}

fn rule(text: &mut String, operations: &str, path: &Path) -> Result<(), PlanError> {
    let path = SandboxPlan::check(path)?;
    let quoted =
        quote(&path).ok_or_else(|| PlanError::Kernel(format!("{} is no text", path.display())))?;
    let kind = if path.is_dir() { "subpath" } else { "literal" };
    let _ = writeln!(text, "(allow {operations} ({kind} {quoted}))");
    Ok(())
}

/// A path as a string of the profile's language; `None` when it cannot be one.
fn quote(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    if path.chars().any(char::is_control) {
        return None;
    }
    Some(format!(
        "\"{}\"",
        path.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_refused_but_what_the_plan_names() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let file = folder.join("a \"b\"");
        std::fs::write(&file, "").unwrap();
        let plan = SandboxPlan {
            exec: vec![file],
            write: vec![folder.clone()],
            port: Some(4567),
            ..SandboxPlan::default()
        };
        let text = profile(&plan).unwrap();
        let folder = folder.to_str().unwrap();
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(folder) || line.contains("network"))
            .collect();
        assert_eq!(
            lines,
            [
                format!(
                    "(allow file-read* process-exec file-map-executable (literal \"{folder}/a \\\"b\\\"\"))"
                ),
                format!("(allow file-read* file-write* (subpath \"{folder}\"))"),
                "(allow network-outbound (remote tcp \"localhost:4567\"))".to_owned(),
            ]
        );
        assert!(
            !profile(&SandboxPlan::default())
                .unwrap()
                .contains("network")
        );
    }

    #[test]
    fn a_path_cannot_add_a_rule() {
        assert_eq!(quote(Path::new("/a\n(allow default)")), None);
        assert_eq!(quote(Path::new("/a\"))(x")).unwrap(), "\"/a\\\"))(x\"");
    }
}
