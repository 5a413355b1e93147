//! Detects when an agent repeats itself: the same calls with the same results, in a row or alternating.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use toolgate_contract::Reply;
use toolgate_dialects::ToolCall;

/// How many turns are remembered.
const REMEMBERED: usize = 16;

/// The last turns, each as a hash of its calls and results.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    turns: VecDeque<u64>,
}

impl LoopDetector {
    /// Remembers a turn; returns how often the same turn occurred recently, this one included.
    pub(crate) fn turn<'a>(&mut self, calls: &[ToolCall], replies: impl IntoIterator<Item = &'a Reply>) -> u32 {
        let print = fingerprint(calls, replies);
        if self.turns.len() == REMEMBERED {
            self.turns.pop_front();
        }
        self.turns.push_back(print);
        self.turns.iter().filter(|turn| **turn == print).count() as u32
    }
}

fn fingerprint<'a>(calls: &[ToolCall], replies: impl IntoIterator<Item = &'a Reply>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (call, reply) in calls.iter().zip(replies) {
        call.name.hash(&mut hasher);
        call.args.as_ref().map(ToString::to_string).map_err(|error| &error.message).hash(&mut hasher);
        // The duration differs every time and carries no information.
        let mut payload = reply.payload.clone().unwrap_or_default();
        payload.as_object_mut().map(|fields| fields.shift_remove("duration_ms"));
        payload.to_string().hash(&mut hasher);
        reply.error.as_ref().map(|error| (error.code, &error.message)).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::{Enforced, ReplyArtifacts};

    use super::*;

    fn reply(payload: serde_json::Value) -> Reply {
        Reply {
            tool_call_id: "c".into(),
            ok: true,
            payload: Some(payload),
            error: None,
            artifacts: ReplyArtifacts::default(),
            enforced: Enforced::default(),
            truncated: None,
            redacted: false,
            duration_ms: 0,
        }
    }

    #[test]
    fn the_same_calls_with_the_same_results_are_counted_even_when_they_take_turns() {
        let mut progress = LoopDetector::default();
        let mut turn = |name: &str, result: u32, took: u32| {
            let call = ToolCall::function("1", name, r#"{"a":1}"#);
            progress.turn(&[call], &[reply(json!({ "result": result, "duration_ms": took }))])
        };
        assert_eq!([turn("read", 1, 5), turn("list", 1, 5), turn("read", 1, 9), turn("list", 1, 9)], [1, 1, 2, 2]);
        assert_eq!(turn("read", 2, 5), 1, "another result is progress");
    }
}
