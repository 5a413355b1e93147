//! `toolgate runs export --script`: a run's model turns as a script that repeats them.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use toolgate_contract::{Event, EventPayload};

/// The agent that a script needn't name.
const FIRST: &str = "main";

/// The turns of a run's agents, in the format of `scripted:FILE`. Secrets stay redacted, as they are in the journal.
pub(super) fn script(events: &[Event]) -> Result<String> {
    let mut turns = ScriptBuilder::default();
    events.iter().for_each(|event| turns.take(event));
    anyhow::ensure!(!turns.all.is_empty(), "The run has no model turns, so there is nothing to script.");
    let script = json!({ "turns": turns.all });
    let script = toml::Table::try_from(&script).context("the run can't be written as a script")?;
    Ok(toml::to_string_pretty(&script)?)
}

/// Builds the turns from events.
#[derive(Default)]
struct ScriptBuilder<'a> {
    /// The kind of agent of each trace.
    kinds: HashMap<&'a str, &'a str>,
    /// The index of an agent's current turn.
    places: HashMap<(&'a str, u64), usize>,
    /// Calls already added; a call that was retried with more rights begins twice.
    calls: HashSet<&'a str>,
    all: Vec<Value>,
}

impl<'a> ScriptBuilder<'a> {
    fn take(&mut self, event: &'a Event) {
        let Some(trace) = event.trace_id.as_deref() else { return };
        match (&event.payload, event.turn) {
            (EventPayload::AgentStarted { agent, .. }, _) => drop(self.kinds.insert(trace, agent)),
            (EventPayload::TurnStarted, Some(turn)) => {
                self.places.insert((trace, turn), self.all.len());
                let agent = self.kinds.get(trace).filter(|kind| **kind != FIRST);
                self.all.push(agent.map_or_else(|| json!({}), |agent| json!({ "agent": agent })));
            }
            (EventPayload::ModelSaid { text, .. }, Some(turn)) if !text.trim().is_empty() => {
                if let Some(place) = self.places.get(&(trace, turn)) {
                    self.all[*place]["text"] = json!(text.trim());
                }
            }
            (EventPayload::CallStarted { tool, args, .. }, Some(turn)) => {
                let is_new = event.tool_call_id.as_deref().is_none_or(|id| self.calls.insert(id));
                if let (Some(place), true) = (self.places.get(&(trace, turn)), is_new) {
                    let call = json!({ "tool": tool, "args": without_nulls(args) });
                    match self.all[*place]["calls"].as_array_mut() {
                        Some(calls) => calls.push(call),
                        None => self.all[*place]["calls"] = json!([call]),
                    }
                }
            }
            _ => {}
        }
    }
}

/// TOML has no null; a null argument is left out.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
