//! Tools that the suite asks for: each shows one thing that a result can hold, or one way to ask the client for more.

use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use serde_json::{Map, Value, json};
use toolgate_contract::{
    AnyTool, ArgumentFormat, BoxFuture, Declaration, Effect, ErrorCode, Hands, Message, MessageLevel, Permission,
    PreparedCall, Preview, Risk, SideEffect, ToolError, VersionAdapter, schemars::Schema,
};

use super::{FixtureContext, PIXEL, SILENCE, TIE, accepted, question};
use crate::client::lock;
use crate::json_rpc_error::JsonRpcError;
use crate::server::ListKind;

/// What a fixture does.
type FixtureAction = for<'a> fn(Value, &'a Hands, FixtureContext) -> BoxFuture<'a, Result<Value, ToolError>>;

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
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::IoError, message))))
    }),
    ("test_tool_with_logging", &[], |_, hands, _| said(hands, MessageLevel::Info)),
    ("test_logging_tool", &[], |_, hands, _| said(hands, MessageLevel::Info)),
    ("test_tool_with_progress", &[], |_, hands, _| said(hands, MessageLevel::Progress)),
    ("test_sampling", &["prompt"], |args, _, tie| Box::pin(sample(args, tie))),
    ("test_elicitation", &["message"], |args, _, tie| {
        let field = |what: &str| json!({ "type": "string", "description": what });
        let fields = json!({ "username": field("User's response"), "email": field("User's email address") });
        let message = args["message"].as_str().unwrap_or_default().to_owned();
        Box::pin(elicit(message, fields, &["username", "email"], tie))
    }),
    ("test_elicitation_sep1034_defaults", &[], |_, _, tie| {
        Box::pin(elicit("Please fill in.".into(), with_defaults(), &[], tie))
    }),
    ("test_elicitation_sep1330_enums", &[], |_, _, tie| Box::pin(elicit("Please choose.".into(), choices(), &[], tie))),
    ("test_missing_capability", &[], |_, _, tie| {
        if !tie.link.profile.can("sampling") {
            *lock(&tie.link.instead) = Some(Err(JsonRpcError::missing_capability("sampling")));
        }
        shown(words("The client can sample."))
    }),
    ("test_trigger_tool_change", &[], |_, _, tie| announced(&tie, ListKind::Tools)),
    ("test_trigger_prompt_change", &[], |_, _, tie| announced(&tie, ListKind::Prompts)),
    ("test_streaming_elicitation", &[], |_, _, tie| ask_for(&tie, &["user_name"], None)),
    ("test_input_required_result_elicitation", &[], |_, _, tie| ask_for(&tie, &["user_name"], None)),
    ("test_input_required_result_sampling", &[], |_, _, tie| ask_for(&tie, &["capital_question"], None)),
    ("test_input_required_result_list_roots", &[], |_, _, tie| ask_for(&tie, &["client_roots"], None)),
    ("test_input_required_result_request_state", &[], |_, _, tie| ask_for(&tie, &["confirm"], Some(1))),
    ("test_input_required_result_tampered_state", &[], |_, _, tie| ask_for(&tie, &["confirm"], Some(1))),
    ("test_input_required_result_multiple_inputs", &[], |_, _, tie| {
        ask_for(&tie, &["user_name", "greeting", "client_roots"], Some(1))
    }),
    ("test_input_required_result_multi_round", &[], |_, _, tie| {
        match tie.link.state.as_ref().and_then(Value::as_u64) {
            Some(1) if accepted(&tie.link.inputs, "step1").is_some() => ask_for(&tie, &["step2"], Some(2)),
            Some(2) => ask_for(&tie, &["step2"], Some(2)),
            _ => ask_for(&tie, &["step1"], Some(1)),
        }
    }),
    ("test_input_required_result_capabilities", &[], |_, _, tie| {
        let can = |name: &str| tie.link.profile.can(name);
        let wanted: Vec<&str> =
            [("elicitation", "user_name"), ("sampling", "capital_question"), ("roots", "client_roots")]
                .into_iter()
                .filter(|(capability, _)| can(capability))
                .map(|(_, key)| key)
                .collect();
        ask_for(&tie, &wanted, None)
    }),
];

