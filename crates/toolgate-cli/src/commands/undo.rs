//! `toolgate undo`: undoes file changes.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_changes::UndoHistory;
use toolgate_contract::Event;
use toolgate_journal::{StateDirectory, list_runs, read_events};

use super::applied_report::AppliedReport;
use super::call::CallArgs;
use super::{Invocation, runs};
use crate::exit::Exit;
use crate::output::errln;
use crate::terminal::{DIM, paint};
use crate::workspace::{open_workspace, typed_program};

/// The wording of an undo.
pub(super) const REPORT: AppliedReport = AppliedReport { done: "Undone:", left: "Not undone:", left_in: "refused" };

/// Undo the file changes of a call, a turn or a run.
///
/// Files that were changed again since are left alone and listed. The undo is a call like any other: it is recorded,
/// and can be undone by its own name, which it prints. `last` is the last change that isn't undone yet, so typed again
/// it steps back once more. It prints each file with its added and removed lines; `--json` prints the reply.
///
/// Examples:
///   toolgate undo last
///   toolgate undo call_0195…
///   toolgate undo --run last
///   toolgate undo --turn 3                            of the last run that has turns
///   toolgate undo --run run_01a1 --turn 3
///   toolgate undo --run last --agent agent_01a1…      `runs tree` names the agents
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct UndoArgs {
    /// The call, or `last` for the last change that isn't undone yet; `toolgate changes` lists them.
    #[arg(required_unless_present_any = ["run", "turn", "agent"], conflicts_with_all = ["run", "turn", "agent"])]
    call: Option<String>,
    /// The run: its id, its beginning, or `last`.
    #[arg(long)]
    run: Option<String>,
    /// Only this turn of the run, or of the last run that has turns.
    #[arg(long)]
    turn: Option<u64>,
    /// Only this agent of the run, or of the run that it worked in; turns are counted per agent.
    #[arg(long)]
    agent: Option<String>,
}

impl UndoArgs {
    /// The last change that isn't undone yet.
    pub(crate) fn last() -> Self {
        Self { call: Some("last".into()), run: None, turn: None, agent: None }
    }

    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let mut before = None;
        let call = match self.call.as_deref() {
            Some("last") => {
                // What a client has changed and never reported is recorded when the workspace is opened.
                drop(open_workspace(&invocation.location)?);
                let mut left = in_effect(&state)?.into_iter();
                let last =
                    left.next().context("Nothing is left to undo: no change is here that isn't undone already.")?;
                before = left.next();
                Some(last)
            }
            _ => self.call.clone(),
        };
        let run = self.run_in(&state)?;
        let args =
            [("call", json!(call)), ("run", json!(run)), ("turn", json!(self.turn)), ("agent", json!(self.agent))];
        let args: serde_json::Map<String, Value> =
            args.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.into(), value)).collect();
        // The person who types this has approved it.
        let performed = CallArgs::approved("undo", Value::Object(args).to_string()).perform(invocation, Vec::new())?;
        let exit = REPORT.print(&performed, invocation)?;
        if let (false, false, Some(before)) = (performed.reply.ok, invocation.json, before) {
            let program = typed_program(&invocation.location);
            errln!("{}", paint(DIM, format!("`{program} undo {before}` undoes the change before it.")));
        }
        Ok(exit)
    }

    /// The run that is meant; none where a call is.
    fn run_in(&self, state: &StateDirectory) -> Result<Option<String>> {
        match (&self.run, &self.agent, self.turn) {
            (Some(run), ..) => runs::find(state, run).map(Some),
            (None, Some(agent), _) => last_run_with(state, |event| event.trace_id.as_ref() == Some(agent))?
                .with_context(|| {
                    format!("No run here has an agent `{agent}`. `toolgate runs tree` names the agents of a run.")
                })
                .map(Some),
            (None, None, Some(_)) => last_run_with(state, |event| event.turn.is_some())?
                .context("No run here has turns: only those of agents do. Name a call, or a run with `--run`.")
                .map(Some),
            (None, None, None) => Ok(None),
        }
    }
}

/// The calls whose changes aren't undone, the last one first, over all runs.
fn in_effect(state: &StateDirectory) -> Result<Vec<String>> {
    let mut history = UndoHistory::default();
    for run in list_runs(state.path())? {
        // An unreadable line can't be undone, so it is skipped.
        for recorded in read_events(&state.run_dir(&run)?)?.filter_map(Result::ok) {
            history.add(&recorded.event);
        }
    }
    Ok(history.in_effect())
}

/// The last run with such an event.
fn last_run_with(state: &StateDirectory, is_wanted: impl Fn(&Event) -> bool) -> Result<Option<String>> {
    for run in list_runs(state.path())?.into_iter().rev() {
        if read_events(&state.run_dir(&run)?)?.filter_map(Result::ok).any(|recorded| is_wanted(&recorded.event)) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
