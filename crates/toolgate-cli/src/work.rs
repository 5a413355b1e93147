//! Working through the inbox (C-40): a supervisor takes one task at a time, a worker does it, and a commander brings the
//! answer back and the person's words in.

mod earlier_attempts;
mod json_client;
mod reply_channel;
mod supervisor;
mod telegram;
mod telegram_channel;

pub(crate) use earlier_attempts::RunRecords;
pub(crate) use reply_channel::{check_reply_to, reply_channel};
pub(crate) use supervisor::{Supervisor, TaskAttempt, TaskResult, TaskWorker};
pub(crate) use telegram::TelegramBot;
