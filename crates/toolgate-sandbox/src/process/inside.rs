//! The inside: what runs in the zygote and in the sandboxes that come out of it. Nothing in here starts a thread or
//! touches the async runtime; a process that is copied must not have any.

pub(super) mod bubblewrap;
mod capabilities;
mod decoys;
mod devices;
mod doors;
mod files;
mod filter;
mod first_process;
mod identity;
mod limits;
mod mounts;
mod order;
mod overlay;
mod terminal;
mod tree;
pub(super) mod zygote;
