//! Patches without a repository.

use std::path::PathBuf;
use std::sync::Arc;

use ecr::model::InputKind;
use ecr::port::{ReviewSource, SourceError, TreeUnderReview};
use ecr::source::{PatchInput, PatchSource};

use crate::support::repo::TestRepo;

fn bytes(text: &[u8]) -> PatchSource {
    PatchSource::new(PatchInput::Bytes(Arc::from(text)))
}

#[tokio::test]
async fn a_file_and_bytes_give_the_same_review() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("a", "2\n");
    let patch = repo.git(&["diff"]);
    let file = repo.home().join("x.patch");
    std::fs::write(&file, &patch).expect("write");
    let from_file = PatchSource::new(PatchInput::File(file));
    let one = from_file.load().await.expect("a change");
    let other = bytes(&patch).load().await.expect("a change");
    assert_eq!(one.diff, other.diff);
    assert_eq!(one.diff.files.len(), 1);
    assert_eq!((one.info.kind, one.own_work), (InputKind::Patch, false));
    for tree in [from_file.tree().await, from_file.base_tree().await] {
        assert!(matches!(tree, Ok(TreeUnderReview::None)));
    }
}

#[tokio::test]
async fn what_is_no_patch_is_never_a_clean_review() {
    for empty in [&b""[..], b"\n \n"] {
        let result = bytes(empty).load().await;
        assert!(
            matches!(&result, Err(SourceError::Nothing { reason, .. }) if reason.contains("standard input is empty")),
            "{:?}",
            result.err()
        );
    }
    let text = bytes(b"hello\n").load().await;
    assert!(matches!(text, Err(SourceError::Invalid { .. })));
    let cut = bytes(b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,5 +1,5 @@\n-1\n")
        .load()
        .await;
    assert!(matches!(cut, Err(SourceError::Invalid { .. })));
    for missing in [PathBuf::from("/nonexistent/x.patch"), PathBuf::from("/")] {
        let result = PatchSource::new(PatchInput::File(missing)).load().await;
        assert!(
            matches!(&result, Err(SourceError::Invalid { message, .. }) if message.contains("cannot read the patch")),
            "{:?}",
            result.err()
        );
    }
}
