//! Questions to the person, as every dialect's `ask` asks them.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Names of the switch by which a model lets the person choose several answers.
const SEVERAL: &[&str] = &["multiSelect", "multiple"];

/// The native call of a list `questions`, each with its `options`.
pub(crate) fn enter_questions(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let choice =
        |option: &Arguments| json!({ "label": option.word("label"), "description": option.text("description") });
    let native = |question: &Arguments| {
        let choices: Vec<Value> = question.objects("options").iter().map(choice).collect();
        json!({ "question": question_text(question), "choices": choices })
    };
    let questions: Vec<Value> = args.objects("questions").iter().map(native).collect();
    Ok(NativeCall::new("ask", json!({ "questions": questions })))
}

/// The question as the person reads it. A form has room for one choice, so several are typed.
pub(crate) fn question_text(question: &Arguments) -> String {
    let several = SEVERAL.iter().any(|name| question.is(name));
    let how = if several { " (Several can be chosen: type them, separated by commas.)" } else { "" };
    format!("{}{how}", question.word("question"))
}

/// Each question with its answer: `"Q"="A"`, separated by commas.
pub(crate) fn answered_pairs(returned: &Returned<'_>) -> String {
    let questions = returned.args.objects("questions");
    let pair = |(question, given): (&Arguments, &Value)| {
        format!("\"{}\"=\"{}\"", question.word("question"), given["answer"].as_str().unwrap_or_default())
    };
    questions.iter().zip(returned.list("answers")).map(pair).collect::<Vec<_>>().join(", ")
}
