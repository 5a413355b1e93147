//! The path of a call, in typed steps. Each step consumes the one before, so the compiler checks the order: nothing runs that
//! wasn't recorded, nothing is recorded that wasn't approved, nothing is approved that wasn't judged.
//!
//! ```text
//! CallRecord ─find─▶ Found ─prepare─▶ Prepared ─judge─▶ Judged ─approve─▶ Approved ─record─▶ Recorded
//!                                                                                              │ clear
//!                                          Reply ◀─finish─ Outcome ◀─run─ Cleared ◀────────────┘
//! ```
//!
//! A step that fails gives the record back with the error, since a refused call is recorded too. Where confinement stopped a
//! call and what it lacked is known, the same function is called once more with a wider [`Request`]; so it is where only the
//! tool itself could find out what it would change.

mod approved;
mod cleared;
mod first_attempt;
mod found;
mod judged;
mod outcome;
mod prepared;

use toolgate_changes::EntrustedCall;
use toolgate_contract::{Denial, Effect, Event, EventPayload, RefusedRequest, Reply, ToolError};

pub use self::cleared::Cleared;
use self::found::Found;
use self::outcome::Outcome;
use super::call_record::CallRecord;
use super::hands::FurtherEffects;
use super::refusals::{aborted, repeated_id, unrecorded};
use crate::step_timings::StepTimings;

/// Performs a call; once more with more rights if the sandbox denied something and it is granted.
pub(super) async fn perform(record: Box<CallRecord<'_>>) -> (Reply, StepTimings) {
    let record = match record.claimed() {
        Ok(record) => record,
        Err(refused) => return *refused,
    };
    if let Some(by) = record.session.aborted_by() {
        let error = aborted(by, None);
        return Outcome::from(record.stopped(error)).finish();
    }
    let outcome = attempt(record, Request::Stated).await.unwrap_or_else(Outcome::from).go_on().await;
    let outcome = outcome.without_hopeless_requests();
    match outcome.missing() {
        missing if missing.is_empty() => outcome,
        missing => outcome.retry(missing).await,
    }
    .finish()
}

/// Refuses a call that couldn't be parsed, and records it like every other.
pub(super) fn refuse(record: Box<CallRecord<'_>>, why: ToolError) -> Reply {
    match record.claimed() {
        Ok(record) => Outcome::from(record.stopped(why)).finish().0,
        Err(refused) => refused.0,
    }
}

/// The steps until a call may run, in order.
async fn clear<'a>(record: Box<CallRecord<'a>>, request: Request) -> Result<Cleared<'a>, Stopped<'a>> {
    let found = Found::find(record)?;
    let prepared = found.prepare(request)?;
    let judged = prepared.judge();
    let approved = judged.approve().await?;
    let recorded = approved.record()?;
    Ok(recorded.clear())
}

/// The steps, in order, and the run.
async fn attempt<'a>(record: Box<CallRecord<'a>>, request: Request) -> Result<Outcome<'a>, Stopped<'a>> {
    Ok(clear(record, request).await?.run().await)
}

/// Takes a call along the same steps, and leaves running to the client whose hook brought it. `key` is what the client's next
/// event about the call is recognised by.
pub(super) async fn entrust(record: Box<CallRecord<'_>>, key: &str) -> Result<EntrustedCall, Box<Reply>> {
    let record = record.claimed().map_err(|refused| Box::new(refused.0))?;
    let entrusted = match record.session.aborted_by() {
        Some(by) => {
            let error = aborted(by, None);
            Err(record.stopped(error))
        }
        None => match clear(record, Request::Stated).await {
            Ok(cleared) => cleared.entrust(key).await,
            Err(stopped) => Err(stopped),
        },
    };
    entrusted.map_err(|stopped| Box::new(Outcome::from(stopped).finish().0))
}

/// Why a person would have to approve a call; none if nobody has to. Nothing is recorded and nobody is asked.
pub(super) fn standing(record: Box<CallRecord<'_>>) -> Result<Option<String>, ToolError> {
    let prepared = Found::find(record).and_then(|found| found.prepare(Request::Stated));
    prepared.map_err(|stopped| stopped.error)?.judge().standing()
}

/// What an attempt asks for.
enum Request {
    /// What the tool states, and the rights that the call itself asks for.
    Stated,
    /// The same, and the rights that the first attempt lacked.
    Wider {
        /// The rights that it lacked.
        missing: Vec<Effect>,
        /// The denials that say so.
        denials: Vec<Denial>,
    },
    /// The same, and what the tool found out by running that it would touch.
    Further(FurtherEffects),
}

impl Request {
    /// The rights that the first attempt lacked; none in the first attempt.
    fn missing(&self) -> &[Effect] {
        match self {
            Self::Stated | Self::Further(_) => &[],
            Self::Wider { missing, .. } => missing,
        }
    }

    /// What the tool found out by running that it would touch.
    fn further(&self) -> &[Effect] {
        match self {
            Self::Stated | Self::Wider { .. } => &[],
            Self::Further(further) => &further.effects,
        }
    }
}

/// A call that was stopped before its tool ran, with what is known of it, for the record.
pub(super) struct Stopped<'a> {
    record: Box<CallRecord<'a>>,
    error: ToolError,
    /// Whether recording failed; then this error replaces the outcome of a first attempt.
    is_unrecorded: bool,
}

impl<'a> CallRecord<'a> {
    /// This call, if no other call of the run has its id. One id stands for one call in the record and in undo, so a
    /// repeated one is refused, and recorded as a refused request: the events of the first call stay its own.
    fn claimed(self: Box<Self>) -> Result<Box<Self>, Box<(Reply, StepTimings)>> {
        let (id, session) = (self.call.tool_call_id.clone(), self.session);
        let error = match session.recorder.claim_call(&id) {
            Ok(true) => return Ok(self),
            Ok(false) => {
                let refused = RefusedRequest {
                    door: "gate".into(),
                    code: "duplicate_call".into(),
                    request: self.clean(&format!("{} {id}", self.call.name)),
                    from: Some(session.id.clone()),
                    unrecorded: 0,
                };
                let event = Event { tool_call_id: None, ..self.event(EventPayload::RequestRefused(refused)) };
                session
                    .record(&[event])
                    .map_or_else(|fault| unrecorded(fault, false), |()| repeated_id(&id, &session.run))
            }
            Err(fault) => unrecorded(fault, false),
        };
        Err(Box::new((Reply::refused(id, error), self.timings)))
    }

    /// This call, stopped by this error.
    fn stopped(self: Box<Self>, error: ToolError) -> Stopped<'a> {
        Stopped { record: self, error, is_unrecorded: false }
    }
}
