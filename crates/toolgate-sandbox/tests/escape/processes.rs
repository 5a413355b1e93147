//! Attacks by a process that runs confined.

mod caches;
mod decoys;
mod environment;
mod files;
mod git;
mod lingering;
mod load;
mod network;
mod ordinary_work;
mod read_only;
mod rehearsal;
mod resources;
pub(crate) mod scene;
mod sockets;
mod spare;
mod syscalls;
mod terminal;
mod tools;
