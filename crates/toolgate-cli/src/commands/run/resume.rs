//! Continues an earlier run: finds it, and rebuilds its conversation from the record.

use anyhow::{Context, Result};
use toolgate_agent::PastConversation;
use toolgate_contract::{Event, EventPayload, TokenUsage};
use toolgate_journal::{Run, list_runs, read_events};
use toolgate_workspace::Workspace;

use crate::commands::runs;

/// What the model is told when a run goes on without a new message.
pub(crate) const GO_ON: &str = "Go on where you stopped.";

/// The run to continue; none for a new one.
pub(crate) fn find(workspace: &Workspace, continues: bool, resume: Option<&str>) -> Result<Option<String>> {
    let state = &workspace.state;
    if let Some(wanted) = resume {
        return runs::find(state, wanted).map(Some);
    }
    if !continues {
        return Ok(None);
    }
    for run in list_runs(state.path())?.into_iter().rev() {
        let mut events = read_events(&state.run_dir(&run)?)?;
        // A run that can't be read isn't the one that the person means; `--resume` says what is wrong with it.
        let Some(Ok(first)) = events.next() else { continue };
        let EventPayload::RunStarted(facts) = first.event.payload else { continue };
        if matches!(facts.front_end.as_str(), "agent" | "chat") {
            return Ok(Some(run));
        }
    }
    anyhow::bail!("No agent has worked here yet, so there is nothing to continue. Give a task.")
}

/// What is on record of a run so far.
pub(crate) fn events(workspace: &Workspace, run: &Run) -> Result<Vec<Event>> {
    let events = read_events(&workspace.state.run_dir(&run.id)?)?;
    events.map(|recorded| Ok(recorded?.event)).collect()
}

/// The conversation of a run, and the tokens that all its agents have used. The run is open, so its journal was verified
/// and recovered.
pub(crate) fn read(workspace: &Workspace, run: &Run) -> Result<(PastConversation, TokenUsage)> {
    let events = events(workspace, run)?;
    let mut used = TokenUsage::default();
    for event in &events {
        if let EventPayload::TurnEnded { tokens, .. } = event.payload {
            used += tokens;
        }
    }
    let past = PastConversation::rebuild(events, run.artifacts.as_ref(), workspace.gate.redactor())
        .with_context(|| format!("The run {} can't be continued", run.id))?;
    Ok((past, used))
}
