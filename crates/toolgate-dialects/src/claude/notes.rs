//! Lists, questions, skills and pages.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::QUESTION;
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Objects, Text};
use crate::parameter::{Arguments, Parameter};
use crate::questions::enter_questions;

pub(super) const SKILL: &[Parameter] =
    &[Parameter::required("skill", Text, "The skill's name"), Parameter::optional("args", Text, "What to do with it")];
pub(super) const ASK: &[Parameter] = &[Parameter::required("questions", Objects(QUESTION), "One to four questions")];

pub(super) fn enter_todos(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let todos: Vec<Value> = args
        .objects("todos")
        .iter()
        .map(|todo| {
            let mut native = json!({ "content": todo.word("content"), "status": todo.word("status") });
            if let Some(priority) = todo.text("priority") {
                native["priority"] = priority.into();
            }
            native
        })
        .collect();
    Ok(NativeCall::new("todo_write", json!({ "todos": todos })))
}

pub(super) fn leave_todos(_: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(
        "Todos have been modified successfully. Go on with the task that is in progress, and keep the list current.",
    )
}

pub(super) fn enter_fetch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["offset"])?;
    let url = args.word("url");
    let url = url.strip_prefix("http://").map_or_else(|| url.to_owned(), |rest| format!("https://{rest}"));
    Ok(NativeCall::new("fetch", json!({ "url": url })))
}

pub(super) fn leave_fetch(returned: &mut Returned<'_>) -> ShownResult {
    let (content, prompt) = (returned.text("content").trim_end(), returned.args.word("prompt"));
    ShownResult::ok(format!("{content}\n\nThis is the page's own text. Your question was: {prompt}"))
}

pub(super) fn enter_skill(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("skill", json!({ "name": args.word("skill") })))
}

pub(super) fn leave_skill(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(returned.text("content"))
}

pub(super) fn enter_ask(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    if args.objects("questions").iter().any(|question| question.is("multiSelect")) {
        let error = ToolError::invalid_args("Only one answer to a question can be chosen here.");
        return Err(error.with_hint("Set `multiSelect` to false, or ask several questions.").into());
    }
    enter_questions(args, memory)
}

pub(super) fn leave_ask(returned: &mut Returned<'_>) -> ShownResult {
    let questions = returned.args.objects("questions");
    let answers = returned.field("answers").as_array().cloned().unwrap_or_default();
    let pairs: Vec<String> = questions
        .iter()
        .zip(&answers)
        .map(|(question, answer)| {
            format!("\"{}\"=\"{}\"", question.word("question"), answer["answer"].as_str().unwrap_or_default())
        })
        .collect();
    ShownResult::ok(format!(
        "Your questions have been answered: {}. You can now continue with these answers in mind.",
        pairs.join(", ")
    ))
}
