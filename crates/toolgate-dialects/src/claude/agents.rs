//! Other agents, web search aside: `Agent` (`Task` before 2.1), `SendMessage` and `ListAgents`.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Boolean, Text};
use crate::parameter::{Arguments, Parameter};

const DESCRIPTION: Parameter = Parameter::required("description", Text, "The task in a few words");
const PROMPT: Parameter = Parameter::required("prompt", Text, "The task, with everything that the agent needs to know");
const MODEL: Parameter = Parameter::optional("model", Text, "Not chosen here");
const BACKGROUND: Parameter = Parameter::optional("run_in_background", Boolean, "Start it and go on");
pub(super) const AGENT: &[Parameter] = &[
    DESCRIPTION,
    PROMPT,
    Parameter::optional("subagent_type", Text, "The kind of agent"),
    MODEL,
    Parameter::optional("effort", Text, "Not chosen here"),
    BACKGROUND,
    Parameter::optional("isolation", Text, "Not here: agents share the workspace"),
    Parameter::optional("name", Text, "Not here: agents are known by their ids"),
];
pub(super) const TASK: &[Parameter] =
    &[DESCRIPTION, PROMPT, Parameter::required("subagent_type", Text, "The kind of agent"), MODEL, BACKGROUND];
pub(super) const SEND: &[Parameter] = &[
    Parameter::required("to", Text, "The agent's id"),
    Parameter::required("message", Text, "What to tell it"),
    Parameter::optional("summary", Text, "The message in a few words"),
    Parameter::optional("notify_when_idle", Boolean, "Not here: ListAgents shows who has ended"),
];

/// Without a wish, the answer is waited for: nobody would tell the model later that an agent has ended.
pub(super) fn enter_agent(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["model", "effort", "isolation", "name"])?;
    let (agent, objective) = (args.text("subagent_type").map(native_kind), args.word("prompt"));
    Ok(match args.is("run_in_background") {
        true => NativeCall::new("agents", json!({ "action": "spawn", "agent": agent, "objective": objective })),
        false => NativeCall::new("task", json!({ "agent": agent, "objective": objective })),
    })
}

/// The native kind of agent behind the client's name for it.
fn native_kind(kind: &str) -> String {
    match kind.to_ascii_lowercase().as_str() {
        "general-purpose" => "general".to_owned(),
        other => other.to_owned(),
    }
}

pub(super) fn leave_agent(returned: &mut Returned<'_>) -> ShownResult {
    if returned.args.is("run_in_background") {
        let id = returned.field("agents")[0]["id"].as_str().unwrap_or_default();
        return ShownResult::ok(format!("Async agent launched successfully.\nagentId: {id}"));
    }
    match returned.field("ok").as_bool() {
        Some(true) => ShownResult::ok(returned.text("summary")),
        _ => ShownResult::error(returned.text("summary")),
    }
}

pub(super) fn enter_send(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["notify_when_idle"])?;
    let call = json!({ "action": "message", "id": args.word("to"), "text": args.word("message") });
    Ok(NativeCall::new("agents", call))
}

pub(super) fn leave_send(returned: &mut Returned<'_>) -> ShownResult {
    let sent = json!({ "success": true, "message": format!("Message sent to {}", returned.args.word("to")) });
    ShownResult::ok(sent.to_string())
}

pub(super) fn enter_list(_: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("agents", json!({ "action": "list" })))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let agents = returned.field("agents").as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |agent: &Value| {
        let text = |name: &str| agent[name].as_str().unwrap_or_default();
        let state = if agent["finish"].is_null() { "running" } else { "completed" };
        let summary = agent["summary"].as_str().map(|summary| format!(": {summary}")).unwrap_or_default();
        format!("{} [{state}] {}{summary}", text("id"), text("agent"))
    };
    let lines: Vec<String> = agents.iter().map(line).collect();
    ShownResult::ok(if lines.is_empty() { "No agents found".to_owned() } else { lines.join("\n") })
}
