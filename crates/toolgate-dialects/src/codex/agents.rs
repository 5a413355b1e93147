//! Other agents, in the three forms that Codex has had: by `id`, by `target`, and in the namespace `collaboration`.

use serde_json::{Map, Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{Answered, DialectTool, EnterFault, NativeCall, Returned, ShownResult, not_here};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Any, Boolean, Text, Texts};
use crate::parameter::{ANY_INTEGER, Arguments, Parameter};
use crate::shell::seconds;

/// The bounds of a wait for an agent, in milliseconds, and the usual one.
const WAIT_BOUNDS: (i64, i64) = (10_000, 3_600_000);
const DEFAULT_WAIT: i64 = 30_000;

const MESSAGE: Parameter = Parameter::optional("message", Text, "The task, or what to tell the agent");
const ITEMS: Parameter = Parameter::optional("items", Any, "Not here: send `message`");
const INTERRUPT: Parameter =
    Parameter::optional("interrupt", Boolean, "Not here: the message is read before the next turn");
const TIMEOUT: Parameter = Parameter::optional("timeout_ms", ANY_INTEGER, "How long to wait, in milliseconds");
const TARGET: Parameter = Parameter::optional("target", Text, "The agent's id");
const ID: Parameter = Parameter::optional("id", Text, "The agent's id");

const SPAWN: &[Parameter] = &[
    MESSAGE,
    ITEMS,
    Parameter::optional("task_name", Text, "The task in a word"),
    Parameter::optional("fork_context", Boolean, "Not here: an agent sees only its task"),
    Parameter::optional("fork_turns", Text, "Not here: an agent sees only its task"),
    Parameter::optional("agent_type", Text, "The kind of agent"),
    Parameter::optional("model", Text, "Not chosen here"),
    Parameter::optional("reasoning_effort", Text, "Not chosen here"),
];
const SEND: &[Parameter] = &[TARGET, ID, MESSAGE, ITEMS, INTERRUPT];
const WAIT: &[Parameter] = &[
    Parameter::optional("targets", Texts, "The agents' ids"),
    Parameter::optional("ids", Texts, "The agents' ids"),
    TIMEOUT,
];
const STOP: &[Parameter] = &[TARGET, ID];
const LIST: &[Parameter] = &[Parameter::optional("path_prefix", Text, "Not here: agents have no paths")];

pub(super) const SPAWN_TOOL: DialectTool = DialectTool {
    aliases: &["multi_agent_v1.spawn_agent", "collaboration.spawn_agent"],
    ..DialectTool::new("spawn_agent", "agents", "Starts an agent.", SPAWN, enter_spawn, leave_spawn)
};
pub(super) const SEND_TOOL: DialectTool = DialectTool {
    aliases: &[
        "multi_agent_v1.send_input",
        "send_message",
        "collaboration.send_message",
        "followup_task",
        "collaboration.followup_task",
    ],
    ..DialectTool::new("send_input", "agents", "Tells an agent something.", SEND, enter_send, leave_send)
};
pub(super) const WAIT_TOOL: DialectTool = DialectTool {
    aliases: &["multi_agent_v1.wait_agent", "collaboration.wait_agent"],
    ..DialectTool::new("wait_agent", "agents", "Waits for agents.", WAIT, enter_wait, leave_wait)
};
pub(super) const WAIT_TOOL_2026_01: DialectTool =
    DialectTool::new("wait", "agents", "Waits for agents.", WAIT, enter_wait, leave_wait);
pub(super) const STOP_TOOL: DialectTool = DialectTool {
    aliases: &["multi_agent_v1.close_agent", "interrupt_agent", "collaboration.interrupt_agent"],
    ..DialectTool::new("close_agent", "agents", "Stops an agent.", STOP, enter_stop, leave_stop)
};
pub(super) const LIST_TOOL: DialectTool = DialectTool {
    aliases: &["collaboration.list_agents"],
    ..DialectTool::new("list_agents", "agents", "Lists the agents.", LIST, enter_list, leave_list)
};

fn missing(name: &str) -> EnterFault {
    ToolError::invalid_args(format!("failed to parse function arguments: missing field `{name}`")).into()
}

fn message(args: &Arguments) -> Result<&str, EnterFault> {
    not_here(args, &["items"])?;
    args.text("message").ok_or_else(|| missing("message"))
}