pub(super) fn all() -> Vec<Arc<dyn AnyTool>> {
    let tool = |&(name, needed, act): &(&'static str, &[&str], FixtureAction)| -> Arc<dyn AnyTool> {
        Arc::new(Fixture { declaration: declaration(name, needed), act })
    };
    FIXTURES.iter().map(tool).collect()
}

struct Fixture {
    declaration: Declaration,
    act: FixtureAction,
}

impl AnyTool for Fixture {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(PreparedFixture { args, act: self.act }))
    }
}

struct PreparedFixture {
    args: Value,
    act: FixtureAction,
}

impl PreparedCall for PreparedFixture {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    fn preview(&self, _hands: &Hands) -> Option<Preview> {
        None
    }

    fn run<'a>(self: Box<Self>, hands: &'a Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        let tie = TIE.try_with(Clone::clone);
        match tie {
            Ok(tie) => Box::pin(async move {
                let link = Arc::clone(&tie.link);
                let content = (self.act)(self.args, hands, tie).await?;
                lock(&link.instead).get_or_insert(Ok(json!({ "content": content })));
                Ok(json!({}))
            }),
            Err(_) => Box::pin(std::future::ready(Err(ToolError::internal("Only a client of MCP can call this.")))),
        }
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

fn shown<'a>(content: Value) -> BoxFuture<'a, Result<Value, ToolError>> {
    contents(vec![content])
}

fn contents<'a>(contents: Vec<Value>) -> BoxFuture<'a, Result<Value, ToolError>> {
    Box::pin(std::future::ready(Ok(contents.into())))
}

/// Says three things, some time apart.
fn said(hands: &Hands, level: MessageLevel) -> BoxFuture<'_, Result<Value, ToolError>> {
    Box::pin(async move {
        for content in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            let content = content.to_owned();
            hands.say(&Message { level, title: None, content, thought: None, evidence: Vec::new() })?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(json!([words("It said three things.")]))
    })
}

fn announced<'a>(tie: &FixtureContext, changed: ListKind) -> BoxFuture<'a, Result<Value, ToolError>> {
    tie.client.server.announce(changed);
    shown(words("Told everybody."))
}

async fn sample(args: Value, tie: FixtureContext) -> Result<Value, ToolError> {
    let content = words(args["prompt"].as_str().unwrap_or_default());
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 });
    let answer = asked(&tie, "sampling", "sampling/createMessage", params).await?;
    Ok(json!([words(&format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))]))
}

async fn elicit(message: String, fields: Value, needed: &[&str], tie: FixtureContext) -> Result<Value, ToolError> {
    let schema = json!({ "type": "object", "properties": fields, "required": needed });
    let params = json!({ "message": message, "requestedSchema": schema });
    let answer = asked(&tie, "elicitation", "elicitation/create", params).await?;
    Ok(json!([words(&format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]))]))
}

async fn asked(tie: &FixtureContext, capability: &str, method: &str, params: Value) -> Result<Value, ToolError> {
    if tie.link.profile.is_modern() || !tie.link.profile.can(capability) {
        return Err(ToolError::new(ErrorCode::IoError, format!("The client can't be asked for {capability}.")));
    }
    let answer = tie.client.ask(&tie.link.outlet(), method, params).await;
    answer.and_then(Result::ok).ok_or_else(|| ToolError::new(ErrorCode::IoError, "The client didn't answer."))
}

/// Asks for inputs by their keys, unless they came along; with a state to bring back, if there is one.
fn ask_for<'a>(tie: &FixtureContext, keys: &[&str], state: Option<u64>) -> BoxFuture<'a, Result<Value, ToolError>> {
    let inputs = &tie.link.inputs;
    let is_here = |key: &&str| match *key {
        "client_roots" => inputs.get(*key).is_some_and(|input| input["roots"].is_array()),
        "capital_question" | "greeting" => inputs.get(*key).is_some_and(|input| input["content"].is_object()),
        key => accepted(inputs, key).is_some(),
    };
    let has_state = state.is_none() || tie.link.state.as_ref().and_then(Value::as_u64) == state;
    if has_state && keys.iter().all(is_here) {
        return shown(words("Thank you. state-ok"));
    }
    let requests: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), wanted(key))).collect();
    let mut instead = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        instead["state"] = state.into();
    }
    *lock(&tie.link.instead) = Some(Ok(instead));
    shown(words("More is needed."))
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
