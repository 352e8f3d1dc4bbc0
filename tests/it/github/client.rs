//! The client over the fake in memory, on a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::github::{
    Endpoints, GitHub, GitHubError, GitHubSettings, Identity, Permission, RepoName, RetryLimits,
};
use ecr::model::{CommitId, Secret};
use tokio::time::Instant;

use crate::support::github::{Actor, Fault, FaultKind, InMemory, World};
use crate::support::repo::TestRepo;

struct Rig {
    world: Arc<Mutex<World>>,
    github: GitHub,
    repo: RepoName,
    git: TestRepo,
}

fn token() -> String {
    ["ghs", "canary", "7c1e"].join("_")
}

impl Rig {
    fn new(token: &str) -> Self {
        let git = TestRepo::init();
        git.write("a", "a\n");
        git.commit_all("first");
        let mut world = World::new(&git.root().join(".git"));
        world.tokens.insert(self::token(), Actor::actions(true));
        world
            .tokens
            .insert("reader".to_owned(), Actor::actions(false));
        let world = Arc::new(Mutex::new(world));
        let endpoints = Endpoints::new(
            Some("http://127.0.0.1:9/api/v3"),
            Some("http://127.0.0.1:9/api/graphql"),
            Some("http://127.0.0.1:9"),
        )
        .unwrap();
        let github = GitHub::new(GitHubSettings {
            transport: Arc::new(InMemory(Arc::clone(&world))),
            endpoints,
            token: Some(Secret::new(token.to_owned())),
            limits: RetryLimits::default(),
            clock: || 1_800_000_000,
        })
        .unwrap();
        Self {
            world,
            github,
            repo: RepoName::new("octo/demo").unwrap(),
            git,
        }
    }

    fn fault(&self, fault: Fault) {
        self.world.lock().unwrap().faults.push(fault);
    }

