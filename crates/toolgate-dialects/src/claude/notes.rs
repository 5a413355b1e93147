//! Lists, questions, skills and pages.

use serde_json::{Value, json};

use super::QUESTION;
use super::files::REMINDER;
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::fence::without_tags;
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Objects, Text};
use crate::parameter::{Arguments, Parameter};
use crate::questions::answered_pairs;
use crate::todos::write_todos;

pub(super) const SKILL: &[Parameter] =
    &[Parameter::required("skill", Text, "The skill's name"), Parameter::optional("args", Text, "What to do with it")];
/// Where a skill of this client has its arguments.
const ARGUMENTS: &str = "$ARGUMENTS";

pub(super) const ASK: &[Parameter] = &[Parameter::required("questions", Objects(QUESTION), "One to four questions")];

pub(super) fn enter_todos(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(write_todos(&args.objects("todos"), "content"))
}

pub(super) fn leave_todos(_: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(
        "Todos have been modified successfully. Go on with the task that is in progress, and keep the list current.",
    )
}

pub(super) fn leave_todo_read(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(format!("This is the current list:\n{}", returned.field("todos")))
}

pub(super) fn enter_fetch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let url = args.word("url");
    let url = url.strip_prefix("http://").map_or_else(|| url.to_owned(), |rest| format!("https://{rest}"));
    Ok(NativeCall::new("fetch", json!({ "url": url })))
}

pub(super) fn leave_fetch(returned: &mut Returned<'_>) -> ShownResult {
    let (content, prompt) = (returned.text("content").trim_end(), returned.args.word("prompt"));
    let skipped = usize::try_from(returned.args.integer("offset").unwrap_or(0)).unwrap_or(usize::MAX);
    if let Some(artifact) = returned.artifact().filter(|_| skipped > 0) {
        return ShownResult::error(format!(
            "The page is too long to be shown from character {skipped} on. All of it can be read with the tool `artifact`: {artifact}"
        ));
    }
    let content: String = content.chars().skip(skipped).collect();
    let content = without_tags(&content, &[REMINDER]);
    ShownResult::ok(format!("{content}\n\nThis is the page's own text. Your question was: {prompt}"))
}

pub(super) fn enter_skill(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("skill", json!({ "name": args.word("skill") })))
}

/// The instructions, with what the model wants of the skill in the place that they have for it, or behind them.
pub(super) fn leave_skill(returned: &mut Returned<'_>) -> ShownResult {
    let (content, wanted) = (returned.text("content").trim_end(), returned.args.word("args"));
    let mut text = content.replace(ARGUMENTS, wanted);
    if !wanted.is_empty() && !content.contains(ARGUMENTS) {
        text += &format!("\n\nARGUMENTS: {wanted}");
    }
    let files: Vec<&str> = returned.list("files").iter().filter_map(Value::as_str).collect();
    if !files.is_empty() {
        text += &format!("\n\nIts files, in {}:\n{}", returned.text("path"), files.join("\n"));
    }
    ShownResult::ok(text)
}

pub(super) fn leave_ask(returned: &mut Returned<'_>) -> ShownResult {
    let pairs = answered_pairs(returned);
    ShownResult::ok(format!(
        "Your questions have been answered: {pairs}. You can now continue with these answers in mind."
    ))
}
