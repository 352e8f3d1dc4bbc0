//! git over HTTP, by git's own `http-backend`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::world::Answer;

/// Serves one request to `repository` (a `.git` folder). `path` begins after `OWNER/NAME.git`.
pub(super) fn serve(
    repository: &Path,
    (method, path, query): (&str, &str, &str),
    header: &dyn Fn(&str) -> Option<String>,
    body: &[u8],
) -> Answer {
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROJECT_ROOT", repository)
        .env("PATH_INFO", path)
        .env("REQUEST_METHOD", method)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .env(
            "HTTP_CONTENT_ENCODING",
            header("content-encoding").unwrap_or_default(),
        )
        .env("REMOTE_USER", "fake")
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let body = body.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&body);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let at = output
        .stdout
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let mut answer = Answer::new(200, Vec::new());
    for line in String::from_utf8_lossy(&output.stdout[..at]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        if name.eq_ignore_ascii_case("status") {
            answer.status = value[..3].parse().unwrap();
        } else {
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    answer.body = output.stdout[at + 4..].to_vec();
    answer
}
