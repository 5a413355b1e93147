//! Hands on other MCP servers: a call reaches the server and the tool that it declared, with the definition that was approved.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{
    Denial, DeniedAccess, Effect, ErrorCode, FileHands, ResourceRequest, ServerCall, ServerDescription, ServerReply,
    SettledChanges, ToolError, WorkspacePath, reported_denials,
};

use super::call_hands::CallHands;
use super::processes::MOST_TOLD;
use crate::servers::ServerDenials;

impl CallHands {
    /// Calls a declared tool of a server. Where the server may change something, the work goes on in a task of its own until that is
    /// settled, also when the call is cancelled meanwhile. Other work ends with the call, without a change of threads.
    pub(super) async fn use_server(&self, server: &str, call: ServerCall) -> Result<ServerReply, ToolError> {
        let is_it = |effect: &Effect| {
            matches!(effect, Effect::UseServer { server: declared, tool: Some(tool), definition: Some(definition) }
                if declared == server && *tool == call.tool && *definition == call.approved_as)
        };
        self.need(is_it, "use that tool of another server")?;
        let has_changes = self.services.servers.may_change_workspace(server);
        let (hands, server) = (self.clone(), server.to_owned());
        let work = async move {
            let (servers, cancel) = (Arc::clone(&hands.services.servers), hands.services.cancel.clone());
            let person = Arc::clone(&hands.services.person);
            let called = servers.call(&server, &call, person, &cancel).await;
            let outcome = hands.tell_denials(called, &server, &servers.take_unstarted())?;
            hands.note(|tally| tally.enforced.0.extend(outcome.enforced.0));
            outcome.changes.iter().for_each(|changes| hands.count_changes(changes));
            match outcome.result {
                Ok(reply) => {
                    let has_failed = reply.result.get("isError").and_then(Value::as_bool) == Some(true);
                    let denials = hands.note_denials(has_failed, &server, &outcome.denials);
                    Ok(ServerReply { denials, ..reply })
                }
                Err(error) => hands.tell_denials(Err(error), &server, &outcome.denials),
            }
        };
        if !has_changes {
            return work.await;
        }
        self.unfinished
            .tasks
            .spawn(work)
            .await
            .unwrap_or_else(|_| Err(ToolError::internal("A call of another server was lost.")))
    }

    /// Asks a server for its resources, for a call that declared that.
    pub(super) async fn ask_resource(&self, server: &str, request: ResourceRequest) -> Result<Value, ToolError> {
        let method = match request {
            ResourceRequest::List(_) => "resources/list",
            ResourceRequest::Read(_) => "resources/read",
        };
        let is_it = |effect: &Effect| {
            matches!(effect, Effect::UseServer { server: declared, tool: Some(tool), definition: Some(_) }
                if declared == server && tool == method)
        };
        self.need(is_it, "read from that server").map_err(|error| {
            match self.services.servers.known.contains_key(server) {
                true => ToolError::new(
                    ErrorCode::ToolNotAllowed,
                    format!("Nothing of the MCP server `{server}` is approved."),
                )
                .with_hint(format!("Ask the person to run: toolgate mcp approve {server}")),
                false if self.services.servers.known.is_empty() => error,
                false => ToolError::new(ErrorCode::NotFound, format!("No MCP server named `{server}` is configured.")),
            }
        })?;
        let (servers, cancel) = (Arc::clone(&self.services.servers), self.services.cancel.clone());
        let asked = servers.resource(server, request, &cancel).await;
        let outcome = self.tell_denials(asked, server, &servers.take_unstarted())?;
        self.tell_denials(outcome.result, server, &outcome.denials)
    }

    /// What the work with a server came to; what confinement kept from it meanwhile is recorded, and part of an error.
    fn tell_denials<T>(
        &self,
        result: Result<T, ToolError>,
        server: &str,
        kept: &ServerDenials,
    ) -> Result<T, ToolError> {
        let reasons = self.note_denials(result.is_err(), server, kept);
        result.map_err(|error| match reasons.is_empty() {
            true => error,
            false => ToolError { message: format!("{} Its sandbox: {}", error.message, reasons.join(" ")), ..error },
        })
    }

    /// Records what confinement kept from a server during the call, and gives it in words: a server that got a decoy, or no answer, may
    /// give a result as if nothing had been.
    fn note_denials(&self, has_failed: bool, server: &str, kept: &ServerDenials) -> Vec<String> {
        let of_hidden = |place: &WorkspacePath| self.services.hidden_paths.denial(place, &self.shown(place));
        let denials = reported_denials(kept.network.clone(), &kept.opened, MOST_TOLD, has_failed, of_hidden);
        // What a server may reach is for its configuration to say, so no call can ask for it.
        let told = |denial: &Denial| {
            let next = match &denial.rule {
                Some(_) => denial.code.next_step().to_owned(),
                None => format!("Go on without it. What the server may reach is in `[mcp.servers.{server}]`."),
            };
            let mut told = DeniedAccess::from(denial);
            told.answered(&next, true);
            told
        };
        self.note(|tally| {
            tally.denied.extend(denials.iter().take(MOST_TOLD).map(told));
            tally.denials.extend(denials.iter().cloned());
        });
        denials.into_iter().take(MOST_TOLD).map(|denial| denial.reason).collect()
    }

    /// Records what confinement kept from a server whose call was given up. A later call of it has nothing to do with that.
    pub(super) fn note_interrupted_server(&self) {
        if let Some((server, kept)) = self.services.servers.take_interrupted() {
            self.note_denials(true, &server, &kept);
        }
    }

    /// What a server says of itself, for a call that declared to start it.
    pub(super) async fn start_server(&self, server: &str) -> Result<ServerDescription, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::UseServer { server: declared, tool: None, .. } if declared == server);
        self.need(is_it, "start that server")?;
        let servers = &self.services.servers;
        let described = servers.describe(server).await;
        self.tell_denials(described, server, &servers.take_unstarted())
    }

    /// Counts settled changes as the call's.
    pub(super) fn count_changes(&self, settled: &SettledChanges) {
        self.note_settled_sources(settled);
        let path = |line: &String| line.get(1..).unwrap_or_default().to_owned();
        self.note(|tally| {
            tally.files_changed.extend(settled.paths.iter().map(path));
            tally.more_files_changed += settled.unlisted();
            tally.folded.extend(settled.folded.iter().cloned());
        });
    }
}
