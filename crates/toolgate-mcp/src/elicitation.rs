//! Forms that a client shows to the person: how a question is put, and words that are safe to show.

use std::sync::Weak;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::suspended_calls::PATIENCE;

/// Asks the person at the client that made the call. Dropping a question withdraws it, so that it can be raced with others.
pub(crate) struct Elicitor(pub(crate) Weak<Client>);

impl Elicitor {
    /// Shows a form and waits for what comes back, and from whom; none when nobody can be shown one. In the newer era the
    /// form becomes a part of the call's result, under this name.
    pub(crate) async fn show(
        &self,
        call: &str,
        name: &'static str,
        form: impl FnOnce(bool) -> Value,
    ) -> Option<(Value, String)> {
        let client = self.0.upgrade()?;
        let link = client.link(call)?;
        if !link.profile.can_show_forms() {
            return None;
        }
        let params = form(link.profile.is_modern());
        let answered = async {
            match link.profile.is_modern() {
                true => link.put(name, params).await.ok(),
                false => client.ask(&link.outlet(), "elicitation/create", params).await?.ok(),
            }
        };
        let patience = Duration::try_from(PATIENCE).unwrap_or_default();
        let answer = tokio::time::timeout(patience, answered).await.ok().flatten()?;
        Some((answer, format!("person at {}", name_of(&link.profile.client))))
    }
}

fn name_of(client: &str) -> String {
    if client.is_empty() { "the client".to_owned() } else { visible(client) }
}

/// A form with these fields.
pub(crate) fn form(message: &str, fields: Value, required: &[&str]) -> Value {
    json!({
        "message": message,
        "requestedSchema": { "type": "object", "properties": fields, "required": required },
    })
}

/// A field with answers to choose from, each a word and its title. Newer clients show titles by a standard of its own.
pub(crate) fn choice(title: &str, answers: &[(&str, String)], is_modern: bool) -> Value {
    let mut field = json!({ "type": "string", "title": title });
    if is_modern {
        let choices = answers.iter().map(|(word, title)| json!({ "const": word, "title": title }));
        field["oneOf"] = choices.collect();
    } else {
        field["enum"] = answers.iter().map(|(word, _)| *word).collect();
        field["enumNames"] = answers.iter().map(|(_, title)| title.as_str()).collect();
    }
    field
}

/// What stands in a field of a form that came back; empty when nothing does.
pub(crate) fn filled<'a>(answer: &'a Value, field: &str) -> &'a str {
    let content = answer.get("content").and_then(Value::as_object);
    let text = content.and_then(|content: &Map<String, Value>| content.get(field)?.as_str());
    text.map(str::trim).unwrap_or_default()
}

/// Text from a model or a file, with what a screen would obey made visible.
pub(crate) fn visible(text: &str) -> String {
    let is_tricky = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_tricky(c) { format!("\\u{{{:x}}}", c as u32) } else { c.to_string() }).collect()
}
