//! Confines what a tool can touch to what it was granted.
//!
//! Files: [`Roots`] opens beneath a root's descriptor in one step and follows no link, so nothing can be swapped
//! between check and use. This crate and `toolgate-journal` are the only ones that may reach for the disk by
//! themselves.
#![allow(clippy::disallowed_methods, reason = "this crate is where file access is confined")]

mod apart;
mod apply;
mod arrange;
mod beneath;
mod copy;
mod denied_files;
mod draft;
mod flush;
mod locate;
mod look;
mod network;
mod node;
mod open_up;
pub mod process;
mod processes;
mod roots;
mod walk;

pub use apart::{Folder, KeptLayers, Layers};
pub use beneath::OpenWay;
pub use copy::{Copied, copy_workspace};
pub use network::{Resolver, SystemResolver, try_list};
pub use processes::{Confined, enough, scratch};
pub use roots::{RootAccess, Roots, RootsError};
