//! Hands on other MCP servers: a call reaches the server and the tool that it declared, with the definition that was approved.

use std::sync::Arc;

use toolgate_contract::{Effect, ServerCall, ServerDescription, ServerReply, SettledChanges, ToolError};

use super::call_hands::CallHands;

impl CallHands {
    /// Calls a declared tool of a server. The work goes on in a task of its own until what the server changed is settled, also
    /// when the call is cancelled meanwhile.
    pub(super) async fn use_server(&self, server: &str, call: ServerCall) -> Result<ServerReply, ToolError> {
        let is_it = |effect: &Effect| {
            matches!(effect, Effect::UseServer { server: declared, tool: Some(tool), definition: Some(definition) }
                if declared == server && *tool == call.tool && *definition == call.approved_as)
        };
        self.need(is_it, "use that tool of another server")?;
        let (hands, server) = (self.clone(), server.to_owned());
        let work = self.unfinished.tasks.spawn(async move {
            let (servers, cancel) = (Arc::clone(&hands.services.servers), hands.services.cancel.clone());
            let person = Arc::clone(&hands.services.person);
            let outcome = servers.call(&server, &call, person, &cancel).await?;
            hands.note(|tally| tally.enforced.0.extend(outcome.enforced.0));
            outcome.changes.iter().for_each(|changes| hands.count_changes(changes));
            outcome.result
        });
        work.await.unwrap_or_else(|_| Err(ToolError::internal("A call of another server was lost.")))
    }

    /// What a server says of itself, for a call that declared to start it.
    pub(super) async fn start_server(&self, server: &str) -> Result<ServerDescription, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::UseServer { server: declared, tool: None, .. } if declared == server);
        self.need(is_it, "start that server")?;
        self.services.servers.describe(server).await
    }

    /// Counts settled changes as the call's.
    pub(super) fn count_changes(&self, settled: &SettledChanges) {
        let path = |line: &String| line.get(1..).unwrap_or_default().to_owned();
        self.note(|tally| {
            tally.files_changed.extend(settled.paths.iter().map(path));
            tally.more_files_changed += settled.unlisted();
            tally.folded.extend(settled.folded.iter().cloned());
        });
    }
}
