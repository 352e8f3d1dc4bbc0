//! Children that do everything to stay, to flood or to hang.

use std::time::Duration;

use ecr::model::Secret;
use ecr::process::{End, ProcessError, Stream, run, stream};
use tokio_util::sync::CancellationToken;

use super::shell;

fn never() -> CancellationToken {
    CancellationToken::new()
}

#[tokio::test]
async fn sigterm_comes_first_and_what_was_said_is_kept() {
    let cancel = never();
    let mut spec = shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    spec.grace = Duration::from_secs(600);
    let stop = cancel.clone();
    let capture = stream(spec, &cancel, |line| {
        if line.bytes == b"ready" {
            stop.cancel();
        }
    })
    .await
    .unwrap();
    assert_eq!(capture.end, End::Cancelled);
    assert_eq!(capture.stdout, b"ready\nbye\n");
}

#[tokio::test]
async fn who_traps_sigterm_is_killed_after_the_grace() {
    let cancel = never();
    let mut spec = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    spec.grace = Duration::from_millis(30);
    let stop = cancel.clone();
    let capture = stream(spec, &cancel, |_| stop.cancel()).await.unwrap();
    assert_eq!(capture.end, End::Cancelled);
    assert_eq!(capture.stdout, b"ready\n");
}

#[tokio::test]
async fn the_deadline_keeps_what_was_read() {
    let mut spec = shell("echo one; echo two >&2; sleep 1000");
    spec.deadline = Some(Duration::from_millis(300));
    let capture = stream(spec, &never(), |_| {}).await.unwrap();
    assert_eq!(capture.end, End::Deadline);
    assert_eq!(
        (capture.stdout.as_slice(), capture.stderr.as_slice()),
        (&b"one\n"[..], &b"two\n"[..])
    );
}

#[tokio::test]
async fn lines_come_while_the_child_runs() {
    // It goes on only when its line was seen.
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let mut spec =
        shell("echo first; while [ ! -e \"$SEEN\" ]; do sleep 0.01; done; echo second >&2");
    spec.env.push(("SEEN".into(), seen.clone().into()));
    let mut lines = Vec::new();
    let capture = stream(spec, &never(), |line| {
        lines.push((line.stream, line.bytes.to_vec()));
        std::fs::write(&seen, "").unwrap();
    })
    .await
    .unwrap();
    assert!(matches!(capture.end, End::Exited(status) if status.success()));
    assert_eq!(
        lines,
        [
            (Stream::Stdout, b"first".to_vec()),
            (Stream::Stderr, b"second".to_vec())
        ]
    );
}

#[tokio::test]
async fn a_flood_is_drained_and_capped() {
    let mut spec = shell("yes | head -c 20000000; yes | head -c 20000000 >&2; echo end");
    spec.stdout_limit = 10_000;
    spec.stderr_limit = 5000;
    let mut lines = 0;
    let capture = stream(spec, &never(), |_| lines += 1).await.unwrap();
    assert!(matches!(capture.end, End::Exited(status) if status.success()));
    assert!(capture.truncated);
    assert_eq!((capture.stdout.len(), capture.stderr.len()), (10_000, 5000));
    assert_eq!(lines, 7500);
}

#[tokio::test]
async fn closing_the_outputs_early_is_not_the_end() {
    let output = run(shell("exec >&- 2>&-; sleep 0.05; exit 5"), &never())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
}

#[tokio::test]
async fn the_way_it_ended_comes_through() {
    use std::os::unix::process::ExitStatusExt;
    for signal in [6, 9, 11, 15] {
        let output = run(shell(&format!("kill -{signal} $$")), &never())
            .await
            .unwrap();
        assert_eq!(output.status.signal(), Some(signal));
    }
    let output = run(shell("exit 255"), &never()).await.unwrap();
    assert_eq!(output.status.code(), Some(255));
}

#[tokio::test]
async fn an_open_stdin_that_nobody_reads_does_no_harm() {
    let mut spec = shell("sleep 1000");
    spec.stdin = Some(vec![b'x'; 10 << 20]);
    spec.deadline = Some(Duration::from_millis(50));
    let capture = stream(spec, &never(), |_| {}).await.unwrap();
    assert_eq!(capture.end, End::Deadline);
}

#[tokio::test]
async fn a_hundred_at_once() {
    let runs = (0..100).map(|n| async move {
        let mut spec = shell("cat; (sleep 1000 &) ; echo $N");
        spec.stdin = Some(vec![b'x'; 100_000]);
        spec.env.push(("N".into(), n.to_string().into()));
        let output = run(spec, &never()).await.unwrap();
        output.stdout.ends_with(format!("x{n}\n").as_bytes())
    });
    assert!(
        futures_util::future::join_all(runs)
            .await
            .iter()
            .all(|ok| *ok)
    );
}

#[tokio::test]
async fn a_credential_in_sight_starts_nothing() {
    let secret = ["top", "secret"].concat();
    let forbidden = vec![Secret::new(secret.clone())];
    let mut by_argument = shell("true");
    by_argument.args.push(format!("--key={secret}").into());
    let mut by_variable = shell("true");
    by_variable
        .env
        .push(("TOKEN".into(), format!("Bearer {secret}").into()));
    for (mut spec, expected) in [(by_argument, "argument 3"), (by_variable, "$TOKEN")] {
        spec.forbidden.clone_from(&forbidden);
        let error = run(spec, &never()).await.unwrap_err();
        assert!(
            matches!(&error, ProcessError::Leak { place, .. } if place == expected),
            "{error}"
        );
        assert!(!format!("{error} {error:?}").contains(&secret));
    }
    let mut clean = shell("cat");
    clean.forbidden = forbidden;
    clean.stdin = Some(secret.into_bytes());
    assert!(run(clean, &never()).await.unwrap().status.success());
}

#[tokio::test]
async fn only_named_descriptors_are_inherited() {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"hidden").unwrap();
    drop(writer);
    let fd: std::os::fd::OwnedFd = reader.try_clone().unwrap().into();
    let number = fd.as_raw_fd();
    let mut spec = shell(&format!("cat /dev/fd/{number}; ls /dev/fd | wc -l"));
    spec.inherit = vec![std::sync::Arc::new(fd)];
    let output = run(spec, &never()).await.unwrap();
    // Three streams, the one, and the folder that `ls` reads.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .collect::<String>(),
        "hidden5"
    );
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    let none = run(shell(&format!("cat /dev/fd/{number}")), &never())
        .await
        .unwrap();
    assert!(!none.status.success());
}
