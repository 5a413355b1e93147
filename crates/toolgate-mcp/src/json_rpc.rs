//! JSON-RPC 2.0 as MCP uses it: reading and writing messages. Messages are read strictly, so that the arguments that
//! policy judges are the arguments that run: a duplicate key is refused at any depth.

use std::fmt;

use serde_json::{Map, Value, json};
use toolgate_dialects::strict_json;

use crate::json_rpc_error::JsonRpcError;

/// The id of a request: a string or an integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

impl RequestId {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(_) => Some(Self(value.to_string())),
            Value::Number(number) if !number.is_f64() => Some(Self(value.to_string())),
            _ => None,
        }
    }

    /// The request id in a field of another message's params.
    pub(crate) fn mentioned(params: &Map<String, Value>, field: &str) -> Option<Self> {
        params.get(field).and_then(Self::of)
    }

    /// An id that no client can send.
    pub(crate) fn server_generated(number: u64) -> Self {
        Self(format!("#{number}"))
    }

    /// The id as the client wrote it.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct JsonRpcRequest {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// A message of a client.
#[derive(Debug)]
pub(crate) enum JsonRpcMessage {
    Request(JsonRpcRequest),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request of the server's.
    Answer {
        id: Value,
        outcome: Result<Value, Value>,
    },
}

/// A message that was refused, and the id that the error goes to.
#[derive(Debug)]
pub(crate) struct InvalidMessage {
    pub(crate) id: Option<RequestId>,
    pub(crate) fault: JsonRpcError,
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8]) -> Result<JsonRpcMessage, InvalidMessage> {
    let value = strict_json::parse(bytes).map_err(|error| {
        // The error names the request if a lenient parser can find its id.
        let lenient: Option<Value> = serde_json::from_slice(bytes).ok();
        let id = lenient.as_ref().and_then(|value| RequestId::of(value.get("id")?));
        let fault = if lenient.is_some() {
            JsonRpcError::invalid_request(error.message)
        } else {
            JsonRpcError::parse(error.message)
        };
        InvalidMessage { id, fault }
    })?;
    let Value::Object(mut fields) = value else {
        return Err(InvalidMessage {
            id: None,
            fault: JsonRpcError::invalid_request("A message has to be one JSON object."),
        });
    };
    let id = fields.get("id").and_then(RequestId::of);
    let wrong = |what: &str| InvalidMessage { id: id.clone(), fault: JsonRpcError::invalid_request(what) };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong("`jsonrpc` has to be \"2.0\"."));
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(wrong("`method` has to be a string.")),
        None => return answer(fields).ok_or_else(|| wrong("A message needs a `method`, a `result` or an `error`.")),
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(wrong("`params` has to be an object.")),
    };
    match (id.clone(), fields.contains_key("id")) {
        (Some(id), _) => Ok(JsonRpcMessage::Request(JsonRpcRequest { id, method, params })),
        (None, false) => Ok(JsonRpcMessage::Notification { method, params }),
        (None, true) => Err(wrong("`id` has to be a string or an integer.")),
    }
}

fn answer(mut fields: Map<String, Value>) -> Option<JsonRpcMessage> {
    let id = fields.remove("id")?;
    let outcome = match (fields.remove("result"), fields.remove("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error),
        _ => return None,
    };
    Some(JsonRpcMessage::Answer { id, outcome })
}

/// A response with a result.
pub(crate) fn result(id: &RequestId, result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, written(result))
}

/// A value as JSON text, several times as fast as its `Display`.
pub(crate) fn written(value: &Value) -> String {
    serde_json::to_string(value).expect("a JSON value has only strings for keys")
}

/// A response with an error.
pub(crate) fn error(id: Option<&RequestId>, fault: &JsonRpcError) -> String {
    let id = id.map_or_else(|| "null".to_owned(), ToString::to_string);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, fault.json())
}

/// A notification.
pub(crate) fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// A request of the server's.
pub(crate) fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_refused_with_the_id_that_it_has() {
        let table: &[(&str, Option<&str>, i64)] = &[
            ("", None, -32700),
            ("{", None, -32700),
            ("\u{0}\u{1}", None, -32700),
            ("[]", None, -32600),
            ("7", None, -32600),
            (r#"{"id":1,"method":"ping"}"#, Some("1"), -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some("1"), -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, Some("\"a\""), -32600),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}"#, Some("\"a\""), -32600),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"x":1,"x":2}}"#, Some("2"), -32600),
        ];
        for (text, id, code) in table {
            let unusable = read(text.as_bytes()).unwrap_err();
            assert_eq!(unusable.id.map(|id| id.to_string()).as_deref(), *id, "{text}");
            assert_eq!(unusable.fault.code, *code, "{text}");
        }
    }

    #[test]
    fn the_three_kinds_of_message_are_told_apart() {
        let request = read(br#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#).unwrap();
        assert!(matches!(request, JsonRpcMessage::Request(request) if request.id.value() == json!("7")));
        let notification = read(br#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#).unwrap();
        assert!(matches!(notification, JsonRpcMessage::Notification { params, .. } if params["a"] == 1));
        let answer = read(br#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#).unwrap();
        assert!(matches!(answer, JsonRpcMessage::Answer { id, outcome: Err(_) } if id == 3));
    }
}
