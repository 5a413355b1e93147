//! Tells a client what happens in its calls: progress if it sent a progress token, and messages for the person as log
//! messages.

use std::sync::Weak;

use serde_json::json;
use toolgate_contract::{Event, EventPayload, Message, MessageLevel};
use toolgate_runtime::EventSink;

use crate::call_context::CallContext;
use crate::client::Client;
use crate::json_rpc;

/// The severities of MCP, mildest first.
const SEVERITIES: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether this is a severity of MCP.
pub(crate) fn is_severity(name: &str) -> bool {
    SEVERITIES.contains(&name)
}

/// Turns events of a client's calls into notifications.
pub(crate) struct NotificationSink(pub(crate) Weak<Client>);

impl EventSink for NotificationSink {
    fn event(&self, event: &Event) {
        let EventPayload::Display(said) = &event.payload else { return };
        let Some(client) = self.0.upgrade() else { return };
        let Some(call_context) = event.tool_call_id.as_deref().and_then(|call| client.call_context(call)) else {
            return;
        };
        call_context.progress(said.title.as_deref().unwrap_or(&said.content));
        log(&client, &call_context, said);
    }

    /// Reports the last line that a command wrote.
    fn live(&self, event: &Event) {
        let EventPayload::ProcessOutput(output) = &event.payload else { return };
        let Some(client) = self.0.upgrade() else { return };
        let Some(call_context) = event.tool_call_id.as_deref().and_then(|call| client.call_context(call)) else {
            return;
        };
        if let Some(line) = output.text.lines().rev().find(|line| !line.trim().is_empty()) {
            call_context.progress(line);
        }
    }
}

/// Sends a log message, if it is severe enough for the client.
fn log(client: &Client, call_context: &CallContext, said: &Message) {
    let severity = match said.level {
        MessageLevel::Progress => "debug",
        MessageLevel::Info | MessageLevel::Success => "info",
        MessageLevel::Warning => "warning",
        MessageLevel::Error => "error",
    };
    let wanted = if call_context.profile.is_stateless() { None } else { client.log_level.lock().clone() };
    let Some(wanted) = wanted.or_else(|| call_context.profile.log_level.clone()) else { return };
    let rank = |name: &str| SEVERITIES.iter().position(|&known| known == name);
    if rank(severity) >= rank(&wanted) {
        let data = json!({ "title": said.title, "content": said.content });
        let params = json!({ "level": severity, "logger": "toolgate", "data": data });
        call_context.sink().send(json_rpc::notification("notifications/message", params));
    }
}
