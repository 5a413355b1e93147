//! What is known of one call, for its record and its reply: every step adds to it, and every ending needs it. Its
//! arguments, effects and errors are redacted here.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_contract::{
    ApprovalScope, Call, CancellationToken, Effect, Event, EventOrigin, EventPayload, Finding, LocatedEffect,
    ToolError, Verdict,
};

use super::Gate;
use super::hands::Tally;
use super::refusals::unrecorded;
use crate::registry::RegisteredTool;
use crate::session::Session;
use crate::step_timings::StepTimings;
use crate::trim::TrimLimits;

/// What is known of a call so far.
pub(super) struct CallRecord<'a> {
    pub(super) gate: &'a Gate,
    pub(super) session: &'a Session,
    pub(super) call: Call,
    /// The caller's token: cancels the call in whichever step it is.
    pub(super) cancel: CancellationToken,
    /// The tool's own token: cancelled when the call ends, so that no work of the tool itself continues.
    pub(super) stop: CancellationToken,
    pub(super) origin: Arc<EventOrigin>,
    pub(super) timings: StepTimings,
    pub(super) tool: Option<Arc<RegisteredTool>>,
    /// The redacted arguments.
    pub(super) shown_args: Value,
    pub(super) redacted: bool,
    pub(super) effects: Arc<[LocatedEffect]>,
    /// The rights that it gets beyond what its tool states: requested with the call, or found missing.
    pub(super) wider: Vec<Effect>,
    pub(super) verdict: Option<Verdict>,
    pub(super) approval: Option<ApprovalScope>,
    /// Whether `tool_call.started` is in the journal.
    pub(super) is_started: bool,
    pub(super) tally: Tally,
}

impl<'a> CallRecord<'a> {
    /// A record that knows only the call itself.
    pub(super) fn new(gate: &'a Gate, session: &'a Session, call: Call, cancel: CancellationToken) -> Box<Self> {
        let timings = StepTimings::begin();
        let mut shown_args = call.args.clone();
        let redacted = gate.parts.redactor.json(&mut shown_args);
        let origin = Arc::new(EventOrigin {
            run: session.run.clone(),
            turn: session.turn,
            trace_id: call.trace_id.clone(),
            tool_call_id: call.tool_call_id.clone(),
        });
        Box::new(Self {
            gate,
            session,
            call,
            stop: cancel.child_token(),
            cancel,
            origin,
            timings,
            tool: None,
            shown_args,
            redacted,
            effects: Arc::default(),
            wider: Vec::new(),
            verdict: None,
            approval: None,
            is_started: false,
            tally: Tally::default(),
        })
    }

    /// Everything that the call may touch: what its tool states, and the rights beyond that.
    pub(super) fn granted(&self) -> Arc<[LocatedEffect]> {
        match self.wider.as_slice() {
            [] => Arc::clone(&self.effects),
            wider => self.effects.iter().cloned().chain(wider.iter().cloned().map(LocatedEffect::nowhere)).collect(),
        }
    }

    /// The command that it runs, if it runs one.
    pub(super) fn command(&self) -> Option<&str> {
        self.effects.iter().find_map(|located| match &located.effect {
            Effect::Run { command, .. } => Some(command.as_str()),
            _ => None,
        })
    }

    /// The limits of its output and its time.
    pub(super) fn limits(&self) -> (TrimLimits, Duration) {
        self.gate.limits(&self.call.name, self.tool.as_deref().and_then(RegisteredTool::longest))
    }

    /// The event that a call begins with.
    pub(super) fn started(&self) -> EventPayload {
        let declaration = self.tool.as_deref().map(RegisteredTool::declaration);
        EventPayload::CallStarted {
            tool: self.call.name.clone(),
            version: declaration.map(|tool| tool.version.to_string()),
            args: self.shown_args.clone(),
            effects: self.granted().iter().map(|located| self.clean_effect(&located.effect)).collect(),
            verdict: self.verdict.as_ref().map(|verdict| self.clean_verdict(verdict)),
            approval: self.approval,
            risk: declaration.map(|tool| tool.risk),
            justification: self.call.justification.as_ref().map(|words| self.clean(words)),
            hooked: self.call.hooked.clone(),
        }
    }

    /// Writes an event of this call to the journal.
    pub(super) fn write(&self, payload: EventPayload) -> Result<(), ToolError> {
        self.session.record(&[self.event(payload)]).map_err(|fault| unrecorded(fault, false))
    }

    pub(super) fn event(&self, payload: EventPayload) -> Event {
        self.origin.event(self.gate.parts.clock.now(), payload)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        self.gate.parts.redactor.text(text).into_owned()
    }

    /// A redacted effect: a command line may hold a secret, and so may a path and what is written to a process.
    pub(super) fn clean_effect(&self, effect: &Effect) -> Effect {
        let mut effect = effect.clone();
        if let Effect::Run { command: text, .. }
        | Effect::Unsandboxed { command: text }
        | Effect::Feed { text, .. }
        | Effect::Read { path: text }
        | Effect::Write { path: text }
        | Effect::Delete { path: text }
        | Effect::Entry { path: text, .. }
        | Effect::Restore { path: text, .. } = &mut effect
        {
            *text = self.clean(text);
        }
        effect
    }

    /// Redacts the paths of what the call changed: a command may name a file after a secret.
    pub(super) fn clean_changed_paths(&mut self) {
        let redactor = &self.gate.parts.redactor;
        let folded = self.tally.folded.iter_mut().map(|directory| &mut directory.path);
        for path in self.tally.files_changed.iter_mut().chain(folded) {
            if let Cow::Owned(clean) = redactor.text(path) {
                *path = clean;
                self.redacted = true;
            }
        }
    }

    pub(super) fn clean_verdict(&self, verdict: &Verdict) -> Verdict {
        let clean = |finding: &Finding| Finding {
            effect: finding.effect.as_ref().map(|effect| self.clean_effect(effect)),
            ..finding.clone()
        };
        Verdict {
            decided_by: clean(&verdict.decided_by),
            asks: verdict.asks.iter().map(clean).collect(),
            lost: verdict.lost.iter().map(clean).collect(),
            ..verdict.clone()
        }
    }

    pub(super) fn clean_error(&mut self, mut error: ToolError) -> ToolError {
        let message = self.clean(&error.message);
        self.redacted |= message != error.message;
        error.message = message;
        if let Some(details) = error.details.as_mut() {
            self.redacted |= self.gate.parts.redactor.json(details);
        }
        error
    }
}
