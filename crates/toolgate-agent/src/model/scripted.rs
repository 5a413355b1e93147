//! A model that follows a script: for tests, for the demo, and to try a policy without an API key. A script is a TOML
//! file of turns; each has text and tool calls, and may expect words in the results before it.
//!
//! ```toml
//! [[turns]]
//! text = "Let me look."
//! calls = [{ tool = "read", args = { path = "notes.md" } }]
//!
//! [[turns]]
//! expect = ["milk"]          # words that the results so far must contain, or the script fails
//! text = "There is milk on the list."
//! ```

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolgate_contract::{BoxFuture, TokenUsage};
use toolgate_dialects::{ToolCall, ToolCallKind};

use super::{ConversationEntry, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, OnText};

/// The turns of a scripted model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    /// The turns, in order; each kind of agent takes its own.
    pub turns: Vec<ScriptedTurn>,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedTurn {
    /// The kind of agent that it is for.
    pub agent: Option<String>,
    /// Words that the last results must contain.
    pub expect: Vec<String>,
    /// The text of the answer.
    pub text: String,
    /// The calls of the answer.
    pub calls: Vec<ScriptedCall>,
    /// How long to wait before answering.
    pub pause_ms: u64,
    /// The token usage to report.
    pub tokens: Option<TokenUsage>,
}

/// One call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default = "no_arguments")]
    pub args: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

impl ModelScript {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        toml::from_str(text)
            .map_err(|fault| ModelError::new(ModelErrorKind::Refused, format!("The script can't be read: {fault}")))
    }
}

/// Follows a script.
#[derive(Debug)]
pub struct ScriptedModel {
    script: ModelScript,
    /// How many turns each kind of agent has taken of the present task.
    taken: Mutex<HashMap<String, usize>>,
}

impl ScriptedModel {
    /// A model that follows this script.
    pub fn new(script: ModelScript) -> Self {
        Self { script, taken: Mutex::default() }
    }

    /// The next turn of the agent that asks. A turn without a kind belongs to the main agent, whose conversation may have
    /// begun in another process. Each new conversation of a main agent begins the script anew, so that a worker follows
    /// it once for each task.
    fn next(&self, request: &ModelRequest<'_>) -> Option<&ScriptedTurn> {
        let (mut taken, agent) = (self.taken.lock(), request.agent);
        if agent == MAIN_AGENT && matches!(request.entries, [ConversationEntry::Told(_)]) {
            taken.clear();
        }
        let count = taken.entry(agent.to_owned()).or_default();
        if agent == MAIN_AGENT {
            *count = (*count).max(usize::try_from(request.answers).unwrap_or(usize::MAX));
        }
        let turn =
            self.script.turns.iter().filter(|turn| turn.agent.as_deref().unwrap_or(MAIN_AGENT) == agent).nth(*count);
        *count += 1;
        turn
    }

    async fn ask(&self, request: &ModelRequest<'_>, on_text: OnText<'_>) -> Result<ModelAnswer, ModelError> {
        let fails = |message: String| ModelError::new(ModelErrorKind::Refused, message);
        let turn = self
            .next(request)
            .ok_or_else(|| fails(format!("The script has no more turns for the agent `{}`.", request.agent)))?;
        let seen = last_results(request.entries);
        if let Some(missing) = turn.expect.iter().find(|words| !seen.contains(words.as_str())) {
            return Err(fails(format!("The script expects `{missing}` in the results, which are:\n{seen}")));
        }
        if turn.pause_ms > 0 {
            tokio::time::sleep(Duration::from_millis(turn.pause_ms)).await;
        }
        on_text(&turn.text);
        let calls = turn.calls.iter().enumerate().map(|(index, call)| ToolCall {
            id: format!("scripted_{}", index + 1),
            name: call.tool.clone(),
            args: Ok(call.args.clone()),
            shape: ToolCallKind::Function,
        });
        let tokens = turn.tokens.unwrap_or_default();
        Ok(ModelAnswer { text: turn.text.clone(), calls: calls.collect(), tokens, ..ModelAnswer::default() })
    }
}

/// The name of the agent that a person starts.
pub(crate) const MAIN_AGENT: &str = "main";

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(self.ask(request, on_text))
    }
}

/// The last messages to the model: results of calls and other messages.
fn last_results(entries: &[ConversationEntry]) -> String {
    let latest = entries.iter().rev().take_while(|entry| !matches!(entry, ConversationEntry::Answered(_)));
    let texts = latest.flat_map(|entry| match entry {
        ConversationEntry::Told(text) => vec![text.as_str()],
        ConversationEntry::Observed(observations) => observations.iter().map(|seen| seen.text.as_str()).collect(),
        ConversationEntry::Answered(_) => Vec::new(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
