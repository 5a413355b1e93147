//! One call on its way through the gate: what is known of it so far, and the steps that add to it.

mod ask;
mod refusals;
mod wider;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_contract::{
    ApprovalScope, Call, CallEnding, CancellationToken, Declaration, Effect, EgressPolicy, ErrorCode, Event,
    EventPayload, Finding, Hands, LocatedEffect, OmittedText, ProcessLauncher, Reply, ReplyArtifacts, Tally, ToolError,
    ToolServices, Truncated, Verdict,
};
use toolgate_policy::{OverlayMode, PolicyRequest};

use self::refusals::{only_declared, unrecorded};
use super::Gate;
use super::agent_notes::RedactedNotes;
use super::call_processes::CallProcesses;
use super::change_applier::ChangeApplier;
use super::cleared::{Cleared, RecordProof};
use super::egress::CallEgress;
use super::event_writer::EventWriter;
use super::person_channel::{EventOrigin, PersonChannel};
use super::settle::ChangeSettler;
use super::settling_launcher::SettlingLauncher;
use crate::session::Session;
use crate::skills::SkillLoader;
use crate::step_timings::StepTimings;
use crate::trim;

/// How much of each end of a long stream is at hand, however little of it may be shown.
const LEAST_SHOWN: usize = 64 * 1024;

/// A call and what the steps so far have found out about it.
pub(super) struct CallWalk<'a> {
    gate: &'a Gate,
    session: &'a Session,
    call: Call,
    /// The caller's: stops the call wherever it is.
    cancel: CancellationToken,
    /// The tool's own: ends with the call, so that nothing it left running goes on.
    stop: CancellationToken,
    origin: Arc<EventOrigin>,
    steps: StepTimings,
    tool: Option<&'a Declaration>,
    /// How long the tool itself says that a call may take.
    longest: Option<Duration>,
    /// The arguments as they may be seen.
    shown_args: Value,
    redacted: bool,
    effects: Arc<[LocatedEffect]>,
    /// What it is to get beyond what its tool states: asked for up front, or found missing.
    wider: Vec<Effect>,
    verdict: Option<Verdict>,
    approval: Option<ApprovalScope>,
    is_started: bool,
    tally: Tally,
}

impl<'a> CallWalk<'a> {
    pub(super) fn begin(gate: &'a Gate, session: &'a Session, call: Call, cancel: CancellationToken) -> Self {
        let steps = StepTimings::begin();
        let mut shown_args = call.args.clone();
        let redacted = gate.redactor.json(&mut shown_args);
        let origin = Arc::new(EventOrigin {
            run: session.run.clone(),
            turn: session.turn,
            trace_id: call.trace_id.clone(),
            tool_call_id: call.tool_call_id.clone(),
        });
        Self {
            gate,
            session,
            call,
            stop: cancel.child_token(),
            cancel,
            origin,
            steps,
            tool: None,
            longest: None,
            shown_args,
            redacted,
            effects: Arc::default(),
            wider: Vec::new(),
            verdict: None,
            approval: None,
            is_started: false,
            tally: Tally::default(),
        }
    }

    /// The path; and where confinement stopped the call, the same path once more with what was missing.
    pub(super) async fn go(&mut self) -> Result<Value, ToolError> {
        let first = self.attempt().await;
        match self.missing(&first) {
            missing if missing.is_empty() => first,
            missing => self.try_again(missing, first).await,
        }
    }

    /// Find, validate, effects, judge, approve, record, lock, run.
    async fn attempt(&mut self) -> Result<Value, ToolError> {
        let tool = self.gate.registry.find(&self.call.name)?;
        self.tool = Some(tool.declaration());
        self.longest = tool.longest();
        self.steps.done("find");
        let prepared = tool.prepare(&self.call)?;
        self.steps.done("validate");
        self.effects = self.gate.locate(only_declared(prepared.effects(), tool.declaration())?)?.into();
        self.wider = self.requested_effects()?;
        self.steps.done("effects");
        self.verdict = Some(self.judge(tool.declaration()));
        self.steps.done("judge");
        let approved = self.approve(prepared.as_ref()).await?;
        self.steps.done("approve");
        let recorded = self.record_start()?;
        self.steps.done("record start");
        let cleared = Cleared::new(prepared, self.hands(self.granted()), approved, recorded);
        self.act(cleared, tool.declaration().parallel).await
    }

