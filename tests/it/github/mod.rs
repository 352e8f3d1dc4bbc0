//! GitHub: the client over the fake, pull requests as a source, `ecr ci`.

mod client;
mod local;
mod rig;
