//! The outcome of a call. Retry: if the sandbox denied something, the same steps with the missing rights. Finish: redact, trim,
//! record, reply.

use serde_json::{Value, json};
use toolgate_config::Preset;
use toolgate_contract::{
    CallEnding, CodeDiagnostic, Decision, DeniedAccess, Effect, ErrorCode, Event, EventPayload, Guarantee,
    GuaranteeLevel, OmittedText, Reply, ReplyArtifacts, Right, ToolError, Truncated,
};

use toolgate_policy::PolicyRequest;

use super::first_attempt::with_first_changes;
use super::{Request, Stopped, attempt};
use crate::gate::call_record::CallRecord;
use crate::gate::refusals::unrecorded;
use crate::step_timings::StepTimings;
use crate::trim;

/// A call that ran, or was refused; with what its hands did.
pub(super) struct Outcome<'a> {
    pub(super) record: Box<CallRecord<'a>>,
    pub(super) result: Result<Value, ToolError>,
}

impl<'a> From<Stopped<'a>> for Outcome<'a> {
    fn from(stopped: Stopped<'a>) -> Self {
        Self { record: stopped.record, result: Err(stopped.error) }
    }
}

impl Outcome<'_> {
    /// Takes the same steps once more where the tool found out by running what it would touch. If policy or the person refuses
    /// any of it, the call ends with that: nothing was changed yet.
    pub(super) async fn go_on(self) -> Self {
        let Self { mut record, result } = self;
        match record.tally.further.take() {
            Some(further) if result.is_err() => {
                // What was left of the first attempt is stopped; the second has a token of its own.
                record.stop = record.cancel.child_token();
                attempt(record, Request::Further(further)).await.unwrap_or_else(Outcome::from)
            }
            _ => Self { record, result },
        }
    }

    /// The rights that a failed call was denied and can ask for. What no call can ask for, such as a hidden file, doesn't keep
    /// it from asking for the rest.
    pub(super) fn missing(&self) -> Vec<Effect> {
        let tally = &self.record.tally;
        let found: Vec<Effect> = match &self.result {
            Ok(_) if tally.exit_code.is_none_or(|code| code == 0) => Vec::new(),
            Ok(_) => tally.denials.iter().flat_map(|denial| denial.missing.clone()).collect(),
            Err(error) => error.missing.clone(),
        };
        let granted = self.record.granted();
        let is_new = |effect: &Effect| {
            self.record.is_started && Right::of(effect).is_some() && !granted.iter().any(|one| one.effect == *effect)
        };
        let mut missing: Vec<Effect> = Vec::new();
        for effect in found.into_iter().filter(is_new) {
            if !missing.contains(&effect) && self.refusal_of(&effect).is_none() {
                missing.push(effect);
            }
        }
        missing
    }

    /// The outcome without suggestions to ask for what policy denies anyway.
    pub(super) fn without_hopeless_requests(mut self) -> Self {
        let wanted: Vec<Effect> = self.record.tally.denials.iter().flat_map(|denial| denial.missing.clone()).collect();
        for effect in wanted {
            if let (Some(right), Some(why)) = (Right::of(&effect), self.refusal_of(&effect)) {
                let denied = self.record.tally.denied.iter_mut();
                denied.for_each(|denied| denied.withdraw(&right.to_string(), &why));
            }
        }
        self
    }

    /// Why policy would deny a right that the call asked for; none if it might grant the right.
    fn refusal_of(&self, effect: &Effect) -> Option<String> {
        let record = &self.record;
        let (tool, ceilings) = (record.tool.as_deref()?.declaration(), record.session.ceilings());
        let question = PolicyRequest { tool, effects: &record.effects, ceilings: &ceilings, bounds: None };
        let verdict = record.gate.parts.policy.judge_wider(&question, std::slice::from_ref(effect));
        let is_its_own = verdict.decided_by.effect.as_ref() == Some(effect);
        (verdict.decision == Decision::Deny && is_its_own).then_some(verdict.decided_by.reason)
    }

    /// Asks for the missing rights, and takes the same steps once more. If policy or the person doesn't grant them, the first
    /// outcome stands.
    pub(super) async fn retry(self, missing: Vec<Effect>) -> Self {
        let Self { record, result } = self;
        let before = (record.wider.clone(), record.verdict.clone(), record.approval);
        let request = Request::Wider { missing, denials: record.tally.denials.clone() };
        match attempt(record, request).await {
            Ok(outcome) => Self { result: with_first_changes(outcome.result, result), ..outcome },
            Err(stopped) if stopped.is_unrecorded => stopped.into(),
            Err(Stopped { mut record, error, .. }) => {
                (record.wider, record.verdict, record.approval) = before;
                let result = without_retry(result, &mut record.tally.denied, &error);
                Self { record, result }
            }
        }
    }

    /// Redacts, trims, records and replies.
    pub(super) fn finish(mut self) -> (Reply, StepTimings) {
        let mut truncated = None;
        if self.record.gate.parts.policy.preset() == Preset::Full {
            self.record.tally.enforced.0.insert(Guarantee::Approvals, GuaranteeLevel::NotHeld);
        }
        let shown = self.result.and_then(|mut payload| {
            let record = &mut self.record;
            report_denied(&mut payload, &record.tally.denied);
            report_new_errors(&mut payload, &record.tally.new_errors);
            record.redacted |= record.tally.redacted | record.gate.parts.redactor.json(&mut payload);
            record.timings.done("redact");
            truncated = trim_payload(record, &mut payload)?;
            record.timings.done("trim");
            Ok(payload)
        });
        let shown = shown.map_err(|error| self.record.clean_error(error));
        self.record.clean_changed_paths();
        let ended = record_end(&self.record, shown, truncated.clone());
        let mut record = self.record;
        record.timings.done("record end");
        let (payload, error) = match ended {
            Ok(payload) => (Some(payload), None),
            Err(error) => (None, Some(error)),
        };
        let reply = Reply {
            tool_call_id: record.call.tool_call_id,
            ok: error.is_none(),
            payload,
            error,
            artifacts: ReplyArtifacts {
                files_changed: record.tally.files_changed,
                more_files_changed: record.tally.more_files_changed,
                folded: record.tally.folded,
                commands_run: record.tally.commands_run,
                refs: record.tally.refs,
            },
            enforced: record.tally.enforced,
            truncated,
            redacted: record.redacted,
            duration_ms: record.timings.total().as_millis() as u64,
        };
        (reply, record.timings)
    }
}

