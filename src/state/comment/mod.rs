//! What the one comment on a pull request carries for the next run, and the commands that change it.
//!
//! @ref LLP 0015#the-comment-is-the-store — what is kept and how it survives

mod codec;
mod command;
mod dismissal;
mod journal;
mod legacy;
mod review;
mod tag;
mod types;

pub use codec::{Damage, Decoded, STATE_VERSION, decode, encode};
pub use command::{Agents, Command, CommandError, MAX_IDS, MAX_REASON, parse, parse_id};
pub use dismissal::{Dismissal, Dismissals, Effect};
pub use journal::{Listed, Outcome, Pending, Permission, Replayed, apply_local, pending, replay};
pub use review::{Delta, StoredDropped, StoredFile, StoredFinding, StoredReview, Unlisted};
pub use tag::{Tag, TagError};
pub use types::{BreakGlass, CommentState};
