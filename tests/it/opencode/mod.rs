//! The real `OpenCode` in the jar, against a scripted provider. Skipped, and said so, where it cannot be had.

#![cfg(target_os = "linux")]

mod faults;
mod rig;
mod turns;
