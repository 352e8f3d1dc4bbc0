//! GitHub: the client over the fake, pull requests as a source, `ecr ci`.

mod ci;
mod client;
mod hostile;
mod local;
mod model;
mod rig;
mod second_opinion;
