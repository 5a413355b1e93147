//! Tools that the suite asks for: each shows one thing that a result can hold, or one way to ask the client for more.

use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use serde_json::{Map, Value, json};
use toolgate_contract::{
    AnyTool, ArgumentFormat, BoxFuture, Declaration, Effect, ErrorCode, Hands, Message, MessageLevel, Permission,
    PreparedCall, Preview, Risk, SideEffect, ToolError, VersionAdapter, schemars::Schema,
};

use toolgate_mcp::{ClientCall, JsonRpcError, ListKind};

use crate::extension::{ConformanceExtension, PIXEL, accepted, question};

/// The shortest sound.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The result of `tools/call`, or an error of the protocol; a tool's own error goes through the gate.
type FixtureOutcome = Result<Result<Value, JsonRpcError>, ToolError>;

/// What a fixture does.
type FixtureAction = for<'a> fn(Value, &'a dyn Hands, ClientCall) -> BoxFuture<'a, FixtureOutcome>;

/// Every fixture: name, arguments that are needed, act.
const FIXTURES: &[(&str, &[&str], FixtureAction)] = &[
    ("test_simple_text", &[], |_, _, _| shown(words("This is a simple text response for testing."))),
    ("test_image_content", &[], |_, _, _| shown(image())),
    ("test_audio_content", &[], |_, _, _| shown(json!({ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" }))),
    ("test_embedded_resource", &[], |_, _, _| {
        shown(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))
    }),
    ("test_multiple_content_types", &[], |_, _, _| {
        let data = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
        contents(vec![words("Multiple content types test:"), image(), data])
    }),
    ("test_error_handling", &[], |_, _, _| {
        let message = "This tool intentionally returns an error for testing.";
        ready(Err(ToolError::new(ErrorCode::IoError, message)))
    }),
    ("test_tool_with_logging", &[], |_, hands, _| said(hands, MessageLevel::Info)),
    ("test_logging_tool", &[], |_, hands, _| said(hands, MessageLevel::Info)),
    ("test_tool_with_progress", &[], |_, hands, _| said(hands, MessageLevel::Progress)),
    ("test_sampling", &["prompt"], |args, _, call| Box::pin(sample(args, call))),
    ("test_elicitation", &["message"], |args, _, call| {
        let field = |what: &str| json!({ "type": "string", "description": what });
        let fields = json!({ "username": field("User's response"), "email": field("User's email address") });
        let message = args["message"].as_str().unwrap_or_default().to_owned();
        Box::pin(elicit(message, fields, &["username", "email"], call))
    }),
    ("test_elicitation_sep1034_defaults", &[], |_, _, call| {
        Box::pin(elicit("Please fill in.".into(), with_defaults(), &[], call))
    }),
    ("test_elicitation_sep1330_enums", &[], |_, _, call| {
        Box::pin(elicit("Please choose.".into(), choices(), &[], call))
    }),
    ("test_missing_capability", &[], |_, _, call| match call.can("sampling") {
        true => shown(words("The client can sample.")),
        false => ready(Ok(Err(JsonRpcError::missing_capability("sampling")))),
    }),
    ("test_trigger_tool_change", &[], |_, _, call| announced(&call, ListKind::Tools)),
    ("test_trigger_prompt_change", &[], |_, _, call| announced(&call, ListKind::Prompts)),
    ("test_streaming_elicitation", &[], |_, _, call| ask_for(&call, &["user_name"], None)),
    ("test_input_required_result_elicitation", &[], |_, _, call| ask_for(&call, &["user_name"], None)),
    ("test_input_required_result_sampling", &[], |_, _, call| ask_for(&call, &["capital_question"], None)),
    ("test_input_required_result_list_roots", &[], |_, _, call| ask_for(&call, &["client_roots"], None)),
    ("test_input_required_result_request_state", &[], |_, _, call| ask_for(&call, &["confirm"], Some(1))),
    ("test_input_required_result_tampered_state", &[], |_, _, call| ask_for(&call, &["confirm"], Some(1))),
    ("test_input_required_result_multiple_inputs", &[], |_, _, call| {
        ask_for(&call, &["user_name", "greeting", "client_roots"], Some(1))
    }),
    ("test_input_required_result_multi_round", &[], |_, _, call| match call.state().and_then(Value::as_u64) {
        Some(1) if accepted(call.inputs(), "step1").is_some() => ask_for(&call, &["step2"], Some(2)),
        Some(2) => ask_for(&call, &["step2"], Some(2)),
        _ => ask_for(&call, &["step1"], Some(1)),
    }),
    ("test_input_required_result_capabilities", &[], |_, _, call| {
        let can = |name: &str| call.can(name);
        let wanted: Vec<&str> =
            [("elicitation", "user_name"), ("sampling", "capital_question"), ("roots", "client_roots")]
                .into_iter()
                .filter(|(capability, _)| can(capability))
                .map(|(_, key)| key)
                .collect();
        ask_for(&call, &wanted, None)
    }),
];

/// Every fixture as a tool, which finds its client by way of the extension.
pub(crate) fn all(extension: &Arc<ConformanceExtension>) -> Vec<Arc<dyn AnyTool>> {
    let tool = |&(name, needed, action): &(&'static str, &[&str], FixtureAction)| -> Arc<dyn AnyTool> {
        Arc::new(Fixture { declaration: declaration(name, needed), action, extension: Arc::clone(extension) })
    };
    FIXTURES.iter().map(tool).collect()
}

struct Fixture {
    declaration: Declaration,
    action: FixtureAction,
    extension: Arc<ConformanceExtension>,
}

impl AnyTool for Fixture {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(PreparedFixture { args, action: self.action, extension: Arc::clone(&self.extension) }))
    }
}

struct PreparedFixture {
    args: Value,
    action: FixtureAction,
    extension: Arc<ConformanceExtension>,
}

impl PreparedCall for PreparedFixture {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    fn preview(&self, _hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        Ok(None)
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let call = self.extension.call(hands.call());
            let call = call.ok_or_else(|| ToolError::internal("Only an MCP client can call this."))?;
            let result = (self.action)(self.args, hands, call).await?;
            self.extension.set_result(hands.call(), result);
            Ok(json!({}))
        })
    }
}

