//! `toolgate inbox`: the queue of tasks for workers.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use toolgate_contract::{Clock, SystemClock};
use toolgate_journal::{NewTask, ReplyAddress, Task, TaskState};

use super::Invocation;
use crate::exit::Exit;
use crate::output::{outln, write_list};
use crate::terminal::{BOLD, DIM, GREEN, RED, TextTable, YELLOW, first_line, paint, plain, to_the_minute};

/// The queue of tasks for workers.
///
/// `toolgate work` takes tasks one at a time and delivers the answers.
///
/// Examples:
///   toolgate inbox add "make the tests pass"
///   toolgate inbox add "tidy up" --reply-to http://127.0.0.1:9000/answers
///   toolgate inbox list
///   toolgate inbox show task_01a1
///   toolgate inbox cancel task_01a1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    verb: InboxVerb,
}

#[derive(Debug, Subcommand)]
enum InboxVerb {
    /// Add a task.
    Add {
        /// The task.
        task: String,
        /// Where the answer goes: terminal (the worker's), an http URL to POST it to, or telegram:CHAT.
        #[arg(long, default_value = "terminal", value_name = "WHERE")]
        reply_to: ReplyAddress,
    },
    /// List tasks, oldest first.
    List {
        /// Include tasks that are done or cancelled.
        #[arg(long)]
        all: bool,
        /// Maximum number of tasks.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a task and its answer.
    Show {
        /// The task's id.
        id: String,
    },
    /// Cancel a task. A running task is stopped.
    Cancel {
        /// The task's id.
        id: String,
    },
}

impl InboxArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let inbox = invocation.location.stores()?.inbox()?;
        let find = |id: &str| {
            inbox.task(id)?.with_context(|| format!("There is no task `{id}`. `toolgate inbox list --all` shows them."))
        };
        match self.verb {
            InboxVerb::Add { task, reply_to } => {
                anyhow::ensure!(!task.trim().is_empty(), "The task is empty. Say what should be done.");
                let id = format!("task_{}", SystemClock.id().simple());
                inbox.add(&NewTask { id: id.clone(), task, reply_to })?;
                print(&find(&id)?, invocation.json)?;
            }
            InboxVerb::List { all, limit } => list(&inbox.tasks(all, limit)?, invocation.json)?,
            InboxVerb::Show { id } => print(&find(&id)?, invocation.json)?,
            InboxVerb::Cancel { id } => {
                find(&id)?;
                let is_cancelled = inbox.cancel(&id)?;
                anyhow::ensure!(is_cancelled, "The task `{id}` has ended already.");
                print(&find(&id)?, invocation.json)?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn list(tasks: &[Task], as_json: bool) -> Result<()> {
    if as_json {
        write_list(tasks)?;
        return Ok(());
    }
    let mut table = TextTable::new(&["TASK", "STATE", "TRIES", "ADDED", "WHAT"]);
    for task in tasks {
        let (state, style) = state_word(task);
        table.row([
            (task.id.clone(), BOLD),
            (state, style),
            (task.attempts.to_string(), anstyle::Style::new()),
            (to_the_minute(task.created), DIM),
            (first_line(&task.task), anstyle::Style::new()),
        ]);
    }
    table.print();
    Ok(())
}

fn state_word(task: &Task) -> (String, anstyle::Style) {
    match (task.state, task.outcome.as_deref()) {
        (TaskState::Waiting, _) => ("waiting".into(), YELLOW),
        (TaskState::Working, _) if task.is_unwanted => ("stopping".into(), YELLOW),
        (TaskState::Working, _) => ("working".into(), YELLOW),
        (TaskState::Answered, outcome) => (format!("{}, not delivered", outcome.unwrap_or("answered")), YELLOW),
        (TaskState::Done, Some("answered") | None) => ("answered".into(), GREEN),
        (TaskState::Done, Some(outcome)) => (outcome.to_owned(), RED),
        (TaskState::Cancelled, _) => ("cancelled".into(), DIM),
    }
}

fn print(task: &Task, as_json: bool) -> Result<()> {
    if as_json {
        outln!("{}", serde_json::to_string(task)?);
        return Ok(());
    }
    let (state, style) = state_word(task);
    outln!("{} {}", paint(BOLD, &task.id), paint(style, state));
    outln!("{}", plain(&task.task));
    for run in &task.runs {
        outln!("{}", paint(DIM, format!("worked on in {run}")));
    }
    if let Some(answer) = &task.answer {
        outln!("\n{}", plain(answer));
    }
    Ok(())
}
