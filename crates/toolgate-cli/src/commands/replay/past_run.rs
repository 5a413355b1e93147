//! A recorded run as its calls, each with what it was given, who answered for it, and how it ended.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;
use toolgate_contract::{Event, EventPayload, RunFacts};
use toolgate_journal::{StateDirectory, read_events};

use super::compare::comparable_answer;

/// What a secret was replaced by; such arguments can't be had again.
const REDACTED: &str = "***REDACTED***";

/// A recorded run.
pub(super) struct PastRun {
    pub(super) run: String,
    pub(super) facts: RunFacts,
    pub(super) started: Timestamp,
    /// The calls, in the order in which they were taken up.
    pub(super) calls: Vec<PastCall>,
}

/// A recorded call.
#[derive(Default)]
pub(super) struct PastCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) args: Value,
    /// What a person said when they were asked; none when nobody was.
    pub(super) approved: Option<bool>,
    /// How it ended, made comparable; null when it never did.
    pub(super) answer: Value,
    /// What it changed: each path with the hash of what came instead.
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
        let (facts, started) = begun.context("The run has no beginning, so it isn't known what it was about.")?;
        // What was only ever asked about, and never taken up, is no call.
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
            EventPayload::FilesChanging { changes } => self
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

    /// Why it makes no sense to repeat it.
    pub(super) fn skip_reason(&self) -> Option<&'static str> {
        match self.tool.as_str() {
            _ if self.answer.is_null() => Some("it never ended"),
            _ if self.args.to_string().contains(REDACTED) => Some("its arguments held a secret"),
            "ask" => Some("only the person could answer it again"),
            "commit" | "release" => Some("what it put in place is kept no longer"),
            "memory" | "task" | "agents" => Some("it depends on more than the workspace"),
            _ => None,
        }
    }
}
