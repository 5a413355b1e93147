//! What changes and undo have to know about git repositories. A repository is one thing: its refs, index, HEAD and logs belong
//! together, and its objects are only ever added.

mod committed;
mod decoys;
mod exclude;
mod index;
mod layout;
mod objects;
mod removed_repositories;
mod repository_undo;
mod tracked_path;

pub(crate) use self::committed::CommittedFiles;
pub use self::committed::CommittedView;
pub(crate) use self::decoys::DecoyGuard;
pub(crate) use self::layout::GitLayout;
pub(crate) use self::removed_repositories::RemovedRepositories;
pub(crate) use self::repository_undo::RepositoryUndo;
