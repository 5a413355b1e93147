//! Files beneath a root, never by ambient path: resolving, opening, walking, writing and comparing, each from descriptor to
//! descriptor with no symbolic link followed on the way.

pub(crate) mod atomic_write;
pub(crate) mod change_writer;
pub(crate) mod copy_across;
pub(crate) mod copy_workspace;
pub(crate) mod fsync;
pub(crate) mod grant_owner_access;
pub(crate) mod layer_directory;
pub(crate) mod openat2;
pub(crate) mod overlay_changes;
pub(crate) mod overlay_diff;
pub(crate) mod read_directory;
pub(crate) mod resolve;
pub(crate) mod root;
pub(crate) mod stat;
pub(crate) mod unnamed_file;
pub(crate) mod walk;
