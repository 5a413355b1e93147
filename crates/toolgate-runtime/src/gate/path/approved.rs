//! Record: the call is in the journal before it runs. What can't be recorded doesn't run.

use toolgate_contract::{EventPayload, PreparedCall};

use super::cleared::Cleared;
use super::{Request, Stopped};
use crate::gate::call_record::CallRecord;
use crate::gate::hands::FurtherEffects;

/// A call that policy allows or a person approved.
pub(super) struct Approved<'a> {
    pub(super) record: Box<CallRecord<'a>>,
    pub(super) call: Box<dyn PreparedCall>,
    pub(super) request: Request,
    /// Whether the tool runs beside others.
    pub(super) parallel: bool,
}

impl<'a> Approved<'a> {
    /// Writes `tool_call.started`, or that a call is tried once more with more rights.
    pub(super) fn record(self) -> Result<Recorded<'a>, Stopped<'a>> {
        let Self { mut record, call, request, parallel } = self;
        let (started, step) = match request {
            Request::Stated => (record.started(), "record start"),
            Request::Wider { missing, denials } => {
                let verdict = record.verdict.as_ref().map(|verdict| record.clean_verdict(verdict));
                let verdict = verdict.expect("a call is judged before it is approved");
                (EventPayload::CallWidened { denials, effects: missing, verdict, approval: record.approval }, "widen")
            }
            Request::Further(FurtherEffects { effects, .. }) => {
                let verdict = record.verdict.as_ref().map(|verdict| record.clean_verdict(verdict));
                let verdict = verdict.expect("a call is judged before it is approved");
                let (denials, approval) = (Vec::new(), record.approval);
                (EventPayload::CallWidened { denials, effects, verdict, approval }, "widen")
            }
        };
        if let Err(error) = record.write(started) {
            return Err(Stopped { is_unrecorded: true, ..record.stopped(error) });
        }
        record.is_started = true;
        record.timings.done(step);
        Ok(Recorded { record, call, parallel })
    }
}

/// A call that is in the journal.
pub(super) struct Recorded<'a> {
    record: Box<CallRecord<'a>>,
    call: Box<dyn PreparedCall>,
    parallel: bool,
}

impl<'a> Recorded<'a> {
    /// Gives the call its hands: exactly what was approved.
    pub(super) fn clear(self) -> Cleared<'a> {
        let hands = self.record.hands(self.record.granted());
        Cleared::new(self.record, self.call, hands, self.parallel)
    }
}
