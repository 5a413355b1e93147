//! Shows a client what happens in its calls: progress where it asked for that, and messages for the person as log lines.

use std::sync::Weak;

use serde_json::json;
use toolgate_contract::{Event, EventPayload, Message, MessageLevel};
use toolgate_runtime::EventSink;

use crate::call_context::CallContext;
use crate::client::{Client, lock};
use crate::json_rpc;

/// The severities of MCP, mildest first.
const SEVERITIES: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether this is a severity.
pub(crate) fn is_severity(name: &str) -> bool {
    SEVERITIES.contains(&name)
}

/// Watches on behalf of a client.
pub(crate) struct NotificationSink(pub(crate) Weak<Client>);

impl EventSink for NotificationSink {
    fn event(&self, event: &Event) {
        let EventPayload::Display(said) = &event.payload else { return };
        let Some(client) = self.0.upgrade() else { return };
        let Some(link) = event.tool_call_id.as_deref().and_then(|call| client.link(call)) else { return };
        link.progress(said.title.as_deref().unwrap_or(&said.content));
        log(&client, &link, said);
    }

    /// Of what a command writes, the last line says where it is.
    fn live(&self, event: &Event) {
        let EventPayload::ProcessOutput(output) = &event.payload else { return };
        let Some(client) = self.0.upgrade() else { return };
        let Some(link) = event.tool_call_id.as_deref().and_then(|call| client.link(call)) else { return };
        if let Some(line) = output.text.lines().rev().find(|line| !line.trim().is_empty()) {
            link.progress(line);
        }
    }
}

/// Sends a message as a log line, if the client wants lines as mild as this.
fn log(client: &Client, link: &CallContext, said: &Message) {
    let severity = match said.level {
        MessageLevel::Progress => "debug",
        MessageLevel::Info | MessageLevel::Success => "info",
        MessageLevel::Warning => "warning",
        MessageLevel::Error => "error",
    };
    let wanted = if link.profile.is_modern() { None } else { lock(&client.log_level).clone() };
    let Some(wanted) = wanted.or_else(|| link.profile.log_level.clone()) else { return };
    let rank = |name: &str| SEVERITIES.iter().position(|&known| known == name);
    if rank(severity) >= rank(&wanted) {
        let data = json!({ "title": said.title, "content": said.content });
        let params = json!({ "level": severity, "logger": "toolgate", "data": data });
        link.outlet().send(json_rpc::notification("notifications/message", params));
    }
}
