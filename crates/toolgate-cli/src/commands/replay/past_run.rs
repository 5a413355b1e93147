//! A recorded run as its calls, each with its arguments, approval and result.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;
use toolgate_contract::{Event, EventPayload, RunFacts};
use toolgate_journal::{StateDirectory, read_events};

use super::compare::comparable_answer;

/// The replacement for a secret; arguments that contain it can't be repeated.
const REDACTED: &str = "***REDACTED***";

/// A recorded run.
pub(super) struct PastRun {
    pub(super) run: String,
    pub(super) facts: RunFacts,
    pub(super) started: Timestamp,
    /// The calls, in the order in which they started.
    pub(super) calls: Vec<PastCall>,
}

/// A recorded call.
#[derive(Default)]
pub(super) struct PastCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) args: Value,
    /// The person's answer to the approval; `None` when none was requested.
    pub(super) approved: Option<bool>,
    /// The reply, in comparable form; null when the call never ended.
    pub(super) answer: Value,
    /// What it changed: each path with the hash of the new content.
    changed: BTreeMap<String, Option<String>>,
}

impl PastRun {
    pub(super) fn read(state: &StateDirectory, run: &str) -> Result<Self> {
        let (mut begun, mut calls, mut places) = (None, Vec::<PastCall>::new(), HashMap::new());
        for recorded in read_events(&state.run_dir(run)?)? {
            let event = recorded?.event;
            if let EventPayload::RunStarted(facts) = event.payload {
                begun = Some((facts, event.time));
                continue;
            }
            let Some(id) = event.tool_call_id.clone() else { continue };
            let at = *places.entry(id.clone()).or_insert_with(|| {
                calls.push(PastCall { id, ..PastCall::default() });
                calls.len() - 1
            });
            calls[at].take(event);
        }
        let (facts, started) = begun.context("The run's journal has no start event, so it can't be replayed.")?;
        // A call that was only judged and never started is left out.
        calls.retain(|call| !call.tool.is_empty());
        Ok(Self { run: run.to_owned(), facts, started, calls })
    }
}

impl PastCall {
    fn take(&mut self, event: Event) {
        match event.payload {
            EventPayload::CallStarted { tool, args, approval, .. } => {
                (self.tool, self.args) = (tool, args);
                self.approved = self.approved.or(approval.map(|_| true));
            }
            EventPayload::ApprovalGranted { .. } => self.approved = Some(true),
            EventPayload::ApprovalDenied { .. } => self.approved = Some(false),
            EventPayload::FilesChanging { changes, .. } => self
                .changed
                .extend(changes.into_iter().map(|change| (change.path, change.after.map(|after| after.sha256)))),
            EventPayload::CallCompleted(ending) => {
                self.answer = comparable_answer(ending.payload.as_ref(), None, &self.changed)
            }
            EventPayload::CallFailed { error, .. } => {
                self.answer = comparable_answer(None, Some(&error), &self.changed)
            }
            _ => {}
        }
    }

    /// Why the call can't be repeated.
    pub(super) fn skip_reason(&self) -> Option<&'static str> {
        match self.tool.as_str() {
            _ if self.answer.is_null() => Some("it never ended"),
            _ if self.args.to_string().contains(REDACTED) => Some("its arguments contained a secret"),
            "ask" => Some("only a person can answer it"),
            "commit" | "release" => Some("the content it applied is no longer stored"),
            "memory" | "task" | "agents" => Some("it depends on more than the workspace"),
            _ => None,
        }
    }
}
