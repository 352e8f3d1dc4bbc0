//! The model door, from outside: through memory on the paused clock, and through real sockets.

mod caps;
mod faults;
mod hostile;
mod rig;
mod wire;
