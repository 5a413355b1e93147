//! A model whose turns are functions of what it was told last.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::Value;
use toolgate_agent::model::{ConversationEntry, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, OnText};
use toolgate_contract::BoxFuture;
use toolgate_dialects::{ToolCall, ToolCallKind};

type Turn = Box<dyn Fn(&str) -> ModelAnswer + Send>;

/// Takes its turns in order.
pub(crate) struct Improvising(Mutex<VecDeque<Turn>>);

impl Improvising {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self(Mutex::new(turns.into_iter().collect()))
    }

    /// A turn that makes one call, with arguments that depend on everything it was told.
    pub(crate) fn call(tool: &'static str, args: impl Fn(&str) -> Value + Send + 'static) -> Turn {
        Box::new(move |told| {
            let args = Ok(args(told));
            let call = ToolCall { id: "1".into(), name: tool.into(), args, shape: ToolCallKind::Function };
            ModelAnswer { calls: vec![call], ..ModelAnswer::default() }
        })
    }

    pub(crate) fn says(text: &'static str) -> Turn {
        Box::new(move |_| ModelAnswer { text: text.into(), ..ModelAnswer::default() })
    }
}

impl Model for Improvising {
    fn name(&self) -> &str {
        "improvising"
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        _hear: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        if request.agent == "summary" {
            let refusal = ModelError::new(ModelErrorKind::Refused, "it can't summarize");
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let texts = request.entries.iter().flat_map(|entry| match entry {
            ConversationEntry::Told(text) => vec![text.clone()],
            ConversationEntry::Observed(observations) => observations.iter().map(|seen| seen.text.clone()).collect(),
            ConversationEntry::Answered(_) => Vec::new(),
        });
        let told = texts.collect::<Vec<_>>().join("\n");
        let turn = self.0.lock().unwrap().pop_front();
        let answer =
            turn.map(|turn| turn(&told)).ok_or_else(|| ModelError::new(ModelErrorKind::Refused, "no more turns"));
        Box::pin(std::future::ready(answer))
    }
}
