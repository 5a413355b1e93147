//! The approval step: a grant from before, or a person now.

use toolgate_contract::{ApprovalScope, Decision, Effect, EventPayload, PreparedCall, ToolError, Verdict};
use toolgate_journal::Grant;
use toolgate_policy::{standing_rules, to_toml};

use super::CallWalk;
use super::refusals::{denied, readable, refused, unanswered, unconfined};
use crate::approval::{ApprovalAnswer, ApprovalOption, ApprovalRequest};
use crate::gate::cleared::ApprovalProof;
use crate::grants::{asked_effects, covering};

impl CallWalk<'_> {
    /// A deny ends here. An ask needs a grant from before, or a person now.
    pub(super) async fn approve(&mut self, prepared: &dyn PreparedCall) -> Result<ApprovalProof, ToolError> {
        let verdict = self.verdict.as_ref().ok_or_else(|| ToolError::internal("The call wasn't judged."))?;
        if verdict.decision == Decision::Deny {
            return Err(denied(verdict));
        }
        if verdict.confined && self.gate.processes.is_none() {
            return Err(unconfined(&self.call.name));
        }
        if verdict.decision == Decision::Allow {
            return Ok(ApprovalProof(()));
        }
        let asked = asked_effects(verdict, &self.granted());
        let known = covering(&self.session.grants(), &self.call.name, &asked, self.gate.clock.now());
        let scope = match known {
            Some(scope) => scope,
            None if self.session.skills.approves(&self.call.name) => ApprovalScope::Session,
            None => self.ask(verdict, asked, prepared).await?,
        };
        self.approval = Some(scope);
        Ok(ApprovalProof(()))
    }

    async fn ask(
        &self,
        verdict: &Verdict,
        asked: Vec<Effect>,
        prepared: &dyn PreparedCall,
    ) -> Result<ApprovalScope, ToolError> {
        let request = self.request(verdict, &asked, prepared)?;
        self.record(EventPayload::ApprovalRequired {
            tool: request.tool.clone(),
            reason: request.reason.clone(),
            effects: asked.clone(),
        })?;
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ToolError::cancelled()),
            answer = self.session.ask(&request) => answer,
        };
        match answer {
            ApprovalAnswer::Granted { scope, by } => {
                self.record(EventPayload::ApprovalGranted { scope, by: by.clone() })?;
                self.remember(scope, by, asked, &request)?;
                Ok(scope)
            }
            ApprovalAnswer::Denied { by, reason } => {
                self.record(EventPayload::ApprovalDenied { by: by.clone(), reason: reason.clone() })?;
                Err(refused(&self.call.name, &by, reason))
            }
            ApprovalAnswer::Nobody => Err(unanswered(&request)),
        }
    }

    /// What the person is shown.
    fn request(
        &self,
        verdict: &Verdict,
        asked: &[Effect],
        prepared: &dyn PreparedCall,
    ) -> Result<ApprovalRequest, ToolError> {
        let preview = prepared.preview(&self.hands(readable(&self.effects).into()));
        let mut reasons: Vec<&str> = Vec::new();
        for ask in verdict.asks.iter().filter(|ask| !ask.reason.is_empty()) {
            if !reasons.contains(&ask.reason.as_str()) {
                reasons.push(&ask.reason);
            }
        }
        Ok(ApprovalRequest {
            tool_call_id: self.call.tool_call_id.clone(),
            tool: self.call.name.clone(),
            risk: self.declared().risk,
            reason: self.with_warnings(reasons.join(" ")),
            justification: self.call.justification.as_ref().map(|words| self.clean(words)),
            args: self.shown_args.clone(),
            effects: self.granted().iter().map(|located| located.effect.clone()).collect(),
            preview: preview.map(|preview| self.clean(&preview.diff)),
            scopes: self.offers(verdict, asked),
            replay: self.gate.replay.command(&self.call, &self.effects, &self.wider, &self.shown_args, self.session)?,
        })
    }

    /// What each answer would grant, narrowest first. "Always" is offered where it can be written down.
    fn offers(&self, verdict: &Verdict, asked: &[Effect]) -> Vec<ApprovalOption> {
        let what = what_is_granted(asked);
        let name = &self.call.name;
        let mut offers = vec![
            ApprovalOption { scope: ApprovalScope::Call, grants: "this one call".into() },
            ApprovalOption { scope: ApprovalScope::Run, grants: format!("`{name}` may {what}, until this run ends") },
            ApprovalOption {
                scope: ApprovalScope::Session,
                grants: format!("`{name}` may {what}, until this session ends"),
            },
        ];
        let rules = standing_rules(self.declared(), &verdict.asks);
        if self.gate.rulebook.is_some() && !rules.is_empty() {
            offers.push(ApprovalOption { scope: ApprovalScope::Always, grants: to_toml(&rules) });
        }
        offers
    }

    /// Keeps a yes where its scope says. An "always" that can't be written down is a failure, not a silent once.
    fn remember(
        &self,
        scope: ApprovalScope,
        by: String,
        effects: Vec<Effect>,
        request: &ApprovalRequest,
    ) -> Result<(), ToolError> {
        let always = request.scopes.iter().find(|offer| offer.scope == ApprovalScope::Always);
        if let (ApprovalScope::Always, Some(rulebook), Some(offer)) = (scope, &self.gate.rulebook, always) {
            rulebook.append_rules(&offer.grants)?;
        }
        let grant = Grant {
            tool: self.call.name.clone(),
            effects,
            scope,
            by,
            at: self.gate.clock.now(),
            expires: None,
            run: self.session.run.clone(),
            session: self.session.id.clone(),
            tool_call_id: self.call.tool_call_id.clone(),
        };
        self.session.recorder.remember(&grant)?;
        self.session.grants().push(grant);
        Ok(())
    }
}

/// All that would be granted; hosts together, since what is done with each is the same.
fn what_is_granted(asked: &[Effect]) -> String {
    let is_host = |effect: &&Effect| matches!(effect, Effect::Connect { .. });
    let mut what: Vec<String> = asked.iter().filter(|effect| !is_host(effect)).map(in_words).collect();
    let hosts: Vec<String> = asked.iter().filter_map(host_and_port).collect();
    match hosts.split_last() {
        Some((last, [])) => what.push(format!("connect to {last}")),
        Some((last, first)) => what.push(format!("connect to {} and {last}", first.join(", "))),
        None => {}
    }
    if what.is_empty() { "any call".into() } else { what.join(", ") }
}

fn host_and_port(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Connect { host, port } => Some(format!("{host}:{port}")),
        _ => None,
    }
}

/// What would be granted; of a pattern, what else it covers.
fn in_words(effect: &Effect) -> String {
    match effect {
        Effect::Run { command, .. } => match command.strip_suffix(" *") {
            Some(start) => format!("run `{command}` (whatever begins with `{start}`)"),
            None => format!("run `{command}` (exactly this)"),
        },
        other => other.to_string(),
    }
}
