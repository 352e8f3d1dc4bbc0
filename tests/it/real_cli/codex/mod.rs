//! What is Codex's own: answers to a strict schema, arguments that are no JSON, and a repository that knows it.

mod hostile;
mod turns;
