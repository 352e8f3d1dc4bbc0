//! Every string that a model sees and no stranger wrote: what the tools say of themselves, and the landing.

mod judge;
mod landing;
mod review;
mod sanitise;
mod tools;

pub use judge::{
    VerifyTask, coordinate_task, coordinator_system, cross_cutting, router_system, verifier_system,
};
pub use landing::{landing_hint, landing_refusal};
pub use review::{NO_TOOLS, ReviewTask, context, reviewer_system, route_task};
pub use sanitise::{flatten, sanitise, sanitise_capped};
pub use tools::{INSTRUCTIONS, ToolText, tool_text};
