//! Answers calls from the journal, without running anything: one JSON call per line in, one reply per line out. A call
//! that is repeated gets the next recorded reply, so a client can be developed against a recorded run.

use std::io::{BufRead, Write};

use anyhow::Result;
use serde_json::{Value, json};
use toolgate_contract::{Call, ErrorCode, SystemClock, ToolError};
use toolgate_dialects::strict_json;

use super::compare::normalized;
use super::past_run::{PastCall, PastRun};
use crate::exit::Exit;
use crate::output::{RawOutput, is_closed};

/// Serves until the end of the input.
pub(super) fn serve(past: PastRun) -> Result<Exit> {
    let mut record = RecordedReplies { given: vec![false; past.calls.len()], calls: past.calls };
    let mut out = RawOutput;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            writeln!(out, "{}", record.answer(&line))?;
            out.flush()?;
        }
        if is_closed() {
            break;
        }
    }
    Ok(Exit::Ok)
}

struct RecordedReplies {
    calls: Vec<PastCall>,
    /// Which of them were already returned.
    given: Vec<bool>,
}

impl RecordedReplies {
    fn answer(&mut self, line: &str) -> Value {
        match strict_json::parse_call(line.as_bytes(), &SystemClock) {
            Ok(call) => match self.find(&call) {
                Some(index) => self.reply(&call.tool_call_id, index),
                None => refusal(&call.tool_call_id, &self.unknown(&call)),
            },
            Err(error) => refusal("", &error),
        }
    }

    /// The first matching call that wasn't returned yet, or the last one that was.
    fn find(&self, call: &Call) -> Option<usize> {
        let wanted = normalized(&call.args);
        let same =
            |past: &PastCall| past.tool == call.name && normalized(&past.args) == wanted && !past.answer.is_null();
        let all: Vec<usize> = (0..self.calls.len()).filter(|index| same(&self.calls[*index])).collect();
        all.iter().find(|index| !self.given[**index]).or(all.last()).copied()
    }

    fn reply(&mut self, id: &str, index: usize) -> Value {
        self.given[index] = true;
        let answer = &self.calls[index].answer;
        let ok = answer["error"].is_null();
        let files: Vec<&String> = answer["changed"].as_object().into_iter().flat_map(|paths| paths.keys()).collect();
        json!({
            "tool_call_id": id, "ok": ok, "payload": answer["payload"], "error": answer["error"],
            "artifacts": { "files_changed": files, "commands_run": [], "refs": [] },
            "enforced": {}, "truncated": null, "redacted": false, "duration_ms": 0,
        })
    }

    fn unknown(&self, call: &Call) -> ToolError {
        let count = self.calls.iter().filter(|past| past.tool == call.name).count();
        let message =
            format!("The record has no call of `{}` with these arguments, and {count} with others.", call.name);
        ToolError::new(ErrorCode::NotFound, message).with_hint("`toolgate runs export` shows the recorded calls.")
    }
}

fn refusal(id: &str, error: &ToolError) -> Value {
    json!({
        "tool_call_id": id, "ok": false, "payload": null, "error": error,
        "artifacts": { "files_changed": [], "commands_run": [], "refs": [] },
        "enforced": {}, "truncated": null, "redacted": false, "duration_ms": 0,
    })
}
