//! The wire format of each API, compared with examples written by hand from its public documentation.

use serde_json::{Value, json};
use toolgate_agent::model::{
    Anthropic, ApiKey, ChatCompletions, ConversationEntry, InlineImage, Model, ModelAnswer, ModelEndpoint,
    ModelRequest, Observation, Responses,
};
use toolgate_contract::{ArgumentFormat, Declaration, TokenUsage, ToolError};
use toolgate_dialects::{ToolCall, ToolCallKind};

use crate::server::{ModelServer, Play, Seen};

/// A function, a free-form tool and a shell.
fn tools() -> Vec<Declaration> {
    let all = toolgate_tools::all();
    let declared = |name: &str| {
        all.iter().map(|tool| tool.declaration()).find(|tool| tool.name == name).expect("it is built in").clone()
    };
    let mut patch = declared("patch");
    patch.form =
        ArgumentFormat::Freeform { syntax: "lark".into(), grammar: "start: /.+/".into(), argument: "patch".into() };
    vec![declared("read"), patch, declared("shell")]
}

/// A conversation with everything in it: text, calls of each kind, results, a failure, and an invalid call.
fn entries() -> Vec<ConversationEntry> {
    let calls = vec![
        ToolCall::function("call_1", "read", r#"{"path":"a.txt"}"#),
        ToolCall::custom("call_2", "patch", "*** Begin Patch"),
        ToolCall::function("call_3", "read", "{broken"),
    ];
    let observed = |id: &str, shape, text: &str, ok| Observation {
        id: id.into(),
        shape,
        name: "any".into(),
        text: text.into(),
        ok,
        artifact: None,
        images: Vec::new(),
    };
    vec![
        ConversationEntry::Told("Look at a.txt.".into()),
        ConversationEntry::Answered(ModelAnswer { text: "Looking.".into(), calls, ..ModelAnswer::default() }),
        ConversationEntry::Observed(vec![
            observed("call_1", ToolCallKind::Function, "content: a", true),
            observed("call_2", ToolCallKind::Custom, "done", true),
            observed("call_3", ToolCallKind::Function, "error[invalid_args]", false),
        ]),
        ConversationEntry::Told("And now?".into()),
    ]
}

/// Asks a model once; returns its answer, the text as it arrived, and the request.
async fn exchange(make: impl Fn(&str) -> Box<dyn Model>, stream: &str) -> (ModelAnswer, Vec<String>, Seen) {
    let server = ModelServer::start([Play::events(stream)]).await;
    let model = make(&server.url);
    let (tools, entries) = (tools(), entries());
    let request = ModelRequest { agent: "main", system: "Be brief.", entries: &entries, tools: &tools, answers: 0 };
    let mut streamed = Vec::new();
    let answer = model.answer(&request, &mut |words: &str| streamed.push(words.to_owned())).await.unwrap();
    (answer, streamed, server.seen().remove(0))
}

fn key() -> ApiKey {
    ApiKey::new("sk-1").unwrap()
}

const CHAT: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Let me "},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"look."},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_abc","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_def","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"b.txt\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99}}

data: [DONE]

"#;

#[tokio::test]
async fn chat_completions() {
    let make = |url: &str| -> Box<dyn Model> {
        let wire = ModelEndpoint::new(&format!("{url}/v1"), Some(("authorization", "Bearer ", &key()))).unwrap();
        Box::new(ChatCompletions::new("gpt-test", wire))
    };
    let (answer, streamed, seen) = exchange(make, CHAT).await;
    assert_eq!((answer.text.as_str(), streamed.concat().as_str()), ("Let me look.", "Let me look."));
    let expected = [
        ToolCall::function("call_abc", "read", r#"{"path":"b.txt"}"#),
        ToolCall::custom("call_def", "patch", "*** Begin"),
    ];
    assert_eq!(answer.calls, expected);
    assert_eq!(answer.tokens, TokenUsage { input: 82, output: 17 });
    assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/v1/chat/completions", Some("Bearer sk-1")));
    let function = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } });
    assert_eq!(
        seen.body["messages"],
        json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Look at a.txt." },
            { "role": "assistant", "content": "Looking.", "tool_calls": [
                function("call_1", r#"{"path":"a.txt"}"#),
                { "id": "call_2", "type": "custom", "custom": { "name": "patch", "input": "*** Begin Patch" } },
                function("call_3", "{}"),
            ] },
            { "role": "tool", "tool_call_id": "call_1", "content": "content: a" },
            { "role": "tool", "tool_call_id": "call_2", "content": "done" },
            { "role": "tool", "tool_call_id": "call_3", "content": "error[invalid_args]" },
            { "role": "user", "content": "And now?" },
        ])
    );
    assert_eq!(kinds(&seen.body["tools"]), ["function", "custom", "function"]);
    assert_eq!((&seen.body["stream"], &seen.body["stream_options"]), (&json!(true), &json!({ "include_usage": true })));
}

