//! Confines what a tool can touch to what it was granted.
//!
//! Files: [`Roots`] opens beneath a root's descriptor in one step and follows no symlink, so nothing can be swapped
//! between check and use. This crate and `toolgate-journal` are the only ones that may reach for the disk by
//! themselves.
#![allow(clippy::disallowed_methods, reason = "this crate is where file access is confined")]

mod caches;
pub(crate) mod files;
mod network;
pub mod process;

pub use caches::{CacheAccess, CacheStore, PackageCaches, StoredCache};
pub use files::copy_workspace::{CopyTotals, copy_workspace};
pub use files::openat2::OpenMethod;
pub use files::overlay_changes::{OverlayChanges, StoredOverlays};
pub use files::root::{Roots, RootsError};
pub use network::{Resolver, SystemResolver, test_host_list};
pub use process::requirements;
pub use process::sandboxed_processes::SandboxedProcesses;
