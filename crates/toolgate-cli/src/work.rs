//! Working through the inbox (C-40): a supervisor takes one task at a time, a worker does it, and a commander brings the
//! answer back and the person's words in.

mod chat;
mod commander;
mod notice;
mod supervisor;
mod telegram;
mod web;

pub(crate) use commander::{check_reply_to, commander};
pub(crate) use notice::Records;
pub(crate) use supervisor::{Finished, Job, Supervisor, Worker};
pub(crate) use telegram::Telegram;
