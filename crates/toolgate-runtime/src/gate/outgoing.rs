//! What goes out to other MCP servers. A secret among the arguments, and a way out of a session that has read the workspace and has heard
//! a stranger, are asked about even where calls of the tool are allowed: a text that steers the model could carry away what it has read.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_config::Preset;
use toolgate_contract::{
    Decision, Effect, Finding, Layer, LocatedEffect, RuleName, ServerLocation, ToolServer, Verdict, sha256,
};

use super::call_record::CallRecord;
use super::server_calls::ToolServers;

/// What a session has taken in so far.
#[derive(Debug, Default)]
pub(crate) struct FlowLabels {
    /// Whether it has read the workspace.
    private: AtomicBool,
    /// The MCP servers that see the workspace and have answered: what they said may be what they read there.
    readers: Mutex<BTreeSet<String>>,
    /// Whether it has heard somebody that nobody here vouches for: a server, or a page.
    untrusted: AtomicBool,
}

impl FlowLabels {
    /// Notes what a call took in. `servers` are those that configuration names.
    pub(crate) fn note(&self, effects: &[LocatedEffect], servers: &ToolServers) {
        for located in effects {
            match &located.effect {
                Effect::Read { .. } | Effect::Run { .. } => self.private.store(true, Ordering::Relaxed),
                Effect::UseServer { server, tool: Some(_), .. } => {
                    self.untrusted.store(true, Ordering::Relaxed);
                    let mut readers = self.readers.lock();
                    if !readers.contains(server)
                        && servers.get(server).is_some_and(|server| !is_elsewhere(server.as_ref()))
                    {
                        readers.insert(server.clone());
                    }
                }
                Effect::Connect { .. } => self.untrusted.store(true, Ordering::Relaxed),
                _ => {}
            }
        }
    }

    /// Whether a call of this server could carry away what it doesn't see by itself.
    fn could_leak_to(&self, server: &str) -> bool {
        let is_private =
            self.private.load(Ordering::Relaxed) || self.readers.lock().iter().any(|reader| reader != server);
        is_private && self.untrusted.load(Ordering::Relaxed)
    }
}

/// The verdict, with what has to be asked about before a call goes out to a server. The preset that asks about nothing doesn't ask here.
pub(super) fn asking_about_outgoing(record: &CallRecord<'_>, mut verdict: Verdict) -> Verdict {
    if verdict.decision == Decision::Deny || record.gate.parts.policy.preset() == Preset::Full {
        return verdict;
    }
    let used = record.effects.iter().find_map(|located| match &located.effect {
        Effect::UseServer { server, tool: Some(tool), definition } => Some((server, tool, definition)),
        _ => None,
    });
    let Some((server, tool, definition)) = used else { return verdict };
    let finding = |rule: &str, about: &str, reason: String| {
        // An approval of the tool alone doesn't cover this, so it is an effect of its own.
        let approved = definition.as_deref().unwrap_or_default();
        let effect = Effect::UseServer {
            server: server.clone(),
            tool: Some(tool.clone()),
            definition: Some(sha256(format!("{approved} {rule} {about}"))),
        };
        let name = RuleName { rule: rule.to_owned(), layer: Layer::Builtin };
        Finding { decision: Decision::Ask, effect: Some(effect), name, reason, code: None }
    };
    let mut findings = Vec::new();
    let secrets = secret_fields(&record.call.args, &record.shown_args);
    if !secrets.is_empty() {
        let fields = secrets.join(", ");
        let reason = format!("A secret would go out to the MCP server `{server}`, in {fields}.");
        findings.push(finding("outgoing secret", &record.call.args.to_string(), reason));
    }
    if record.session.flow.could_leak_to(server) && reaches_out(record, server) {
        let reason = format!(
            "The session has read the workspace and has heard a stranger, and the MCP server `{server}` can pass on what it is told."
        );
        findings.push(finding("outgoing flow", "", reason));
    }
    if let Some(first) = findings.first().filter(|_| verdict.decision == Decision::Allow) {
        verdict.decision = Decision::Ask;
        verdict.lost.push(std::mem::replace(&mut verdict.decided_by, first.clone()));
    }
    verdict.asks.extend(findings);
    verdict
}

/// Whether a server is elsewhere, or may connect to somebody.
fn reaches_out(record: &CallRecord<'_>, server: &str) -> bool {
    record
        .gate
        .parts
        .servers
        .get(server)
        .is_some_and(|server| !server.hosts().is_empty() || is_elsewhere(server.as_ref()))
}

/// Whether a server isn't a program on this machine, which sees the workspace.
fn is_elsewhere(server: &dyn ToolServer) -> bool {
    matches!(server.location(), Ok(ServerLocation::Remote(..)))
}

/// Where the arguments hold something that is never shown, as JSON pointers.
fn secret_fields(args: &Value, shown: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    compare(args, shown, "", &mut fields);
    fields
}

fn compare(args: &Value, shown: &Value, place: &str, fields: &mut Vec<String>) {
    match (args, shown) {
        (Value::Object(args), Value::Object(shown)) if args.len() == shown.len() => {
            for ((name, value), (_, other)) in args.iter().zip(shown) {
                compare(value, other, &format!("{place}/{name}"), fields);
            }
        }
        (Value::Array(args), Value::Array(shown)) if args.len() == shown.len() => {
            for (index, (value, other)) in args.iter().zip(shown).enumerate() {
                compare(value, other, &format!("{place}/{index}"), fields);
            }
        }
        (value, other) if value == other => {}
        _ => fields.push(format!("`{place}`")),
    }
}