fn kinds(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["type"].as_str().unwrap()).collect()
}

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"opaque"}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Let me "}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"look."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_abc","name":"read","arguments":"{\"path\":\"b.txt\"}"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_def","name":"patch","input":"*** Begin"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":4,"item":{"id":"lsh_1","type":"local_shell_call","status":"completed","call_id":"call_ghi","action":{"type":"exec","command":["ls","-l"],"env":{},"timeout_ms":1000,"working_directory":"src"}}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","error":null,"usage":{"input_tokens":82,"output_tokens":17,"total_tokens":99}}}

"#;

#[tokio::test]
async fn responses() {
    let make = |url: &str| -> Box<dyn Model> {
        let wire = ModelEndpoint::new(&format!("{url}/v1"), Some(("authorization", "Bearer ", &key()))).unwrap();
        Box::new(Responses::new("codex-mini-latest", wire))
    };
    let (answer, streamed, seen) = exchange(make, RESPONSES).await;
    assert_eq!((answer.text.as_str(), streamed.concat().as_str()), ("Let me look.", "Let me look."));
    let shell = json!({ "type": "exec", "command": ["ls", "-l"], "timeout_ms": 1000, "working_directory": "src" });
    let expected = [
        ToolCall::function("call_abc", "read", r#"{"path":"b.txt"}"#),
        ToolCall::custom("call_def", "patch", "*** Begin"),
        ToolCall::local_shell("call_ghi", &shell),
    ];
    assert_eq!(answer.calls, expected);
    assert_eq!(answer.calls[2].args, Ok(json!({ "command": "ls -l", "workdir": "src", "timeout_seconds": 1 })));
    assert_eq!(answer.tokens, TokenUsage { input: 82, output: 17 });
    assert_eq!(answer.raw.len(), 5, "the model's own reasoning goes back as it came");
    let function = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": arguments });
    let output = |kind: &str, id: &str, text: &str| json!({ "type": kind, "call_id": id, "output": text });
    assert_eq!(
        seen.body["input"],
        json!([
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Look at a.txt." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Looking." }] },
            function("call_1", r#"{"path":"a.txt"}"#),
            { "type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin Patch" },
            function("call_3", "{}"),
            output("function_call_output", "call_1", "content: a"),
            output("custom_tool_call_output", "call_2", "done"),
            output("function_call_output", "call_3", "error[invalid_args]"),
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "And now?" }] },
        ])
    );
    assert_eq!(kinds(&seen.body["tools"]), ["function", "custom", "local_shell"]);
    assert_eq!((seen.path.as_str(), &seen.body["store"]), ("/v1/responses", &json!(false)));
    assert_eq!(seen.body["instructions"], "Be brief.");
}

#[tokio::test]
async fn what_a_model_wrote_goes_back_to_responses_as_it_came() {
    let server = ModelServer::start([Play::events(RESPONSES)]).await;
    let model = Responses::new("gpt-test", ModelEndpoint::new(&server.url, None).unwrap());
    let first = [ConversationEntry::Told("Look.".into())];
    let ask = |entries: Vec<ConversationEntry>| {
        let model = &model;
        async move {
            let request = ModelRequest { agent: "main", system: "", entries: &entries, tools: &[], answers: 0 };
            model.answer(&request, &mut |_| {}).await.unwrap()
        }
    };
    let answer = ask(first.to_vec()).await;
    let raw = answer.raw.clone();
    ask(vec![first[0].clone(), ConversationEntry::Answered(answer)]).await;
    let input = server.seen()[1].body["input"].as_array().unwrap().clone();
    assert_eq!(input[1..], raw[..]);
}

const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":72,"cache_read_input_tokens":10,"output_tokens":2}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_01","name":"read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"b"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":".txt\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":17}}

event: message_stop
data: {"type":"message_stop"}

"#;

