//! Approve: a deny ends here. An ask needs a grant from before, or a person now.

use std::sync::Arc;

use toolgate_contract::{
    Access, ApprovalScope, Decision, Denial, Effect, ErrorCode, EventPayload, Finding, PreparedCall, ToolError, Verdict,
};
use toolgate_journal::Grant;
use toolgate_policy::may_be_standing;

use super::approved::Approved;
use super::{Request, Stopped};
use crate::approval::{ApprovalAnswer, ApprovalRequest};
use crate::gate::approval_options::approval_options;
use crate::gate::call_record::CallRecord;
use crate::gate::refusals::{aborted, denied, readable, refused, unanswered, unconfined};
use crate::grants::{GrantQuery, asked_effects, grant_id};
use crate::registry::RegisteredTool;

/// A call that policy has judged.
pub(super) struct Judged<'a> {
    pub(super) record: Box<CallRecord<'a>>,
    pub(super) tool: Arc<RegisteredTool>,
    pub(super) call: Box<dyn PreparedCall>,
    pub(super) request: Request,
    pub(super) verdict: Verdict,
}

/// What approval a call has.
enum Coverage {
    /// It needs none.
    Without,
    /// An earlier grant.
    Granted(ApprovalScope),
    /// None yet, for these effects.
    Missing(Vec<Effect>),
}

impl<'a> Judged<'a> {
    /// Passes the call on if policy allows it, an earlier grant covers it, or a person approves it now.
    pub(super) async fn approve(mut self) -> Result<Approved<'a>, Stopped<'a>> {
        match self.approval().await {
            Ok(scope) => {
                self.record.approval = scope.or(self.record.approval);
                self.record.timings.done("approve");
                let parallel = self.tool.declaration().parallel;
                Ok(Approved { record: self.record, call: self.call, request: self.request, parallel })
            }
            Err(error) => Err(self.record.stopped(error)),
        }
    }

    /// Why a person would have to approve the call; none if policy allows it, or an earlier grant covers it.
    pub(super) fn standing(&self) -> Result<Option<String>, ToolError> {
        match self.coverage()? {
            Coverage::Without | Coverage::Granted(_) => Ok(None),
            Coverage::Missing(_) => Ok(Some(with_warnings(&self.record, self.reasons()))),
        }
    }

    /// The scope of the approval; none where policy allows the call without one.
    async fn approval(&self) -> Result<Option<ApprovalScope>, ToolError> {
        match self.coverage()? {
            Coverage::Without => Ok(None),
            Coverage::Granted(scope) => Ok(Some(scope)),
            Coverage::Missing(asked) => self.ask(asked).await.map(Some),
        }
    }

    /// What approval there is, before anybody is asked.
    fn coverage(&self) -> Result<Coverage, ToolError> {
        let (record, verdict) = (&self.record, &self.verdict);
        if verdict.decision == Decision::Deny {
            return Err(denied(verdict));
        }
        if verdict.confined && record.gate.parts.processes.is_none() {
            return Err(unconfined(&record.call.name));
        }
        if verdict.decision == Decision::Allow {
            return Ok(Coverage::Without);
        }
        let asked = asked_effects(verdict, &record.granted());
        let grants = record.session.recorder.grants(record.gate.parts.clock.now())?;
        match GrantQuery::new(&record.call.name, &asked, verdict, record.session).covered_by(&grants) {
            Some(scope) => Ok(Coverage::Granted(scope)),
            None if record.session.skills.approves(&record.call.name) => Ok(Coverage::Granted(ApprovalScope::Session)),
            None => Ok(Coverage::Missing(asked)),
        }
    }

