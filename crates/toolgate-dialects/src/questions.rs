//! Questions to the person, as every dialect's `ask` asks them.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{EnterFault, NativeCall, Returned};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Names of the switch by which a model lets the person choose several answers.
const SEVERAL: &[&str] = &["multiSelect", "multiple"];

/// The native call of a list `questions`, each with its `options`.
pub(crate) fn enter_questions(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_several(args)?;
    let choice =
        |option: &Arguments| json!({ "label": option.word("label"), "description": option.text("description") });
    let native = |question: &Arguments| {
        let choices: Vec<Value> = question.objects("options").iter().map(choice).collect();
        json!({ "question": question.word("question"), "choices": choices })
    };
    let questions: Vec<Value> = args.objects("questions").iter().map(native).collect();
    Ok(NativeCall::new("ask", json!({ "questions": questions })))
}

/// Refuses questions to which several answers can be chosen.
pub(crate) fn refuse_several(args: &Arguments) -> Result<(), EnterFault> {
    let questions = args.objects("questions");
    match SEVERAL.iter().find(|name| questions.iter().any(|question| question.is(name))) {
        None => Ok(()),
        Some(name) => {
            let error = ToolError::invalid_args("Only one answer to a question can be chosen here.");
            Err(error.with_hint(format!("Set `{name}` to false, or ask several questions.")).into())
        }
    }
}

/// Each question with its answer: `"Q"="A"`, separated by commas.
pub(crate) fn answered_pairs(returned: &Returned<'_>) -> String {
    let pair = |given: &Value| {
        let text = |name: &str| given[name].as_str().unwrap_or_default();
        format!("\"{}\"=\"{}\"", text("question"), text("answer"))
    };
    returned.list("answers").iter().map(pair).collect::<Vec<_>>().join(", ")
}