#[tokio::test]
async fn anthropic() {
    let make = |url: &str| -> Box<dyn Model> {
        Box::new(Anthropic::new("claude-test", ModelEndpoint::new(url, Some(("x-api-key", "", &key()))).unwrap()))
    };
    let (answer, streamed, seen) = exchange(make, ANTHROPIC).await;
    assert_eq!((answer.text.as_str(), streamed.concat().as_str()), ("Let me look.", "Let me look."));
    assert_eq!(answer.calls, [ToolCall::function("toolu_01", "read", r#"{"path": "b.txt"}"#)]);
    assert_eq!(answer.tokens, TokenUsage { input: 82, output: 17 }, "what came from the cache counts too");
    assert_eq!((seen.path.as_str(), seen.header("x-api-key")), ("/v1/messages", Some("sk-1")));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let result = |id: &str, content: &str, is_error: bool| json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error });
    assert_eq!(
        seen.body["messages"],
        json!([
            { "role": "user", "content": [text("Look at a.txt.")] },
            { "role": "assistant", "content": [
                text("Looking."),
                { "type": "tool_use", "id": "call_1", "name": "read", "input": { "path": "a.txt" } },
                { "type": "tool_use", "id": "call_2", "name": "patch", "input": { "input": "*** Begin Patch" } },
                { "type": "tool_use", "id": "call_3", "name": "read", "input": {} },
            ] },
            { "role": "user", "content": [
                result("call_1", "content: a", false),
                result("call_2", "done", false),
                result("call_3", "error[invalid_args]", true),
                text("And now?"),
            ] },
        ]),
        "the roles take turns"
    );
    assert_eq!(seen.body["tools"][0]["input_schema"]["type"], "object");
    assert!(seen.body["max_tokens"].as_u64().unwrap() > 1000);
}

/// A stream that ends before its answer does is a fault in every API, and so is one that was too long.
#[tokio::test]
async fn an_answer_that_breaks_off_or_runs_out_is_noticed() {
    let table = [
        (AS_CHAT, CHAT, "\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"length\""),
        (AS_RESPONSES, RESPONSES, "\"response.completed\"", "\"response.incomplete\""),
        (AS_ANTHROPIC, ANTHROPIC, "\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\""),
    ];
    for (make, stream, usual, too_long) in table {
        let whole = stream.replace(usual, too_long);
        let half = &stream[..stream.len() / 2];
        for (text, is_cut) in [(whole.as_str(), true), (half, false)] {
            let server = ModelServer::start([Play::events(text)]).await;
            let model = make(ModelEndpoint::new(&server.url, None).unwrap());
            let request = ModelRequest { agent: "main", system: "", entries: &[], tools: &[], answers: 0 };
            let answer = model.answer(&request, &mut |_| {}).await;
            match is_cut {
                true => assert!(answer.unwrap().cut, "{too_long}"),
                false => assert!(answer.unwrap_err().message.contains("broke off"), "{usual}"),
            }
        }
    }
}

type Make = fn(ModelEndpoint) -> Box<dyn Model>;
const AS_CHAT: Make = |wire| Box::new(ChatCompletions::new("m", wire));
const AS_RESPONSES: Make = |wire| Box::new(Responses::new("m", wire));
const AS_ANTHROPIC: Make = |wire| Box::new(Anthropic::new("m", wire));

/// Each API has a field of its own for how much the model should reason; without the setting none is sent.
#[tokio::test]
async fn effort_goes_where_each_api_expects_it() {
    let effort = || Some("low".to_owned());
    let wire = |url: &str| ModelEndpoint::new(url, Some(("authorization", "Bearer ", &key()))).unwrap();
    let sent = [
        exchange(|url| Box::new(ChatCompletions::new("m", wire(url)).with_effort(effort())), CHAT).await.2.body,
        exchange(|url| Box::new(Responses::new("m", wire(url)).with_effort(effort())), RESPONSES).await.2.body,
        exchange(|url| Box::new(Anthropic::new("m", wire(url)).with_effort(effort())), ANTHROPIC).await.2.body,
    ];
    assert_eq!(sent[0]["reasoning_effort"], "low");
    assert_eq!(sent[1]["reasoning"]["effort"], "low");
    assert_eq!(sent[2]["output_config"], json!({ "effort": "low" }));
    let without = exchange(|url| Box::new(Anthropic::new("m", wire(url))), ANTHROPIC).await.2.body;
    assert_eq!(without.get("output_config"), None);
}

/// The request after the two calls returned a text and an image.
async fn sent_with_an_image(make: Make, stream: &str) -> Value {
    let server = ModelServer::start([Play::events(stream)]).await;
    let model = make(ModelEndpoint::new(&server.url, None).unwrap());
    let calls = vec![ToolCall::function("call_1", "read", "{}"), ToolCall::function("call_2", "image", "{}")];
    let seen = |id: &str, name: &str, text: &str, images: Vec<InlineImage>| Observation {
        id: id.into(),
        shape: ToolCallKind::Function,
        name: name.into(),
        text: text.into(),
        ok: true,
        artifact: None,
        images,
    };
    let png = InlineImage { mime: "image/png".into(), data: "iVBORw0=".into() };
    let entries = [
        ConversationEntry::Told("Look.".into()),
        ConversationEntry::Answered(ModelAnswer { calls, ..ModelAnswer::default() }),
        ConversationEntry::Observed(vec![
            seen("call_1", "read", "a", vec![]),
            seen("call_2", "image", "width: 1", vec![png]),
        ]),
    ];
    let request = ModelRequest { agent: "main", system: "", entries: &entries, tools: &[], answers: 0 };
    model.answer(&request, &mut |_| {}).await.unwrap();
    server.seen().remove(0).body
}

#[tokio::test]
async fn images_are_shown_in_each_apis_own_form() {
    let anthropic = sent_with_an_image(AS_ANTHROPIC, ANTHROPIC).await;
    assert_eq!(
        anthropic["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "call_1", "content": "a", "is_error": false },
            { "type": "tool_result", "tool_use_id": "call_2", "is_error": false, "content": [
                { "type": "text", "text": "width: 1" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0=" } },
            ] },
        ])
    );
    let responses = sent_with_an_image(AS_RESPONSES, RESPONSES).await;
    assert_eq!(
        responses["input"].as_array().unwrap()[3..],
        [
            json!({ "type": "function_call_output", "call_id": "call_1", "output": "a" }),
            json!({ "type": "function_call_output", "call_id": "call_2", "output": [
                { "type": "input_text", "text": "width: 1" },
                { "type": "input_image", "image_url": "data:image/png;base64,iVBORw0=" },
            ] }),
        ]
    );
    let chat = sent_with_an_image(AS_CHAT, CHAT).await;
    assert_eq!(
        chat["messages"].as_array().unwrap()[3..],
        [
            json!({ "role": "tool", "tool_call_id": "call_1", "content": "a" }),
            json!({ "role": "tool", "tool_call_id": "call_2", "content": "width: 1" }),
            json!({ "role": "user", "content": [
                { "type": "text", "text": "What `image` (call_2) shows:" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0=" } },
            ] }),
        ],
        "tool messages follow their calls, and hold words alone"
    );
}

/// Each API's response to a request without streaming.
fn unstreamed_answers() -> [(Make, Value); 3] {
    let chat = json!({ "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": "Let me look.", "refusal": null, "tool_calls": [
                { "id": "call_abc", "type": "function",
                  "function": { "name": "read", "arguments": "{\"path\":\"b.txt\"}" } }] } }],
        "usage": { "prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99 } });
    let responses = json!({ "id": "resp_1", "object": "response", "status": "completed", "error": null,
        "incomplete_details": null, "model": "m", "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": "hm" }] },
            { "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
              "content": [{ "type": "output_text", "text": "Let me look.", "annotations": [] }] },
            { "type": "function_call", "id": "fc_1", "call_id": "call_abc", "name": "read", "status": "completed",
              "arguments": "{\"path\":\"b.txt\"}" }],
        "usage": { "input_tokens": 82, "output_tokens": 17, "total_tokens": 99 } });
    let anthropic = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "call_abc", "name": "read", "input": { "path": "b.txt" } }],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 72, "cache_read_input_tokens": 10, "output_tokens": 17 } });
    [(AS_CHAT, chat), (AS_RESPONSES, responses), (AS_ANTHROPIC, anthropic)]
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_too() {
    for (make, whole) in unstreamed_answers() {
        let server = ModelServer::start([Play::json(&whole.to_string())]).await;
        let model = make(ModelEndpoint::new(&server.url, None).unwrap());
        let request = ModelRequest { agent: "main", system: "", entries: &[], tools: &[], answers: 0 };
        let mut streamed = String::new();
        let answer = model.answer(&request, &mut |words: &str| streamed.push_str(words)).await.unwrap();
        assert_eq!((answer.text.as_str(), streamed.as_str()), ("Let me look.", "Let me look."), "{whole}");
        assert_eq!(answer.calls, [ToolCall::function("call_abc", "read", r#"{"path":"b.txt"}"#)], "{whole}");
        assert_eq!((answer.tokens, answer.cut), (TokenUsage { input: 82, output: 17 }, false), "{whole}");
    }
}

#[tokio::test]
async fn an_invalid_unstreamed_answer_is_noticed() {
    for (make, _) in unstreamed_answers() {
        for (body, expected) in [("{}", "broke off"), ("{\"half\":", "isn't JSON"), (r#"{"error":"no"}"#, "says: no")] {
            let server = ModelServer::start([Play::json(body)]).await;
            let model = make(ModelEndpoint::new(&server.url, None).unwrap());
            let request = ModelRequest { agent: "main", system: "", entries: &[], tools: &[], answers: 0 };
            let failure = model.answer(&request, &mut |_| {}).await.unwrap_err();
            assert!(failure.message.contains(expected), "{body}: {failure}");
        }
    }
}

/// An invalid call is still a call, with its reason.
#[test]
fn a_call_that_cannot_be_read_keeps_its_name() {
    let asked = ToolCall::function("call_1", "read", "{broken");
    assert!(matches!(asked.args, Err(ToolError { .. })) && asked.name == "read");
}