fn declaration(name: &str, needed: &[&str]) -> Declaration {
    let properties: Map<String, Value> =
        needed.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let schema = |value: Value| Schema::try_from(value).expect("an object is a schema");
    Declaration {
        name: name.into(),
        version: Version::new(1, 0, 0),
        description: "For the conformance suite.".into(),
        args_schema: schema(json!({
            "type": "object", "properties": properties, "required": needed, "additionalProperties": false,
        })),
        return_schema: schema(json!({})),
        required_permissions: vec![Permission::Agent],
        side_effects: vec![SideEffect::SpeaksToPerson],
        risk: Risk::Low,
        parallel: true,
        form: ArgumentFormat::Function { strict: false },
        result_form: toolgate_contract::ResultForm::Fields,
    }
}

fn words(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })
}

fn resource(uri: &str, mime: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } })
}

fn shown<'a>(content: Value) -> BoxFuture<'a, FixtureOutcome> {
    contents(vec![content])
}

fn ready<'a>(outcome: FixtureOutcome) -> BoxFuture<'a, FixtureOutcome> {
    Box::pin(std::future::ready(outcome))
}

/// A result with this content.
fn complete(content: impl Into<Value>) -> FixtureOutcome {
    Ok(Ok(json!({ "content": content.into() })))
}

fn contents<'a>(contents: Vec<Value>) -> BoxFuture<'a, FixtureOutcome> {
    ready(complete(contents))
}

/// Says three things, some time apart.
fn said(hands: &dyn Hands, level: MessageLevel) -> BoxFuture<'_, FixtureOutcome> {
    Box::pin(async move {
        for content in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            let content = content.to_owned();
            hands.say(&Message { level, title: None, content, thought: None, evidence: Vec::new() })?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        complete(vec![words("It said three things.")])
    })
}

fn announced<'a>(call: &ClientCall, changed: ListKind) -> BoxFuture<'a, FixtureOutcome> {
    call.announce(changed);
    shown(words("Told every client."))
}

async fn sample(args: Value, call: ClientCall) -> FixtureOutcome {
    let content = words(args["prompt"].as_str().unwrap_or_default());
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 });
    let answer = asked(&call, "sampling", "sampling/createMessage", params).await?;
    complete(vec![words(&format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))])
}

async fn elicit(message: String, fields: Value, needed: &[&str], call: ClientCall) -> FixtureOutcome {
    let schema = json!({ "type": "object", "properties": fields, "required": needed });
    let params = json!({ "message": message, "requestedSchema": schema });
    let answer = asked(&call, "elicitation", "elicitation/create", params).await?;
    complete(vec![words(&format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]))])
}

async fn asked(call: &ClientCall, capability: &str, method: &str, params: Value) -> Result<Value, ToolError> {
    if call.is_stateless() || !call.can(capability) {
        return Err(ToolError::new(ErrorCode::IoError, format!("The client can't be asked for {capability}.")));
    }
    let answer = call.ask(method, params).await;
    answer.and_then(Result::ok).ok_or_else(|| ToolError::new(ErrorCode::IoError, "The client didn't answer."))
}

/// Asks for inputs by their keys, unless they came along; with a state to bring back, if there is one.
fn ask_for<'a>(call: &ClientCall, keys: &[&str], state: Option<u64>) -> BoxFuture<'a, FixtureOutcome> {
    let inputs = call.inputs();
    let is_here = |key: &&str| match *key {
        "client_roots" => inputs.get(*key).is_some_and(|input| input["roots"].is_array()),
        "capital_question" | "greeting" => inputs.get(*key).is_some_and(|input| input["content"].is_object()),
        key => accepted(inputs, key).is_some(),
    };
    let has_state = state.is_none() || call.state().and_then(Value::as_u64) == state;
    if has_state && keys.iter().all(is_here) {
        return shown(words("Thank you. state-ok"));
    }
    let requests: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), wanted(key))).collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["state"] = state.into();
    }
    ready(Ok(Ok(result)))
}

/// What a key asks for.
fn wanted(key: &str) -> Value {
    let sample = |text: &str| {
        let messages = json!([{ "role": "user", "content": words(text) }]);
        json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } })
    };
    match key {
        "client_roots" => json!({ "method": "roots/list", "params": {} }),
        "capital_question" => sample("What is the capital of France?"),
        "greeting" => sample("Generate a greeting"),
        "confirm" => question("Please confirm", "ok", "boolean"),
        "step1" => question("Step 1: What is your name?", "name", "string"),
        "step2" => question("Step 2: What is your favorite color?", "color", "string"),
        _ => question("What is your name?", "name", "string"),
    }
}

fn with_defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn choices() -> Value {
    let titled = |title: &str| -> Vec<Value> {
        let choice = |(value, number): (&str, &str)| json!({ "const": value, "title": format!("{number} {title}") });
        [("value1", "First"), ("value2", "Second"), ("value3", "Third")].into_iter().map(choice).collect()
    };
    let plain = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}
