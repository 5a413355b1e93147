//! Random sequences of everything that can happen to a workspace, against a model of it: two servers, the program on
//! the command line, a person beside them, commands on overlays and in place, undo of everything, and kills at any
//! moment.
//!
//! A few seeds run in every setting with the other tests. `cargo xtask chaos` runs for as long as one likes, and prints
//! each violation as the shortest sequence of operations that shows it, with the command that repeats it.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod attention;
mod checks;
mod driver;
mod history;
mod leftovers;
mod meaning;
mod mutation;
mod operation;
mod random;
mod reply;
mod runs;
mod server;
mod setting;
mod shrink;
mod side_by_side;
mod stored_payload;
mod tree;
mod tree_path;
mod twin;
mod undo_check;
mod violation;
mod vocabulary;
mod watchdog;
mod world;
