//! Attacks by a process that runs confined.

mod calls;
mod environment;
mod files;
mod git;
mod lingering;
mod ordinary_work;
mod resources;
pub(crate) mod scene;
mod sockets;
mod terminal;
