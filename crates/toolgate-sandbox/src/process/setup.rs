//! The inside: what runs in the zygote and in the sandboxes that come out of it. Nothing in here starts a thread or
//! touches the async runtime; a process that is copied must not have any.

pub(super) mod bubblewrap;
mod capabilities;
mod decoys;
mod devices;
mod exec;
mod first_process;
mod landlock;
mod listeners;
mod mounts;
mod namespaces;
mod overlay;
mod reaper;
mod rlimits;
mod seccomp;
mod tty;
pub(super) mod zygote_main;