    fn judge(&self, tool: &Declaration) -> Verdict {
        let (ceilings, bounds) = (self.session.ceilings(), self.session.bounds());
        let effects = self.gate.as_judged(&self.effects);
        let question = PolicyRequest { tool, effects: &effects, ceilings: &ceilings, bounds: bounds.as_deref() };
        self.gate.policy.judge_wider(&question, &self.wider)
    }

    fn record_start(&mut self) -> Result<RecordProof, ToolError> {
        self.record(self.started())?;
        self.is_started = true;
        Ok(RecordProof(()))
    }

    /// Waits for its turn and runs, within its time, until somebody stops it.
    async fn act(&mut self, cleared: Cleared, parallel: bool) -> Result<Value, ToolError> {
        let _stop_the_tool_when_this_ends = self.stop.clone().drop_guard();
        let (_, most) = self.gate.limits(&self.call.name, self.longest);
        let lock = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ToolError::cancelled()),
            lock = self.gate.locks.acquire(&self.effects, parallel) => lock,
        };
        self.steps.done("lock");
        let ended = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ToolError::cancelled()),
            ended = tokio::time::timeout(most, cleared.run()) => ended,
        };
        drop(lock);
        self.steps.done("run");
        let Ok((outcome, hands)) = ended else {
            return Err(ToolError::new(
                ErrorCode::Timeout,
                format!("`{}` was stopped after {most:?}.", self.call.name),
            ));
        };
        self.tally = hands.tally();
        outcome
    }

    /// The way back: redact, trim, record, answer.
    pub(super) fn answer(mut self, outcome: Result<Value, ToolError>) -> (Reply, StepTimings) {
        let mut truncated = None;
        let outcome = outcome.and_then(|mut payload| {
            self.redacted |= self.tally.redacted | self.gate.redactor.json(&mut payload);
            self.steps.done("redact");
            truncated = self.trim(&mut payload)?;
            self.steps.done("trim");
            Ok(payload)
        });
        let outcome = outcome.map_err(|error| self.clean_error(error));
        let outcome = self.record_end(outcome, truncated.clone());
        self.steps.done("record end");
        let (payload, error) = match outcome {
            Ok(payload) => (Some(payload), None),
            Err(error) => (None, Some(error)),
        };
        let reply = Reply {
            tool_call_id: self.call.tool_call_id,
            ok: error.is_none(),
            payload,
            error,
            artifacts: ReplyArtifacts {
                files_changed: self.tally.files_changed,
                commands_run: self.tally.commands_run,
                refs: self.tally.refs,
            },
            enforced: self.tally.enforced,
            truncated,
            redacted: self.redacted,
            duration_ms: self.steps.total().as_millis() as u64,
        };
        (reply, self.steps)
    }

    fn trim(&mut self, payload: &mut Value) -> Result<Option<Truncated>, ToolError> {
        let (limits, _) = self.gate.limits(&self.call.name, self.longest);
        let known = std::mem::take(&mut self.tally.stored);
        let artifacts = Arc::clone(&self.session.artifacts);
        let mut store = |text: &str, field: &str| {
            if let Some((_, missing)) = known.iter().find(|(pointer, _)| pointer == field) {
                return Ok(missing.clone());
            }
            // A payload that was stored as a whole is JSON; a field of it is text.
            let mime = if field.is_empty() { "application/json" } else { "text/plain; charset=utf-8" };
            let stored = artifacts.store(text.as_bytes(), mime)?;
            Ok(OmittedText { lines: 0, bytes: 0, artifact: stored })
        };
        let cut = trim::trim_payload(payload, &limits, &mut store)?;
        let cursor = self.tally.next_cursor.take();
        let mut truncated = cut.map(|cut| {
            self.tally.refs.extend(cut.refs);
            cut.truncated
        });
        if let Some(cursor) = cursor {
            truncated.get_or_insert_default().next_cursor = Some(cursor);
        }
        Ok(truncated)
    }

    /// Writes how it ended. A refused call gets its `started` here too, so that every call leaves a pair.
    fn record_end(&self, outcome: Result<Value, ToolError>, truncated: Option<Truncated>) -> Result<Value, ToolError> {
        let (payload, error) = match outcome {
            Ok(payload) => (Some(payload), None),
            Err(error) => (None, Some(error)),
        };
        let ending = CallEnding {
            duration_ms: self.steps.total().as_millis() as u64,
            payload,
            exit_code: self.tally.exit_code,
            files_changed: self.tally.files_changed.clone(),
            commands_run: self.tally.commands_run.clone(),
            refs: self.tally.refs.clone(),
            denials: self.tally.denials.clone(),
            enforced: self.tally.enforced.clone(),
            truncated,
            redacted: self.redacted,
        };
        let ended = match error {
            None => EventPayload::CallCompleted(ending),
            Some(error) => EventPayload::CallFailed { class: error.code.class(), error, ending },
        };
        let started = (!self.is_started).then(|| self.started());
        let events: Vec<Event> = started.into_iter().chain([ended]).map(|payload| self.event(payload)).collect();
        self.session.record(&events).map_err(|fault| unrecorded(fault, self.is_started))?;
        // The record lends the outcome, which may be large; it isn't copied.
        match events.into_iter().next_back().map(|event| event.payload) {
            Some(EventPayload::CallFailed { error, .. }) => Err(error),
            Some(EventPayload::CallCompleted(ending)) => Ok(ending.payload.unwrap_or_default()),
            _ => Err(ToolError::internal("A call's end was lost on its way to the record.")),
        }
    }

    fn started(&self) -> EventPayload {
        EventPayload::CallStarted {
            tool: self.call.name.clone(),
            version: self.tool.map(|tool| tool.version.to_string()),
            args: self.shown_args.clone(),
            effects: self.clean_effects(),
            verdict: self.verdict.as_ref().map(|verdict| self.clean_verdict(verdict)),
            approval: self.approval,
            risk: self.tool.map(|tool| tool.risk),
            justification: self.call.justification.as_ref().map(|words| self.clean(words)),
        }
    }

    fn record(&self, payload: EventPayload) -> Result<(), ToolError> {
        self.session.record(&[self.event(payload)]).map_err(|fault| unrecorded(fault, false))
    }

    fn event(&self, payload: EventPayload) -> Event {
        self.origin.event(self.gate.clock.now(), payload)
    }

    fn hands(&self, granted: Arc<[LocatedEffect]>) -> Hands {
        let (gate, session) = (self.gate, self.session);
        let speaker = PersonChannel {
            recorder: Arc::clone(&session.recorder),
            sink: Arc::clone(&session.sink),
            answerer: session.question_answerer(),
            redactor: Arc::clone(&gate.redactor),
            clock: Arc::clone(&gate.clock),
            origin: Arc::clone(&self.origin),
        };
        let changer = ChangeApplier {
            change_log: gate.change_log.clone(),
            files: Arc::clone(&gate.files),
            hidden_paths: Arc::clone(&gate.hidden_paths),
            recorder: Arc::clone(&session.recorder),
            versions: Arc::clone(&gate.versions),
            clock: Arc::clone(&gate.clock),
            origin: Arc::clone(&self.origin),
            session: session.id.clone(),
        };
        let changer = Arc::new(changer);
        let settler = Arc::new(ChangeSettler {
            changer: Arc::clone(&changer),
            overlay: gate.settings.overlay == OverlayMode::On,
            selector: Arc::clone(&gate.selector),
            roots: gate.changeable_roots(),
            differ: gate.differ.clone(),
        });
        let commands = |processes: &Arc<dyn ProcessLauncher>| -> Arc<dyn ProcessLauncher> {
            Arc::new(SettlingLauncher { processes: Arc::clone(processes), settler })
        };
        let means = ToolServices {
            files: Arc::clone(&gate.files),
            changes: changer,
            artifacts: Arc::clone(&session.artifacts),
            person: Arc::new(speaker),
            notes: Arc::new(self.writer()),
            skills: Arc::new(self.librarian()),
            hidden_paths: Arc::clone(&gate.hidden_paths),
            scanner: Arc::clone(&gate.scanner),
            processes: Arc::new(self.runner(gate.processes.as_ref().map(commands))),
            web: gate.web.clone(),
            egress: self.egress(),
            agents: session.agents.clone(),
            waits: session.waits,
            tool_call_id: self.call.tool_call_id.clone(),
            cancel: self.stop.clone(),
        };
        Hands::new(granted, means)
    }

    /// All that the call may touch: what its tool states, and what it gets beyond that.
    fn granted(&self) -> Arc<[LocatedEffect]> {
        match self.wider.as_slice() {
            [] => Arc::clone(&self.effects),
            wider => self.effects.iter().cloned().chain(wider.iter().cloned().map(LocatedEffect::nowhere)).collect(),
        }
    }

    /// Where this call may go; nowhere, if it neither runs nor connects.
    fn egress(&self) -> Option<Arc<dyn EgressPolicy>> {
        let goes_out = |located: &LocatedEffect| matches!(located.effect, Effect::Run { .. } | Effect::Connect { .. });
        let named = self.effects.iter().any(goes_out).then(|| self.gate.policy.hosts_named(&self.granted()))?;
        Some(Arc::new(CallEgress::new(Arc::clone(&self.gate.policy), named)))
    }

    fn runner(&self, processes: Option<Arc<dyn ProcessLauncher>>) -> CallProcesses {
        let (gate, session) = (self.gate, self.session);
        let (limits, _) = gate.limits(&self.call.name, self.longest);
        CallProcesses {
            processes,
            registry: Arc::clone(&session.processes),
            registries: Arc::clone(&gate.registries),
            limits: gate.settings.processes,
            shown: limits.bytes.max(LEAST_SHOWN),
            files: Arc::clone(&gate.files),
            redactor: Arc::clone(&gate.redactor),
            artifacts: Arc::clone(&session.artifacts),
            clock: Arc::clone(&gate.clock),
            event_writer: EventWriter {
                recorder: Arc::clone(&session.recorder),
                sink: Arc::clone(&session.sink),
                clock: Arc::clone(&gate.clock),
                origin: Arc::clone(&self.origin),
            },
            session: session.id.clone(),
        }
    }

    fn writer(&self) -> RedactedNotes {
        let (gate, session) = (self.gate, self.session);
        RedactedNotes {
            store: gate.note_store.clone(),
            redactor: Arc::clone(&gate.redactor),
            session: session.id.clone(),
        }
    }

    fn librarian(&self) -> SkillLoader {
        SkillLoader {
            skill_directories: Arc::clone(&self.gate.skill_directories),
            hidden_paths: Arc::clone(&self.gate.hidden_paths),
            settings: Arc::clone(&self.gate.settings),
            active: Arc::clone(&self.session.skills),
            change_log: self.gate.change_log.clone(),
            run: self.session.run.clone(),
        }
    }

    fn declared(&self) -> &'a Declaration {
        self.tool.expect("a tool is found before anything is asked about it")
    }

    fn clean(&self, text: &str) -> String {
        self.gate.redactor.text(text).into_owned()
    }

    /// The effects as they may be seen: a command line may hold a secret, and so may what is written into a process.
    fn clean_effects(&self) -> Vec<Effect> {
        self.granted().iter().map(|located| self.clean_effect(&located.effect)).collect()
    }

    fn clean_effect(&self, effect: &Effect) -> Effect {
        match effect {
            Effect::Run { command, workdir } => Effect::Run { command: self.clean(command), workdir: workdir.clone() },
            Effect::Unsandboxed { command } => Effect::Unsandboxed { command: self.clean(command) },
            Effect::Feed { process, text } => Effect::Feed { process: process.clone(), text: self.clean(text) },
            other => other.clone(),
        }
    }

    fn clean_verdict(&self, verdict: &Verdict) -> Verdict {
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

    fn clean_error(&mut self, mut error: ToolError) -> ToolError {
        let message = self.clean(&error.message);
        self.redacted |= message != error.message;
        error.message = message;
        if let Some(details) = error.details.as_mut() {
            self.redacted |= self.gate.redactor.json(details);
        }
        error
    }
}
