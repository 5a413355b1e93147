//! The tool `client_tool`: a use of a client's own tool that isn't one of ours. It runs nothing here; it is how such a use is judged
//! and recorded. What is known to touch nothing has no effects, a tool of an MCP server has that of using the server, and
//! what isn't known may do anything, so it counts as running without a sandbox.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{AnyTool, Effect, ErrorCode, Hands, Permission, Risk, Spec, Tool, ToolError, erase};

/// The name of the tool.
pub(crate) const CLIENT_TOOL: &str = "client_tool";

struct ClientTool;

/// Which tool of which client.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientToolArgs {
    /// The client.
    pub(crate) client: String,
    /// The tool, as the client's model knows it.
    pub(crate) tool: String,
    /// The MCP server that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Whether it is known to touch nothing.
    #[serde(default)]
    pub(crate) harmless: bool,
}

/// Nothing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NoOutput {}

/// The tool, for a workspace whose record has such uses.
pub fn client_tool() -> Arc<dyn AnyTool> {
    erase(ClientTool)
}

impl Tool for ClientTool {
    type Args = ClientToolArgs;
    type Output = NoOutput;

    const SPEC: Spec = Spec {
        name: CLIENT_TOOL,
        version: "1.0.0",
        description: "A tool of a client's own, which the client executes.",
        risk: Risk::Low,
        permissions: &[Permission::Agent, Permission::McpCall, Permission::Unsandboxed],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &ClientToolArgs) -> Vec<Effect> {
        match &args.server {
            _ if args.harmless => Vec::new(),
            Some(server) => {
                vec![Effect::UseServer { server: server.clone(), tool: Some(args.tool.clone()), definition: None }]
            }
            None => vec![Effect::Unsandboxed { command: format!("{} of {}", args.tool, args.client) }],
        }
    }

    async fn run(&self, _: ClientToolArgs, _: &dyn Hands) -> Result<NoOutput, ToolError> {
        Err(ToolError::new(ErrorCode::ToolNotAllowed, "A client's own tool isn't executed here."))
    }
}
