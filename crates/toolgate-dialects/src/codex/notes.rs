//! Plans and questions.

use serde_json::{Map, Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

pub(super) fn enter_plan(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let steps: Vec<Value> = args
        .objects("plan")
        .iter()
        .map(|step| json!({ "step": step.word("step"), "status": step.word("status") }))
        .collect();
    Ok(NativeCall::new("plan", json!({ "steps": steps, "explanation": args.text("explanation") })))
}

pub(super) fn leave_plan(_: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok("Plan updated")
}

pub(super) fn leave_ask(returned: &mut Returned<'_>) -> ShownResult {
    let questions = returned.args.objects("questions");
    let given = returned.field("answers").as_array().cloned().unwrap_or_default();
    let answers: Map<String, Value> = questions
        .iter()
        .zip(&given)
        .map(|(question, answer)| (question.word("id").to_owned(), json!({ "answers": [answer["answer"]] })))
        .collect();
    ShownResult::ok(json!({ "answers": answers }).to_string())
}
