//! Judge: what policy says about everything that the call will touch.

use std::sync::Arc;

use toolgate_contract::{PreparedCall, Verdict};
use toolgate_policy::PolicyRequest;

use super::Request;
use super::judged::Judged;
use crate::gate::call_record::CallRecord;
use crate::gate::outgoing::asking_about_outgoing;
use crate::registry::RegisteredTool;

/// A call whose arguments are decoded and whose effects are located.
pub(super) struct Prepared<'a> {
    pub(super) record: Box<CallRecord<'a>>,
    pub(super) tool: Arc<RegisteredTool>,
    pub(super) call: Box<dyn PreparedCall>,
    pub(super) request: Request,
}

impl<'a> Prepared<'a> {
    /// Asks policy about everything. In a wider attempt only the rights that the first attempt lacked can still need approval:
    /// the rest was approved before.
    pub(super) fn judge(mut self) -> Judged<'a> {
        let verdict = match &self.request {
            Request::Stated => asking_about_outgoing(&self.record, self.verdict()),
            Request::Wider { missing, .. } => self.verdict().asking_only(missing),
            Request::Further(further) => self.verdict().asking_only(&further.effects),
        };
        self.record.verdict = Some(verdict.clone());
        self.record.timings.done("judge");
        Judged { record: self.record, tool: self.tool, call: self.call, request: self.request, verdict }
    }

    fn verdict(&self) -> Verdict {
        let record = &self.record;
        let (ceilings, bounds) = (record.session.ceilings(), record.session.bounds());
        let effects = record.gate.parts.changes.judged_effects(&record.effects);
        let tool = self.tool.declaration();
        let question = PolicyRequest { tool, effects: &effects, ceilings: &ceilings, bounds: bounds.as_deref() };
        let facts = record.gate.facts(Some(&record.session.id));
        record.gate.parts.policy.judge_with(&question, &record.wider, &facts)
    }
}
