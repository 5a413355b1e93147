//! Asks the person at the client for an approval, with what the terminal shows as well: what the call would do, its diff,
//! and what each answer would grant.

use std::fmt::Write;

use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, BoxFuture};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver};

use crate::elicitation::{self, Elicitor, escape_control, form_field};

/// A no for which the person gives a reason. Some clients don't submit a form while a text field in it is empty, so the
/// reason is asked for in a second form, and only then.
const NO_BECAUSE: &str = "no_because";
/// The answer that ends the whole run.
const ABORT: &str = "abort";

impl Approver for Elicitor {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let shown = self.show(&request.tool_call_id, "approval", |is_stateless| form(request, is_stateless)).await;
            let Some((answer, by)) = shown else { return ApprovalAnswer::Nobody };
            if wants_to_give_reason(&answer) {
                let reason = self.show(&request.tool_call_id, "reason", |_| reason_form(request)).await;
                let reason = reason.map(|(answer, _)| form_field(&answer, "reason").to_owned());
                return ApprovalAnswer::Denied { by, reason: reason.filter(|words| !words.is_empty()) };
            }
            read(&answer, request, by)
        })
    }
}

/// The question as a form.
fn form(request: &ApprovalRequest, is_stateless: bool) -> Value {
    let mut answers: Vec<(&str, String)> = request
        .scopes
        .iter()
        .map(|offer| (word(offer.scope), format!("Yes: {}", escape_control(&offer.grants))))
        .collect();
    answers.push(("no", "No".to_owned()));
    answers.push((NO_BECAUSE, "No, and tell the model why".to_owned()));
    answers.push((ABORT, "No, and end this run: its other calls are cancelled, and no more are made".to_owned()));
    let fields = json!({ "answer": elicitation::choice("May this run?", &answers, is_stateless) });
    elicitation::form(&words(request), fields, &["answer"])
}

/// The form for the reason of a no.
fn reason_form(request: &ApprovalRequest) -> Value {
    let fields = json!({ "reason": { "type": "string", "title": "Why not?", "description": "Told to the model." } });
    elicitation::form(&format!("Why should `{}` not run?", escape_control(&request.tool)), fields, &["reason"])
}

fn wants_to_give_reason(answer: &Value) -> bool {
    let is_accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    is_accepted && form_field(answer, "answer") == NO_BECAUSE
}

/// Everything that the person needs to decide.
fn words(request: &ApprovalRequest) -> String {
    let mut text = format!("May this run? {}\n", escape_control(&request.tool));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {}", escape_control(value).replace('\n', "\\n"));
    };
    line("risk", json!(request.risk).as_str().unwrap_or_default());
    line("why asked", &request.reason);
    if let Some(words) = &request.justification {
        line("model says", words);
    }
    line("arguments", &request.args.to_string());
    for effect in &request.effects {
        line("will", &effect.to_string());
    }
    if let Some(diff) = &request.preview {
        let _ = write!(text, "\n{}", escape_control(diff));
    }
    text.push('\n');
    for offer in &request.scopes {
        let grants = escape_control(&offer.grants).trim().replace('\n', "\n             ");
        let _ = writeln!(text, "  {:<10} {grants}", word(offer.scope));
    }
    text
}

fn word(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Call => "yes",
        ApprovalScope::Run => "run",
        ApprovalScope::Session => "session",
        ApprovalScope::Always => "always",
    }
}

/// Reads the answer. Only an offered scope is a yes; a form that was dismissed is no answer.
fn read(answer: &Value, request: &ApprovalRequest, by: String) -> ApprovalAnswer {
    let denied = |by| ApprovalAnswer::Denied { by, reason: None };
    match answer.get("action").and_then(Value::as_str) {
        Some("decline") => denied(by),
        Some("accept") if form_field(answer, "answer") == "no" => denied(by),
        Some("accept") if form_field(answer, "answer") == ABORT => ApprovalAnswer::Aborted { by, reason: None },
        Some("accept") => {
            let granted = request.scopes.iter().find(|offer| word(offer.scope) == form_field(answer, "answer"));
            granted.map_or(ApprovalAnswer::Nobody, |offer| ApprovalAnswer::Granted { scope: offer.scope, by })
        }
        _ => ApprovalAnswer::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{Effect, Risk};
    use toolgate_runtime::ApprovalOption;

    use super::*;

    fn request() -> ApprovalRequest {
        ApprovalRequest {
            tool_call_id: "call_1".into(),
            tool: "delete".into(),
            risk: Risk::High,
            reason: "The preset asks before deleting.".into(),
            justification: Some("It is old.\u{1b}[2J".into()),
            args: json!({ "path": "a.txt" }),
            effects: vec![Effect::delete("a.txt")],
            skill: None,
            preview: Some("--- a/a.txt\n+++ /dev/null\n-hello\n".into()),
            scopes: vec![
                ApprovalOption { scope: ApprovalScope::Call, grants: "this one call".into(), until: None },
                ApprovalOption {
                    scope: ApprovalScope::Run,
                    grants: "`delete` may delete a.txt, until this run ends".into(),
                    until: None,
                },
            ],
            replay: Some("toolgate call --approve delete".into()),
        }
    }

    #[test]
    fn the_person_sees_effects_diff_and_what_each_answer_grants() {
        let message = words(&request());
        for part in ["delete a.txt", "-hello", "this one call", "until this run ends", "high", "It is old.\\u{1b}[2J"] {
            assert!(message.contains(part), "{part} is missing in {message}");
        }
        assert!(!message.contains('\u{1b}'));
    }

    #[test]
    fn a_form_has_no_field_that_may_stay_empty() {
        for is_stateless in [true, false] {
            for form in [form(&request(), is_stateless), reason_form(&request())] {
                let schema = &form["requestedSchema"];
                let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
                assert_eq!(json!(fields), schema["required"], "every field is required: {schema}");
            }
        }
    }

    #[test]
    fn only_what_was_offered_is_a_yes() {
        let says = |action: &str, answer: &str| {
            read(&json!({ "action": action, "content": { "answer": answer } }), &request(), "ada".into())
        };
        let granted = |scope| ApprovalAnswer::Granted { scope, by: "ada".into() };
        let denied = ApprovalAnswer::Denied { by: "ada".into(), reason: None };
        for (action, answer, expected) in [
            ("accept", "yes", granted(ApprovalScope::Call)),
            ("accept", "run", granted(ApprovalScope::Run)),
            ("accept", "always", ApprovalAnswer::Nobody),
            ("accept", "", ApprovalAnswer::Nobody),
            ("accept", "no", denied.clone()),
            ("accept", "abort", ApprovalAnswer::Aborted { by: "ada".into(), reason: None }),
            ("decline", "abort", denied.clone()),
            ("decline", "yes", denied),
            ("cancel", "yes", ApprovalAnswer::Nobody),
            ("", "yes", ApprovalAnswer::Nobody),
        ] {
            assert_eq!(says(action, answer), expected, "{action} {answer}");
        }
        assert_eq!(read(&json!({ "action": "accept" }), &request(), "ada".into()), ApprovalAnswer::Nobody);
    }
}
