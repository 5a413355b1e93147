//! What a server asks of the model of whoever called it (`sampling/createMessage`). It is off unless configuration turns it on for the
//! server; then the client gets the request, and asks its person as it sees fit. What the server may say and cost is bounded here.

use serde_json::{Map, Value, json};
use toolgate_contract::Person;

use crate::definition::clean_value;

/// Bytes of a request.
const LARGEST_REQUEST: usize = 64 * 1024;

/// Tokens that a model may answer with.
const MOST_TOKENS: u64 = 4096;

/// What of a request is passed on. What else there is, such as the context of other servers, isn't for this server to ask for.
const PASSED_ON: [&str; 5] = ["messages", "systemPrompt", "temperature", "stopSequences", "modelPreferences"];

/// Passes a request on to the client of a call, and gives its result, or why there is none.
pub(crate) async fn answer(server: &str, params: &Value, person: &dyn Person) -> Result<Value, String> {
    let request = bounded(params)?;
    match person.sample(server, request).await {
        Ok(Some(answer)) if answer.is_object() => Ok(answer),
        Ok(_) => Err("The client of this call has no model for servers, or refused.".into()),
        Err(error) => Err(error.message),
    }
}

/// The request as it is passed on.
fn bounded(params: &Value) -> Result<Value, String> {
    if !params["messages"].is_array() {
        return Err("`messages` has to be a list.".into());
    }
    let passed = PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), clean_value(params.get(*name)?))));
    let mut request: Map<String, Value> = passed.collect();
    let tokens = params["maxTokens"].as_u64().unwrap_or(MOST_TOKENS).min(MOST_TOKENS);
    request.insert("maxTokens".into(), tokens.into());
    request.insert("includeContext".into(), json!("none"));
    let request = Value::Object(request);
    match request.to_string().len() > LARGEST_REQUEST {
        true => Err(format!("The request has more than {LARGEST_REQUEST} bytes.")),
        false => Ok(request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_bounded_and_asks_for_nothing_of_others() {
        let said = json!([{ "role": "user", "content": { "type": "text", "text": "hi\u{200b}" } }]);
        let asked = json!({ "messages": said, "maxTokens": 1_000_000, "includeContext": "allServers", "tools": [{}] });
        let passed = bounded(&asked).unwrap();
        assert_eq!(
            passed,
            json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }],
                "maxTokens": MOST_TOKENS, "includeContext": "none",
            })
        );
        assert!(bounded(&json!({ "messages": "hi" })).unwrap_err().contains("list"));
        let long = json!({ "messages": ["x".repeat(LARGEST_REQUEST)] });
        assert!(bounded(&long).unwrap_err().contains("more than"));
    }
}
