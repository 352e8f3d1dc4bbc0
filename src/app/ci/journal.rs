//! Commands of people, and who of them may give one.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use crate::github::{self, Comment, GitHub, Identity, RepoName};
use crate::state::comment::{
    CommentState, Decoded, Listed, Outcome, Permission, Tag, decode, pending, replay,
};

/// Different authors asked about in one run at most. Anybody may write a comment that looks like a command; the rest
/// waits for the next run.
const AUTHORS: usize = 30;

/// Asks once for each author.
#[derive(Default)]
pub(super) struct Gatekeeper(Mutex<BTreeMap<String, Permission>>);

impl Gatekeeper {
    /// Whether `login` may give commands: by GitHub's word alone, never by how the comment is labelled.
    async fn may(&self, github: &GitHub, repo: &RepoName, login: &str) -> Permission {
        let mut known = self.0.lock().await;
        if let Some(permission) = known.get(login) {
            return *permission;
        }
        if known.len() >= AUTHORS {
            return Permission::Unknown;
        }
        let permission = match github.permission(repo, login).await {
            Ok(permission) if permission >= github::Permission::Write => Permission::Granted,
            Ok(_) => Permission::Denied,
            Err(_) => Permission::Unknown,
        };
        known.insert(login.to_owned(), permission);
        permission
    }
}

/// What our comments know together, and whether something of it was damaged.
pub(super) fn known(tag: &Tag, own: &[&Comment]) -> Decoded {
    let mut all = Decoded::default();
    for (at, comment) in own.iter().enumerate() {
        let found = decode(tag, &comment.body);
        if at == 0 {
            all = found;
            continue;
        }
        all.state = std::mem::take(&mut all.state).merge(found.state);
        all.damage.dismissals |= found.damage.dismissals;
        all.damage.review |= found.damage.review;
        all.damage.newer |= found.damage.newer;
        all.earlier_ids.extend(found.earlier_ids);
        all.found |= found.found;
    }
    all
}

/// The commands of `comments` that the state does not hold yet, applied as far as their authors may give them.
pub(super) async fn read(
    state: CommentState,
    comments: &[Comment],
    marker: &str,
    identity: &Identity,
    (gatekeeper, github, repo): (&Gatekeeper, &GitHub, &RepoName),
) -> (CommentState, Vec<Outcome>) {
    let listed: Vec<Listed<'_>> = comments
        .iter()
        .filter_map(|comment| {
            let author = comment.user.as_ref()?;
            // Our own comments show commands, and machines answer each other.
            let person = !author.is_bot() && !identity.is(author);
            // A person's own token writes our comment under that person's name: its commands count as well.
            let own_command =
                identity.is(author) && !author.is_bot() && comment.body.starts_with('/');
            (person || own_command).then_some(Listed {
                id: comment.id,
                at: seconds(&comment.created_at),
                author: &author.login,
                body: &comment.body,
            })
        })
        .collect();
    let mut decided = Vec::new();
    for pending in pending(&state, &listed, marker) {
        let permission = gatekeeper.may(github, repo, &pending.author).await;
        decided.push((pending, permission));
    }
    let replayed = replay(state, &listed, decided);
    (replayed.state, replayed.outcomes)
}

/// Seconds since 1970; 0 for what is no time.
fn seconds(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>()
        .map_or(0, jiff::Timestamp::as_second)
}
