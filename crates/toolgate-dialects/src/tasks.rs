//! Tasks for another agent, as every dialect gives them.

use serde_json::json;

use crate::dialect::{NativeCall, Returned, ShownResult};

/// The native call that gives a task to an agent; the general one, if none is named.
pub(crate) fn enter_task(agent: Option<&str>, objective: &str) -> NativeCall {
    NativeCall::new("task", json!({ "agent": agent, "objective": objective }))
}

/// The agent's answer. One that it didn't find is an error.
pub(crate) fn leave_task(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult { text: returned.text("summary").to_owned(), is_error: !returned.is("ok") }
}
