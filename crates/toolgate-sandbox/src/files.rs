//! Files beneath a root: resolve, open, walk, write and compare. Every access starts at a root's descriptor and follows no
//! symlink, so a path that is swapped meanwhile leads nowhere else.

pub(crate) mod atomic_write;
pub(crate) mod attributes;
pub(crate) mod change_writer;
pub(crate) mod copy_across;
pub(crate) mod copy_workspace;
pub(crate) mod fsync;
pub(crate) mod grant_owner_access;
mod layer_baseline;
pub(crate) mod layer_directory;
mod layer_mode;
pub(crate) mod openat2;
pub(crate) mod overlay_changes;
pub(crate) mod overlay_diff;
pub(crate) mod read_directory;
pub(crate) mod resolve;
pub(crate) mod root;
mod sparse_reader;
pub(crate) mod stat;
pub(crate) mod substitutes;
pub(crate) mod suspended_modes;
mod tree_watch;
pub(crate) mod umask;
pub(crate) mod unnamed_file;
pub(crate) mod walk;
