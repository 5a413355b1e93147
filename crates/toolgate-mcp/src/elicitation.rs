//! Elicitation: forms that a client shows to the person, with text that is safe to display.

use std::sync::Weak;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::call_context::CallContext;
use crate::client::Client;
use crate::suspended_calls::ANSWER_TIMEOUT;

/// Asks the person at the client that made the call. Dropping the future cancels the question, so that others can be
/// asked at the same time.
pub(crate) struct Elicitor(pub(crate) Weak<Client>);

impl Elicitor {
    /// Shows a form and waits for the answer and who gave it; none when the client can't show forms. Without a handshake
    /// the form becomes part of the call's result, under this name.
    pub(crate) async fn show(
        &self,
        call: &str,
        name: &'static str,
        form: impl FnOnce(bool) -> Value,
    ) -> Option<(Value, String)> {
        let client = self.0.upgrade()?;
        let call_context = client.call_context(call)?;
        if !call_context.profile.can_show_forms() {
            return None;
        }
        let params = form(call_context.profile.is_stateless());
        let answer = request(&client, &call_context, name, "elicitation/create", params).await?;
        Some((answer, format!("person at {}", name_of(&call_context.profile.client))))
    }

    /// Asks the client for something that its model writes; none when the client doesn't offer that.
    pub(crate) async fn sampled(&self, call: &str, params: Value) -> Option<Value> {
        let client = self.0.upgrade()?;
        let call_context = client.call_context(call)?;
        if !call_context.profile.can("sampling") {
            return None;
        }
        request(&client, &call_context, "sample", "sampling/createMessage", params).await
    }
}

/// Asks the client, and waits for its answer: by a request, or, without a handshake, as part of the call's result.
async fn request(
    client: &Client,
    call_context: &CallContext,
    name: &'static str,
    method: &'static str,
    params: Value,
) -> Option<Value> {
    let answered = async {
        match call_context.profile.is_stateless() {
            true => call_context.request_input(name, method, params).await.ok(),
            false => client.ask(&call_context.sink(), method, params).await?.ok(),
        }
    };
    let timeout = Duration::try_from(ANSWER_TIMEOUT).unwrap_or_default();
    tokio::time::timeout(timeout, answered).await.ok().flatten()
}

fn name_of(client: &str) -> String {
    if client.is_empty() { "the client".to_owned() } else { escape_control(client) }
}

/// A form with these fields.
pub(crate) fn form(message: &str, fields: Value, required: &[&str]) -> Value {
    json!({
        "message": message,
        "requestedSchema": { "type": "object", "properties": fields, "required": required },
    })
}

/// A field with answers to choose from, each a value and its title. The two protocol versions write titles differently.
pub(crate) fn choice(title: &str, answers: &[(&str, String)], is_stateless: bool) -> Value {
    let mut field = json!({ "type": "string", "title": title });
    if is_stateless {
        let choices = answers.iter().map(|(word, title)| json!({ "const": word, "title": title }));
        field["oneOf"] = choices.collect();
    } else {
        field["enum"] = answers.iter().map(|(word, _)| *word).collect();
        field["enumNames"] = answers.iter().map(|(_, title)| title.as_str()).collect();
    }
    field
}

/// The text in a field of an answered form; empty when there is none.
pub(crate) fn form_field<'a>(answer: &'a Value, field: &str) -> &'a str {
    let content = answer.get("content").and_then(Value::as_object);
    let text = content.and_then(|content: &Map<String, Value>| content.get(field)?.as_str());
    text.map(str::trim).unwrap_or_default()
}

/// Text from a model or a file, with control and direction characters escaped.
pub(crate) fn escape_control(text: &str) -> String {
    let is_tricky = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_tricky(c) { format!("\\u{{{:x}}}", c as u32) } else { c.to_string() }).collect()
}
