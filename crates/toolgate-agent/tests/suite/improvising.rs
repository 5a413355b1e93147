//! A model whose turns are functions of what it was told last.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::Value;
use toolgate_agent::model::{Answer, Entry, Failure, Hear, Model, ModelError, Request};
use toolgate_contract::BoxFuture;
use toolgate_dialects::{Asked, Shape};

type Turn = Box<dyn Fn(&str) -> Answer + Send>;

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
            let call = Asked { id: "1".into(), name: tool.into(), args, shape: Shape::Function };
            Answer { calls: vec![call], ..Answer::default() }
        })
    }

    pub(crate) fn says(text: &'static str) -> Turn {
        Box::new(move |_| Answer { text: text.into(), ..Answer::default() })
    }
}

impl Model for Improvising {
    fn name(&self) -> &str {
        "improvising"
    }

    fn answer<'a>(&'a self, request: &'a Request<'a>, _hear: Hear<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let texts = request.entries.iter().flat_map(|entry| match entry {
            Entry::Told(text) => vec![text.clone()],
            Entry::Observed(observations) => observations.iter().map(|seen| seen.text.clone()).collect(),
            Entry::Answered(_) => Vec::new(),
        });
        let told = texts.collect::<Vec<_>>().join("\n");
        let turn = self.0.lock().unwrap().pop_front();
        let answer = turn.map(|turn| turn(&told)).ok_or_else(|| ModelError::new(Failure::Refused, "no more turns"));
        Box::pin(std::future::ready(answer))
    }
}