fn agent(args: &Arguments) -> Result<&str, EnterFault> {
    args.text("target").or(args.text("id")).ok_or_else(|| missing("target"))
}

fn enter_spawn(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["fork_context", "model", "reasoning_effort"])?;
    if args.text("fork_turns").is_some_and(|turns| turns != "none") {
        return Err(ToolError::invalid_args(
            "An agent can't be given this conversation; say in `message` what it needs.",
        )
        .into());
    }
    let kind = args.text("agent_type").filter(|kind| *kind != "default");
    Ok(NativeCall::new("agents", json!({ "action": "spawn", "agent": kind, "objective": message(args)? })))
}

fn leave_spawn(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(json!({ "agent_id": returned.field("agents")[0]["id"] }).to_string())
}

fn enter_send(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["interrupt"])?;
    let call = json!({ "action": "message", "id": agent(args)?, "text": message(args)? });
    Ok(NativeCall::new("agents", call))
}

fn leave_send(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(json!({ "submission_id": returned.reply.tool_call_id }).to_string())
}

fn waited_for(args: &Arguments) -> Vec<&str> {
    args.texts("targets").or(args.texts("ids")).unwrap_or_default()
}

/// Waits for one agent after the other; without names, for whoever is there.
fn enter_wait(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    match waited_for(args).first() {
        Some(first) => Ok(wait_for(first, args)),
        None => {
            Ok(NativeCall { then: Some(wait_for_the_first), ..NativeCall::new("agents", json!({ "action": "list" })) })
        }
    }
}

fn wait_for(agent: &str, args: &Arguments) -> NativeCall {
    let limit = args.integer("timeout_ms").unwrap_or(DEFAULT_WAIT).clamp(WAIT_BOUNDS.0, WAIT_BOUNDS.1);
    let call = json!({ "action": "wait", "id": agent, "seconds": seconds(limit) });
    NativeCall { then: Some(wait_for_the_next), ..NativeCall::new("agents", call) }
}

fn wait_for_the_next(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let next = waited_for(answered.args).get(answered.earlier.len() + 1).copied();
    Ok(next.filter(|_| answered.reply.error.is_none()).map(|agent| wait_for(agent, answered.args)))
}

/// The first agent of the list that still works.
fn wait_for_the_first(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let agents = answered.reply.payload.as_ref().and_then(|payload| payload["agents"].as_array());
    let working = agents.into_iter().flatten().find(|agent| agent["finish"].is_null());
    Ok(working
        .and_then(|agent| agent["id"].as_str())
        .map(|agent| NativeCall { then: None, ..wait_for(agent, answered.args) }))
}

fn leave_wait(returned: &mut Returned<'_>) -> ShownResult {
    let replies = returned.earlier.iter().chain([returned.reply]);
    let agents = replies.filter_map(|reply| reply.payload.as_ref()?["agents"].as_array()).flatten();
    let status: Map<String, Value> =
        agents.map(|agent| (agent["id"].as_str().unwrap_or_default().to_owned(), status(agent))).collect();
    let timed_out = !status.is_empty() && status.values().all(|status| status == "running");
    ShownResult::ok(json!({ "status": status, "timed_out": timed_out }).to_string())
}

/// How an agent is, as this client says it.
fn status(agent: &Value) -> Value {
    match agent["finish"].as_str() {
        None => json!("running"),
        Some("answered") => json!({ "completed": agent["summary"] }),
        Some("cancelled") => json!("shutdown"),
        Some(_) => json!({ "errored": agent["summary"] }),
    }
}

fn enter_stop(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("agents", json!({ "action": "stop", "id": agent(args)? })))
}

fn leave_stop(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(json!({ "status": status(&returned.field("agents")[0]) }).to_string())
}

fn enter_list(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    not_here(args, &["path_prefix"])?;
    Ok(NativeCall::new("agents", json!({ "action": "list" })))
}

fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let agents = returned.field("agents").as_array().cloned().unwrap_or_default();
    let agents: Vec<Value> =
        agents.iter().map(|agent| json!({ "agent_id": agent["id"], "status": status(agent) })).collect();
    ShownResult::ok(json!({ "agents": agents }).to_string())
}
