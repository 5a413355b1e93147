//! The provider-neutral protocol for models without function calling: each answer is one JSON object,
//! `{"tool_calls":[…],"final_answer":""}`. A single call can also be `{"tool":"…","args":{…}}`.

use serde::Deserialize;
use serde_json::Value;
use toolgate_contract::Declaration;

use crate::tool_call::{ToolCall, ToolCallKind};

/// An answer in this protocol.
#[derive(Debug, Clone, PartialEq)]
pub enum NeutralAnswer {
    /// The model asks for these calls.
    Calls(Vec<ToolCall>),
    /// The final answer.
    Final(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeutralMessage {
    #[serde(default)]
    tool_calls: Vec<NeutralCall>,
    #[serde(default)]
    final_answer: Option<String>,
    /// The tool of a single call.
    #[serde(default)]
    tool: Option<String>,
    /// The arguments of a single call.
    #[serde(default)]
    args: Option<Value>,
    /// Models often add their reasoning; it is accepted and ignored.
    #[serde(default, rename = "thought")]
    _thought: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeutralCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default = "no_arguments", alias = "args")]
    arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Parses an answer, or returns in words for the model what is wrong with it.
pub fn parse_neutral(text: &str) -> Result<NeutralAnswer, String> {
    let wire: NeutralMessage = serde_json::from_str(unfenced(text)).map_err(|fault| {
        format!("Your answer is not an object of the form {FORM}: {fault}. Answer with that object alone.")
    })?;
    let answer = wire.final_answer.filter(|answer| !answer.trim().is_empty());
    let mut calls = wire.tool_calls;
    match (wire.tool, wire.args) {
        (Some(name), args) => {
            calls.push(NeutralCall { id: None, name, arguments: args.unwrap_or_else(no_arguments) });
        }
        (None, Some(_)) => return Err("There are `args` without a `tool`. Name the tool, too.".into()),
        (None, None) => {}
    }
    match (calls.is_empty(), answer) {
        (false, _) => Ok(NeutralAnswer::Calls(calls.into_iter().enumerate().map(asked).collect())),
        (true, Some(answer)) => Ok(NeutralAnswer::Final(answer)),
        (true, None) => {
            Err("Both `tool_calls` and `final_answer` are empty. Call a tool, or give your final answer.".into())
        }
    }
}

const FORM: &str = r#"{"tool_calls":[{"name":"…","arguments":{…}}],"final_answer":""}"#;

fn asked((index, call): (usize, NeutralCall)) -> ToolCall {
    let id = call.id.unwrap_or_else(|| format!("{}", index + 1));
    ToolCall { id, name: call.name, args: Ok(call.arguments), shape: ToolCallKind::Function }
}

/// The text without a Markdown code fence around it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(text).trim()
}

/// Describes the protocol and the tools to a model.
pub fn neutral_instructions(tools: &[Declaration]) -> String {
    let mut text = format!(
        "Answer with one JSON object and nothing else: {FORM}\n\
         Fill `tool_calls` to use tools; their results come with the next message. When you are done, leave it empty and \
         put your answer into `final_answer`. Never leave both empty.\n\nThe tools:\n"
    );
    for tool in tools {
        text.push_str(&format!("\n{}: {}\narguments: {}\n", tool.name, tool.description, tool.args_schema.as_value()));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_then_an_answer() {
        let text = r#"{"tool_calls":[{"name":"read","arguments":{"path":"internal/db/db.go"}}],"final_answer":""}"#;
        let Ok(NeutralAnswer::Calls(calls)) = parse_neutral(text) else { panic!("calls") };
        assert_eq!(
            (calls[0].name.as_str(), calls[0].args.clone().unwrap()),
            ("read", json!({ "path": "internal/db/db.go" }))
        );
        let done = r#"{"tool_calls":[],"final_answer":"It works."}"#;
        assert_eq!(parse_neutral(done), Ok(NeutralAnswer::Final("It works.".into())));
        assert_eq!(parse_neutral(&format!("```json\n{done}\n```")), Ok(NeutralAnswer::Final("It works.".into())));
    }

    #[test]
    fn a_single_call_can_be_an_object_of_its_own() {
        let text = r#"{"tool":"display","args":{"title":"代码审计","content":"发现 2 处高风险点，准备修复。","level":"warning"}}"#;
        let Ok(NeutralAnswer::Calls(calls)) = parse_neutral(text) else { panic!("a call") };
        assert_eq!((calls.len(), calls[0].name.as_str()), (1, "display"));
        assert_eq!(calls[0].args.as_ref().unwrap()["level"], "warning");
        let Ok(NeutralAnswer::Calls(calls)) = parse_neutral(r#"{"tool":"todo_read"}"#) else { panic!("a call") };
        assert_eq!(calls[0].args.clone().unwrap(), json!({}));
    }

    #[test]
    fn what_is_wrong_is_said_to_the_model() {
        let table = [
            (r#"{"args":{}}"#, "`args` without a `tool`"),
            (r#"{"tool_calls":[],"final_answer":""}"#, "Both `tool_calls` and `final_answer` are empty"),
            ("{}", "Both `tool_calls` and `final_answer` are empty"),
            ("Sure, let me look.", "not an object of the form"),
            (r#"{"tool_calls":[{"arguments":{}}]}"#, "missing field `name`"),
            (r#"{"tools":[]}"#, "unknown field `tools`"),
        ];
        for (text, expected) in table {
            let said = parse_neutral(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
