//! The provider-neutral protocol for any model that writes text: tools are described in the prompt, calls come as JSON,
//! results go back as messages.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::json;
use toolgate_contract::BoxFuture;
use toolgate_dialects::{NeutralAnswer, neutral_instructions, parse_neutral};

use super::{ConversationEntry, Model, ModelAnswer, ModelError, ModelRequest, Observation, OnText};

/// Adds tool calls to a model without function calling.
pub struct JsonProtocol {
    inner: Arc<dyn Model>,
    name: String,
}

impl JsonProtocol {
    /// Wraps this model.
    pub fn over(inner: Arc<dyn Model>) -> Self {
        let name = format!("json+{}", inner.name());
        Self { inner, name }
    }

    async fn ask(&self, request: &ModelRequest<'_>) -> Result<ModelAnswer, ModelError> {
        let system = format!("{}\n\n{}", request.system, neutral_instructions(request.tools));
        let entries: Vec<ConversationEntry> = request.entries.iter().map(as_text).collect();
        let plain = ModelRequest { system: &system, entries: &entries, tools: &[], ..*request };
        // The protocol's JSON isn't text for a person.
        let answer = self.inner.answer(&plain, &mut |_| {}).await?;
        Ok(understood(answer))
    }
}

impl Model for JsonProtocol {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let answer = self.ask(request).await?;
            on_text(&answer.text);
            Ok(answer)
        })
    }
}

fn understood(said: ModelAnswer) -> ModelAnswer {
    let raw = vec![said.text.clone().into()];
    let base = ModelAnswer { tokens: said.tokens, cut: said.cut, raw, ..ModelAnswer::default() };
    match parse_neutral(&said.text) {
        Ok(NeutralAnswer::Final(text)) => ModelAnswer { text, ..base },
        Ok(NeutralAnswer::Calls(calls)) => ModelAnswer { calls, ..base },
        Err(fault) => ModelAnswer { fault: Some(fault), ..base },
    }
}

/// A conversation entry as plain text: what the model wrote goes back unchanged.
fn as_text(entry: &ConversationEntry) -> ConversationEntry {
    match entry {
        ConversationEntry::Told(text) => ConversationEntry::Told(text.clone()),
        ConversationEntry::Answered(answer) => {
            let written = answer.raw.first().and_then(|raw| raw.as_str()).map(str::to_owned);
            ConversationEntry::Answered(ModelAnswer {
                text: written.unwrap_or_else(|| rewritten(answer)),
                ..ModelAnswer::default()
            })
        }
        ConversationEntry::Observed(observations) => ConversationEntry::Told(results(observations)),
    }
}

/// The model's answer, rebuilt from its parsed form.
fn rewritten(answer: &ModelAnswer) -> String {
    let calls = answer.calls.iter().map(|call| json!({ "name": call.name, "arguments": call.arguments_or_empty() }));
    json!({ "tool_calls": calls.collect::<Vec<_>>(), "final_answer": answer.text }).to_string()
}

fn results(observations: &[Observation]) -> String {
    let mut text = String::from("The results of your calls, in order:\n");
    for observation in observations {
        // Writing into a string can't fail.
        let _ = write!(text, "\n[{}]\n{}\n", observation.name, observation.text);
        if !observation.images.is_empty() {
            text.push_str("[This model can't be shown images.]\n");
        }
    }
    text
}