    /// Why a person is asked, each reason once.
    fn reasons(&self) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for ask in self.verdict.asks.iter().filter(|ask| !ask.reason.is_empty()) {
            if !reasons.contains(&ask.reason.as_str()) {
                reasons.push(&ask.reason);
            }
        }
        reasons.join(" ")
    }

    async fn ask(&self, asked: Vec<Effect>) -> Result<ApprovalScope, ToolError> {
        let record = &self.record;
        let request = self.approval_request(&asked)?;
        record.write(EventPayload::ApprovalRequired {
            tool: request.tool.clone(),
            reason: request.reason.clone(),
            effects: asked.iter().map(|effect| record.clean_effect(effect)).collect(),
        })?;
        let answer = tokio::select! {
            biased;
            () = record.cancel.cancelled() => return Err(ToolError::cancelled()),
            answer = record.session.ask(&request) => answer,
        };
        match answer {
            ApprovalAnswer::Granted { scope, by } if !request.offers(scope) => {
                let reason = Some("The answer reaches farther than any that was offered.".to_owned());
                record.write(EventPayload::ApprovalDenied { by: by.clone(), reason: reason.clone() })?;
                Err(refused(&record.call.name, &by, reason))
            }
            ApprovalAnswer::Granted { scope, by } => {
                record.write(EventPayload::ApprovalGranted { scope, by: by.clone() })?;
                self.remember(scope, by, asked, &request)?;
                Ok(scope)
            }
            ApprovalAnswer::Denied { by, reason } => {
                record.write(EventPayload::ApprovalDenied { by: by.clone(), reason: reason.clone() })?;
                Err(refused(&record.call.name, &by, reason))
            }
            ApprovalAnswer::Aborted { by, reason } => {
                record.write(EventPayload::ApprovalDenied { by: by.clone(), reason: reason.clone() })?;
                record.write(EventPayload::RunAborted { by: by.clone(), reason: reason.clone() })?;
                record.session.abort(&by);
                record.session.processes.end().await;
                Err(aborted(&by, reason))
            }
            ApprovalAnswer::Nobody => Err(unanswered(&request)),
        }
    }

    /// What the person is shown.
    fn approval_request(&self, asked: &[Effect]) -> Result<ApprovalRequest, ToolError> {
        let record = &self.record;
        let preview = self.preview()?;
        let skill = record.skill_origin();
        let origin = skill.as_ref().map_or_else(String::new, |skill| format!(" {skill}"));
        let replay = &record.gate.parts.replay;
        Ok(ApprovalRequest {
            tool_call_id: record.call.tool_call_id.clone(),
            tool: record.call.name.clone(),
            risk: self.tool.declaration().risk,
            reason: with_warnings(record, format!("{}{origin}", self.reasons()).trim_start().to_owned()),
            justification: record.call.justification.as_ref().map(|words| record.clean(words)),
            args: record.shown_args.clone(),
            effects: self.shown_effects(),
            skill: skill.map(Box::new),
            preview,
            scopes: approval_options(record, may_be_standing(&self.verdict.asks), asked),
            replay: replay.command(&record.call, &record.effects, &record.wider, &record.shown_args, record.session)?,
        })
    }

    /// What the call would change. A call that can't succeed fails here, so that nobody is asked about it.
    fn preview(&self) -> Result<Option<String>, ToolError> {
        let record = &self.record;
        if let Request::Further(further) = &self.request {
            return Ok(Some(record.clean(&further.preview.diff)));
        }
        match self.call.preview(&record.hands(readable(&record.effects).into())) {
            Ok(preview) => Ok(preview.map(|preview| record.clean(&preview.diff))),
            Err(error) if self.may_be_told(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Whether an error tells the caller nothing that it may only know after an approval: it is about the arguments alone, it
    /// says what kind of thing is at a path, or only changes have to be approved, not reading.
    fn may_be_told(&self, error: &ToolError) -> bool {
        let is_change = |ask: &Finding| {
            let access = ask.effect.as_ref().and_then(Effect::path).map(|(access, _)| access);
            access.is_some_and(|access| access != Access::Read)
        };
        matches!(error.code, ErrorCode::InvalidArgs | ErrorCode::NotFound | ErrorCode::NotAFile)
            || self.verdict.asks.iter().all(is_change)
    }

    /// Everything that the call touches, and what its commands will delete.
    fn shown_effects(&self) -> Vec<Effect> {
        let record = &self.record;
        let mut shown: Vec<Effect> =
            record.granted().iter().map(|located| record.clean_effect(&located.effect)).collect();
        for located in record.effects.iter() {
            let Effect::Run { command, workdir } = &located.effect else { continue };
            let read = record.gate.parts.policy.explain(command, workdir);
            let deletions = read.effects().filter(|effect| matches!(effect, Effect::Delete { .. }));
            for deletion in deletions.map(|effect| record.clean_effect(effect)) {
                if !shown.contains(&deletion) {
                    shown.push(deletion);
                }
            }
        }
        shown
    }

    /// Records an approval, and stores it as a grant if its scope reaches beyond this call: exactly as the person was shown.
    fn remember(
        &self,
        scope: ApprovalScope,
        by: String,
        effects: Vec<Effect>,
        request: &ApprovalRequest,
    ) -> Result<(), ToolError> {
        let (record, session) = (&self.record, self.record.session);
        let clock = &record.gate.parts.clock;
        session.recorder.remember(&Grant {
            id: grant_id(clock.as_ref()),
            tool: record.call.name.clone(),
            effects,
            scope,
            workspace: session.recorder.workspace(),
            by,
            at: clock.now(),
            expires: request.scopes.iter().find(|option| option.scope == scope).and_then(|option| option.until),
            run: session.run.clone(),
            session: session.id.clone(),
            session_continues: session.waits,
            tool_call_id: record.call.tool_call_id.clone(),
            revoked: None,
        })
    }
}

/// Why a person is asked, with a warning they must not overlook.
fn with_warnings(record: &CallRecord<'_>, reasons: String) -> String {
    let unsandboxed = record.wider.iter().any(|effect| matches!(effect, Effect::Unsandboxed { .. }));
    let warning = match unsandboxed {
        true => {
            "NO SANDBOX: if you agree, this command can read, change and send everything that you can, and nothing \
             of it can be undone. "
        }
        false => "",
    };
    let again = match record.is_started && !record.wider.is_empty() {
        true => {
            let stopped = denied_places(record);
            format!(" Confinement stopped the call.{stopped} If you agree, it is run once more, from its beginning.")
        }
        false => String::new(),
    };
    format!("{warning}{reasons}{again}")
}

/// Why the first attempt was denied paths, in sentences. They name the files: for a new file, its whole directory is asked for.
fn denied_places(record: &CallRecord<'_>) -> String {
    let is_place = |denial: &&Denial| denial.code == ErrorCode::SandboxDenied && !denial.is_mere_reason();
    let at_places = record.tally.denials.iter().filter(is_place);
    at_places.map(|denial| format!(" {}", denial.reason)).collect()
}
