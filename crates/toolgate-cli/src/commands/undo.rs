//! `toolgate undo`: undoes file changes.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::EventPayload;
use toolgate_journal::{StateDirectory, list_runs, read_events};

use super::applied_report::AppliedReport;
use super::call::CallArgs;
use super::{Invocation, runs};
use crate::exit::Exit;

/// The wording of an undo.
pub(super) const REPORT: AppliedReport = AppliedReport { done: "Undone:", left: "Not undone:", left_in: "refused" };

/// Undo the file changes of a call, a turn or a run.
///
/// Files that were changed again since are left alone and listed. The undo is a call like any other: it is recorded,
/// and can be undone. It prints each file with its added and removed lines; `--json` prints the reply.
///
/// Examples:
///   toolgate undo last
///   toolgate undo call_0195…
///   toolgate undo --run last
///   toolgate undo --run last --turn 3
///   toolgate undo --run last --agent agent_01a1…      `runs tree` names the agents
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct UndoArgs {
    /// The call, or `last` for the last one that changed a file; `toolgate changes` lists them.
    #[arg(required_unless_present = "run", conflicts_with = "run")]
    call: Option<String>,
    /// The run: its id, its beginning, or `last`.
    #[arg(long)]
    run: Option<String>,
    /// Only this turn of the run.
    #[arg(long, requires = "run")]
    turn: Option<u64>,
    /// Only this agent of the run; turns are counted per agent.
    #[arg(long, requires = "run")]
    agent: Option<String>,
}

impl UndoArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let run = self.run.map(|run| runs::find(&state, &run)).transpose()?;
        let call = match self.call.as_deref() {
            Some("last") => Some(last_that_changed(&state)?),
            _ => self.call,
        };
        let args =
            [("call", json!(call)), ("run", json!(run)), ("turn", json!(self.turn)), ("agent", json!(self.agent))];
        let args: serde_json::Map<String, Value> =
            args.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.into(), value)).collect();
        // The person who types this has approved it.
        let call = CallArgs::approved("undo", Value::Object(args).to_string());
        REPORT.print(&call.perform(invocation, Vec::new())?, invocation)
    }
}

/// The last call that changed a file, in any run.
fn last_that_changed(state: &StateDirectory) -> Result<String> {
    let mut last = None;
    for run in list_runs(state.path())? {
        // An unreadable line can't be undone, so it is skipped.
        for event in read_events(&state.run_dir(&run)?)?.filter_map(Result::ok).map(|recorded| recorded.event) {
            if let (EventPayload::FilesChanging { .. }, Some(call)) = (event.payload, event.tool_call_id)
                && last.as_ref().is_none_or(|(time, _)| *time <= event.time)
            {
                last = Some((event.time, call));
            }
        }
    }
    last.map(|(_, call)| call).context("Nothing was changed here as yet.")
}