/// Adds the sandbox's denials to a command's payload.
fn report_denied(payload: &mut Value, denied: &[DeniedAccess]) {
    if let (Value::Object(payload), false) = (payload, denied.is_empty()) {
        payload.insert("denied".into(), json!(denied));
    }
}

/// Adds the errors that the call's changes caused to its payload.
fn report_new_errors(payload: &mut Value, errors: &[CodeDiagnostic]) {
    if let (Value::Object(payload), false) = (payload, errors.is_empty()) {
        payload.insert("new_errors".into(), json!(errors));
    }
}

fn trim_payload(record: &mut CallRecord<'_>, payload: &mut Value) -> Result<Option<Truncated>, ToolError> {
    let (limits, _) = record.limits();
    let known = std::mem::take(&mut record.tally.stored);
    let artifacts = &record.session.artifacts;
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
    let mut truncated = cut.map(|cut| {
        record.tally.refs.extend(cut.refs);
        cut.truncated
    });
    if let Some(cursor) = record.tally.next_cursor.take() {
        truncated.get_or_insert_default().next_cursor = Some(cursor);
    }
    Ok(truncated)
}

/// Records how the call ended. A refused call gets its `started` here too, so that every call leaves a pair of events.
fn record_end(
    record: &CallRecord<'_>,
    result: Result<Value, ToolError>,
    truncated: Option<Truncated>,
) -> Result<Value, ToolError> {
    let (payload, error) = match result {
        Ok(payload) => (Some(payload), None),
        Err(error) => (None, Some(error)),
    };
    let ending = CallEnding {
        duration_ms: record.timings.total().as_millis() as u64,
        payload,
        exit_code: record.tally.exit_code,
        files_changed: record.tally.files_changed.clone(),
        more_files_changed: record.tally.more_files_changed,
        folded: record.tally.folded.clone(),
        commands_run: record.tally.commands_run.clone(),
        processes: record.tally.processes.clone(),
        refs: record.tally.refs.clone(),
        denials: record.tally.denials.clone(),
        enforced: record.tally.enforced.clone(),
        truncated,
        redacted: record.redacted,
    };
    let ended = match error {
        None => EventPayload::CallCompleted(ending),
        Some(error) => EventPayload::CallFailed { class: error.code.class(), error, ending },
    };
    let started = (!record.is_started).then(|| record.started());
    let events: Vec<Event> = started.into_iter().chain([ended]).map(|payload| record.event(payload)).collect();
    record.session.record(&events).map_err(|fault| unrecorded(fault, record.is_started))?;
    // The journal only borrows the outcome, which may be large; it isn't copied.
    match events.into_iter().next_back().map(|event| event.payload) {
        Some(EventPayload::CallFailed { error, .. }) => Err(error),
        Some(EventPayload::CallCompleted(ending)) => Ok(ending.payload.unwrap_or_default()),
        _ => Err(ToolError::internal("A call's end was lost on its way to the record.")),
    }
}

/// The first outcome, with a hint that says how asking for more rights ended.
fn without_retry(
    first: Result<Value, ToolError>,
    denied: &mut [DeniedAccess],
    why: &ToolError,
) -> Result<Value, ToolError> {
    let next = match why.code {
        ErrorCode::ApprovalRequired => why.hint.clone(),
        ErrorCode::ApprovalDenied => {
            Some(format!("Work without it, and don't ask for it again. A person was asked: {}", why.message))
        }
        _ => None,
    };
    if let Some(next) = &next {
        denied.iter_mut().for_each(|denied| denied.answered(next, why.code == ErrorCode::ApprovalDenied));
    }
    first.map_err(|mut error| {
        if next.is_some() {
            error.hint = next;
        }
        if let (Some(Value::Object(details)), true) = (&mut error.details, why.code != error.code) {
            details.insert("not_tried_again".into(), json!({ "code": why.code, "message": why.message }));
        }
        error
    })
}
