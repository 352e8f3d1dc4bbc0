//! Configuration: strict JSONC, agents' front matter, the routing manifest, resolved settings and their
//! schemas. Pure: everything is read through a `Tree`, and credentials are names, never values.

mod agents;
mod auth;
mod check;
mod diagnostic;
mod edit;
pub mod env;
mod frontmatter;
mod jsonc;
mod load;
mod raw;
mod resolve;
mod roster;
mod routing;
pub mod schema;
mod settings;
mod setup;

pub use agents::{Agent, Prompt, RESERVED_IDS};
pub use auth::{AuthEntry, AuthProblem, TokenLock, TokenLockError, is_forbidden, key_env};
pub use diagnostic::{ConfigErrors, Diagnostic, DiagnosticLevel, Position, Source};
pub use edit::{NewCredential, NewScope, add_scope, credentials, fresh_config};
pub use load::{LoadedConfig, Overrides, load, load_routing};
pub use raw::{AuthMode, CommentMode, Protocol};
pub use resolve::{parse_config, parse_scope};
pub use roster::FILES as EMBEDDED_SETUP;
pub use routing::{RoutingManifest, Scope, parse_routing};
pub use settings::{
    Checks, Chunk, EngineChoice, Noise, Policy, Price, ReviewConfig, ReviewGate, RuleLevel,
    SandboxLevel, Trigger, Verify, VerifyScope,
};
pub use setup::{
    SETUP_FOLDERS, SetupChoice, SetupLocation, SetupOrigin, find_setup_folder, is_setup_folder,
};
