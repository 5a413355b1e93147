//! Working through the inbox (C-40): a supervisor takes one task at a time, a worker does it, a commander brings the
//! answer back and the person's words in.

mod commander;
mod notice;
mod supervisor;

pub(crate) use commander::{Commander, commander};
pub(crate) use supervisor::{Finished, Job, Supervisor, Worker};