    fn sent(&self) -> usize {
        self.world.lock().unwrap().log.len()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = &self.world.lock().unwrap().violations;
            assert!(violations.is_empty(), "{violations:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn comments_come_from_all_pages_with_large_ids_and_deleted_authors() {
    let rig = Rig::new(&token());
    {
        let mut world = rig.world.lock().unwrap();
        world.page = 2;
        for n in 0..5 {
            world.comment(7, Actor::person("p"), &format!("c{n}"));
        }
        world.comment(8, Actor::person("p"), "elsewhere");
        world.comments[1].author = None;
    }
    let comments = rig.github.comments(&rig.repo, 7).await.unwrap();
    let bodies: Vec<_> = comments.iter().map(|c| c.body.as_str()).collect();
    assert_eq!(bodies, ["c0", "c1", "c2", "c3", "c4"]);
    assert_eq!(rig.sent(), 3);
    assert!(comments[1].user.is_none() && comments[0].id > u64::from(u32::MAX));
}

#[tokio::test(start_paused = true)]
async fn a_comment_is_written_changed_and_removed() {
    let rig = Rig::new(&token());
    let made = rig
        .github
        .create_comment(&rig.repo, 7, "one")
        .await
        .unwrap();
    assert!(Identity::actions().is(made.user.as_ref().unwrap()));
    let edited = rig
        .github
        .edit_comment(&rig.repo, made.id, "two")
        .await
        .unwrap();
    assert_eq!((edited.id, edited.body.as_str()), (made.id, "two"));
    rig.github.delete_comment(&rig.repo, made.id).await.unwrap();
    rig.github.delete_comment(&rig.repo, made.id).await.unwrap();
    let gone = rig.github.edit_comment(&rig.repo, made.id, "x").await;
    assert!(gone.unwrap_err().is_not_found());
    assert_eq!(rig.sent(), 5);
    assert_eq!(rig.github.requests(), 5);
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_server_are_sat_out_but_nothing_is_created_twice() {
    let rig = Rig::new(&token());
    let made = rig
        .github
        .create_comment(&rig.repo, 7, "one")
        .await
        .unwrap();
    for kind in [
        FaultKind::Html,
        FaultKind::Reset,
        FaultKind::Truncate,
        FaultKind::ApplyThenFail,
        FaultKind::Status(500, "oops"),
    ] {
        for method in ["GET", "PATCH", "DELETE"] {
            rig.fault(Fault::new(method, "comments", kind.clone()).times(2));
        }
        let (before, start) = (rig.sent(), Instant::now());
        rig.github.comments(&rig.repo, 7).await.unwrap();
        rig.github
            .edit_comment(&rig.repo, made.id, "x")
            .await
            .unwrap();
        assert_eq!(rig.sent() - before, 6, "{kind:?}");
        assert_eq!(start.elapsed().as_secs(), 6, "{kind:?}");
        rig.world.lock().unwrap().faults.clear();

        // What creates something is sent once, and the error says whether it may have worked.
        rig.fault(Fault::new("POST", "comments", kind.clone()));
        let before = rig.sent();
        let error = rig
            .github
            .create_comment(&rig.repo, 8, "new")
            .await
            .unwrap_err();
        assert!(error.is_ambiguous(), "{kind:?}: {error}");
        assert_eq!(rig.sent() - before, 1, "{kind:?}");
    }
    // Truncated and applied-then-failed ones are there.
    let comments = rig.github.comments(&rig.repo, 8).await.unwrap();
    assert_eq!(comments.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn limits_are_waited_for_up_to_a_ceiling() {
    let rig = Rig::new(&token());
    for (kind, seconds) in [
        (FaultKind::Secondary(Some(7)), 7),
        (FaultKind::Secondary(None), 60),
        (FaultKind::Primary(30), 31),
    ] {
        let start = Instant::now();
        rig.fault(Fault::new("POST", "comments", kind));
        rig.github.create_comment(&rig.repo, 7, "x").await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(seconds));
    }
    assert_eq!(rig.world.lock().unwrap().comments.len(), 3);
    let start = Instant::now();
    rig.fault(Fault::new("GET", "comments", FaultKind::Primary(3_000)));
    let error = rig.github.comments(&rig.repo, 7).await.unwrap_err();
    assert!(matches!(error, GitHubError::Limited { .. }), "{error}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(error.to_string().contains("ends in about 3001s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_bounded_time() {
    let rig = Rig::new(&token());
    rig.fault(Fault::new("GET", "comments", FaultKind::Hang).times(99));
    let start = Instant::now();
    let error = rig.github.comments(&rig.repo, 7).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot list the comments of #7: no answer within 60s"
    );
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_one_line_with_what_is_missing() {
    let rig = Rig::new("reader");
    let error = rig
        .github
        .create_comment(&rig.repo, 7, "x")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot comment on #7: GitHub answered 403 (Resource not accessible by integration); the token needs issues=write; pull_requests=write"
    );
    assert!(error.is_forbidden() && !error.is_ambiguous());
    assert_eq!(rig.sent(), 1, "a refusal is not repeated");

    let stranger = Rig::new(&format!("{}x", token()));
    let error = stranger.github.viewer().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot ask whose token this is: GitHub answered 401 (Bad credentials)"
    );
    assert!(!format!("{error:?} {:?}", stranger.github).contains(&token()));
}

#[tokio::test(start_paused = true)]
async fn facts_permissions_and_the_merge_base() {
    let rig = Rig::new(&token());
    let base = rig.git.head();
    rig.git.git(&["checkout", "-q", "-b", "feature"]);
    rig.git.write("b", "b\n");
    let head = rig.git.commit_all("change");
    rig.git
        .git(&["checkout", "-q", "-b", "release/1.x", "main"]);
    rig.git.write("c", "c\n");
    let tip = rig.git.commit_all("moved on");
    {
        let mut world = rig.world.lock().unwrap();
        world.open(3, "release/1.x", &head);
        let pull = world.pulls.get_mut(&3).unwrap();
        pull.labels = vec!["AI-Review".to_owned()];
        pull.head_repo = None;
        world.permissions = [
            ("maintainer".to_owned(), "write"),
            ("reader".to_owned(), "read"),
        ]
        .into();
    }
    let pull = rig.github.pull(&rig.repo, 3).await.unwrap();
    assert_eq!(pull.head.commit.as_str(), head);
    assert!(pull.from_fork(&rig.repo) && pull.has_label("ai-review") && !pull.has_label("ai"));
    let head = CommitId::new(&head).unwrap();
    let found = rig
        .github
        .compare(&rig.repo, &pull.base.branch, &head)
        .await
        .unwrap();
    assert_eq!(
        (found.base.as_str(), found.merge_base.as_str()),
        (&*tip, &*base)
    );

    for (login, expected) in [
        ("maintainer", Permission::Write),
        ("reader", Permission::Read),
        ("nobody", Permission::None),
        ("../../x", Permission::None),
    ] {
        let found = rig.github.permission(&rig.repo, login).await.unwrap();
        assert_eq!(found, expected, "{login}");
    }
    let viewer = rig.github.viewer().await.unwrap().unwrap();
    assert_eq!(viewer, Identity::actions());
}
