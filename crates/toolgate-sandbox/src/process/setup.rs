//! What runs in the zygote and in the sandboxes that it makes: each file is one part of the confinement, and
//! `first_process` puts them in order. Nothing in here starts a thread or uses the async runtime, because only a process with
//! one thread can be forked safely.

pub(super) mod bubblewrap;
mod caller;
mod capabilities;
mod decoys;
mod devices;
mod exec;
mod first_process;
mod landlock;
mod listeners;
mod mounts;
mod move_directory;
mod namespaces;
mod netlink;
mod overlay;
mod overlay_broker;
mod reaper;
mod rlimits;
mod seccomp;
mod spare;
mod substitutes;
mod tty;
pub(super) mod zygote_main;
