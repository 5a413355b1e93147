//! Questions to the person, as every dialect's `ask` asks them.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// The native call of a list `questions`, each with its `options`.
pub(crate) fn enter_questions(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let choice =
        |option: &Arguments| json!({ "label": option.word("label"), "description": option.text("description") });
    let native = |question: &Arguments| {
        let choices: Vec<Value> = question.objects("options").iter().map(choice).collect();
        json!({ "question": question.word("question"), "choices": choices })
    };
    let questions: Vec<Value> = args.objects("questions").iter().map(native).collect();
    Ok(NativeCall::new("ask", json!({ "questions": questions })))
}
