//! Ways found to fool a review, each closed.

mod runner;
