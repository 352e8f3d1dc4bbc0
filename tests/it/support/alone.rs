//! A test that needs a process of its own: for its memory to be measured, or its environment set.

use std::process::Command;

const MARK: &str = "ECR_TEST_ALONE";

/// True in the process of the test's own. Everywhere else it runs the test `name` (its full path) in
/// one, with `environment`, fails when that fails, and gives false.
pub(crate) fn alone(name: &str, environment: &[(&str, &str)]) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1"])
        .env(MARK, "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
