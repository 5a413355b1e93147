//! Messages, agents, skills, lists, memories and questions.

use serde_json::{Map, Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::questions::question_text;
use crate::tasks::enter_task;
use crate::todos::write_todos;

pub(super) fn enter_topic(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let parts: Vec<&str> = [args.text("summary"), args.text("strategic_intent")].into_iter().flatten().collect();
    let call = json!({ "title": args.text("title"), "content": parts.join("\n\n"), "level": "progress" });
    Ok(NativeCall::new("display", call))
}

pub(super) fn leave_topic(returned: &mut Returned<'_>) -> ShownResult {
    let args = returned.args;
    let mut lines = Vec::new();
    lines.extend(args.text("title").map(|title| format!("Current topic: \"{title}\"")));
    lines.extend(args.text("summary").map(|summary| format!("Topic summary: {summary}")));
    let intent = format!("Strategic Intent: {}", args.word("strategic_intent"));
    ShownResult::ok(if lines.is_empty() { intent } else { format!("{}\n\n{intent}", lines.join("\n")) })
}

pub(super) fn enter_agent(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(enter_task(args.text("agent_name"), args.word("prompt")))
}

pub(super) fn enter_skill(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("skill", json!({ "name": args.word("name") })))
}

pub(super) fn leave_skill(returned: &mut Returned<'_>) -> ShownResult {
    let (name, content) = (returned.args.word("name"), returned.text("content").trim_end());
    let files: Vec<&str> = returned.list("files").iter().filter_map(Value::as_str).collect();
    let files = match files.is_empty() {
        true => String::new(),
        false => format!("\n<available_resources>\n{}\n</available_resources>", files.join("\n")),
    };
    ShownResult::ok(format!(
        "<activated_skill name=\"{name}\">\n<instructions>\n{content}\n</instructions>{files}\n</activated_skill>"
    ))
}

pub(super) fn enter_todos(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(write_todos(&args.objects("todos"), "description"))
}

pub(super) fn leave_todos(returned: &mut Returned<'_>) -> ShownResult {
    let todos = returned.args.objects("todos");
    if todos.is_empty() {
        return ShownResult::ok("Successfully cleared the todo list.");
    }
    let line = |(number, todo): (usize, &Arguments)| {
        format!("{number}. [{}] {}", todo.word("status"), todo.word("description"))
    };
    let lines: Vec<String> = (1..).zip(&todos).map(line).collect();
    ShownResult::ok(format!("Successfully updated the todo list. The current list is now:\n{}", lines.join("\n")))
}

pub(super) fn enter_memory(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("memory", json!({ "action": "create", "content": args.word("fact") })))
}

pub(super) fn leave_memory(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(format!("Remembered: \"{}\"", returned.args.word("fact")))
}

pub(super) fn enter_ask(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let native = |question: &Arguments| {
        let choices: Vec<Value> = match question.word("type") {
            "text" => Vec::new(),
            "yesno" => vec![json!({ "label": "Yes" }), json!({ "label": "No" })],
            _ => question.objects("options").iter().map(choice).collect(),
        };
        json!({ "question": question_text(question), "choices": choices, "free_text": question.word("type") != "yesno" })
    };
    let questions: Vec<Value> = args.objects("questions").iter().map(native).collect();
    Ok(NativeCall::new("ask", json!({ "questions": questions })))
}

fn choice(option: &Arguments) -> Value {
    json!({ "label": option.word("label"), "description": option.text("description") })
}

/// The answers by the number of their question, from 0.
pub(super) fn leave_ask(returned: &mut Returned<'_>) -> ShownResult {
    let answers = returned.list("answers").iter().enumerate();
    let answers: Map<String, Value> =
        answers.map(|(index, answer)| (index.to_string(), answer["answer"].clone())).collect();
    ShownResult::ok(json!({ "answers": answers }).to_string())
}
