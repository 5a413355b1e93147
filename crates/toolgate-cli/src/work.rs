//! Works through the inbox: a supervisor takes one task at a time, a worker does it, and a reply channel delivers the
//! answer and asks the person.

mod earlier_attempts;
mod idle_once;
mod inbox_link;
mod json_client;
mod own_lease;
mod reply_channel;
mod supervisor;
mod telegram;
mod telegram_channel;

pub(crate) use earlier_attempts::RunRecords;
pub(crate) use idle_once::IdleOnce;
pub(crate) use inbox_link::InboxLink;
pub(crate) use reply_channel::{ReplyChannel, reply_channel};
pub(crate) use supervisor::{Supervisor, TaskAttempt, TaskResult, TaskWorker};
pub(crate) use telegram::TelegramBot;
