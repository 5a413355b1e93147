//! A call that gets more than its tool states (C-21): asked for up front, or found missing when confinement stopped it.
//! Either way it is judged, asked for and recorded like everything else; and a call is tried again only once.

use serde_json::{Value, json};
use toolgate_contract::{Decision, Denial, Effect, ErrorCode, EventPayload, Right, ToolError};

use super::CallWalk;
use crate::gate::cleared::{Cleared, RecordProof};

impl CallWalk<'_> {
    /// What the call itself asks for beyond what its tool states.
    pub(super) fn requested_effects(&self) -> Result<Vec<Effect>, ToolError> {
        let rights = self.call.requested_permissions.iter();
        rights.filter_map(|right| self.beyond(right).transpose()).collect()
    }

    fn beyond(&self, right: &Right) -> Result<Option<Effect>, ToolError> {
        if matches!(right, Right::Permission(_)) {
            return Ok(None);
        }
        let Some(command) = self.command() else {
            let message = format!("`{}` runs no command, so it can't use the right `{right}`.", self.call.name);
            return Err(ToolError::invalid_args(message));
        };
        match right {
            Right::Permission(_) => Ok(None),
            Right::Connect { host, port } => Ok(Some(Effect::Connect { host: host.clone(), port: *port })),
            Right::Write { path } if is_plain(path) => Ok(Some(Effect::write(path))),
            Right::Write { path } => {
                let message = format!("`{path}` isn't a plain absolute path; write it without `.`, `..` and `//`.");
                Err(ToolError::invalid_args(message))
            }
            Right::Unsandboxed => Ok(Some(Effect::Unsandboxed { command: command.to_owned() })),
        }
    }

    fn command(&self) -> Option<&str> {
        self.effects.iter().find_map(|located| match &located.effect {
            Effect::Run { command, .. } => Some(command.as_str()),
            _ => None,
        })
    }

    /// What would have been needed, if it was confinement that stopped the call and nothing else.
    pub(super) fn missing(&self, outcome: &Result<Value, ToolError>) -> Vec<Effect> {
        let found: Vec<Effect> = match outcome {
            Ok(_) if self.tally.exit_code.is_none_or(|code| code == 0) => Vec::new(),
            Ok(_) => self.tally.denials.iter().flat_map(|denial| denial.missing.clone()).collect(),
            Err(error) if matches!(error.code, ErrorCode::NetworkDenied | ErrorCode::SandboxDenied) => {
                let missing = error.details.as_ref().map(|details| details["missing"].clone());
                missing.and_then(|missing| serde_json::from_value(missing).ok()).unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        // What no call can ask for, such as a hidden file, must not keep it from what it can.
        let can_be_asked = |effect: &Effect| self.is_started && Right::of(effect).is_some();
        let is_new =
            |effect: &Effect| can_be_asked(effect) && !self.granted().iter().any(|known| known.effect == *effect);
        let mut missing: Vec<Effect> = Vec::new();
        for effect in found.into_iter().filter(is_new) {
            if !missing.contains(&effect) {
                missing.push(effect);
            }
        }
        missing
    }

    /// Asks for what was missing, and walks the path once more with it. Where policy or the person doesn't let it, the
    /// first outcome stands.
    pub(super) async fn try_again(
        &mut self,
        missing: Vec<Effect>,
        first: Result<Value, ToolError>,
    ) -> Result<Value, ToolError> {
        let Ok(tool) = self.gate.registry.find(&self.call.name) else { return first };
        let Ok(prepared) = tool.prepare(&self.call) else { return first };
        let before = (std::mem::take(&mut self.wider), self.verdict.take(), self.approval);
        self.wider = before.0.iter().cloned().chain(missing.iter().cloned()).collect();
        let mut verdict = self.judge(tool.declaration());
        // The rest was approved when the call was tried first.
        verdict.asks.retain(|ask| ask.effect.as_ref().is_some_and(|effect| missing.contains(effect)));
        if verdict.decision == Decision::Ask && verdict.asks.is_empty() {
            verdict.decision = Decision::Allow;
        }
        self.verdict = Some(verdict.clone());
        let approved = match self.approve(prepared.as_ref()).await {
            Ok(approved) => approved,
            Err(why) => {
                (self.wider, self.verdict, self.approval) = before;
                return without_retry(first, &why);
            }
        };
        let (denials, approval) = (std::mem::take(&mut self.tally.denials), self.approval);
        let verdict = self.clean_verdict(&verdict);
        self.record(EventPayload::CallWidened { denials, effects: missing, verdict, approval })?;
        self.steps.done("widen");
        let cleared = Cleared::new(prepared, self.hands(self.granted()), approved, RecordProof(()));
        self.act(cleared, tool.declaration().parallel).await
    }

    /// Why a person is asked, with what they must not overlook.
    pub(super) fn with_warnings(&self, reasons: String) -> String {
        let unsandboxed = self.wider.iter().any(|effect| matches!(effect, Effect::Unsandboxed { .. }));
        let loud = match unsandboxed {
            true => {
                "NO SANDBOX: if you agree, this command can read, change and send everything that you can, and nothing \
                 of it can be taken back. "
            }
            false => "",
        };
        let again = match self.is_started && !self.wider.is_empty() {
            true => {
                let stopped = self.stopped_at_places();
                format!(
                    " Confinement stopped the call.{stopped} If you agree, it is run once more, from its beginning."
                )
            }
            false => String::new(),
        };
        format!("{loud}{reasons}{again}")
    }

    /// Which places a call was kept from. For one file that is to be made, a whole directory is asked for.
    fn stopped_at_places(&self) -> String {
        let is_place = |denial: &&Denial| denial.code == ErrorCode::SandboxDenied && !denial.is_mere_reason();
        let at_places = self.tally.denials.iter().filter(is_place);
        at_places.map(|denial| format!(" {}", denial.reason)).collect()
    }
}

/// The first outcome, and why it wasn't tried again.
fn without_retry(first: Result<Value, ToolError>, why: &ToolError) -> Result<Value, ToolError> {
    let next = match why.code {
        ErrorCode::ApprovalRequired => why.hint.clone(),
        ErrorCode::ApprovalDenied => {
            Some(format!("Work without it, and don't ask for it again. A person was asked: {}", why.message))
        }
        _ => None,
    };
    let first = first.map(|payload| with_next_step(payload, why.code, next.as_deref()));
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

/// What confinement kept from a command, each with what to do now instead of asking for it.
fn with_next_step(mut payload: Value, why: ErrorCode, next: Option<&str>) -> Value {
    let denied = payload.get_mut("denied").and_then(Value::as_array_mut);
    for denied in denied.into_iter().flatten().filter_map(Value::as_object_mut) {
        let (true, Some(next)) = (denied.contains_key("request"), next) else { continue };
        denied.insert("next".into(), next.into());
        if why == ErrorCode::ApprovalDenied {
            denied.remove("request");
        }
    }
    payload
}

/// An absolute path in which every name is one.
fn is_plain(path: &str) -> bool {
    let mut names = path.split('/');
    names.next() == Some("") && names.all(|name| !matches!(name, "" | "." | "..")) && !path.contains('\0')
}
