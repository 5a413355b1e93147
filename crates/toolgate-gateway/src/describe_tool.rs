//! `mcp_describe`: starts a server and shows what it says of itself, for the person who approves its tools. Models aren't told of
//! it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Effect, Hands, Permission, Risk, SideEffect, Spec, Tool, ToolError};

/// Shows what a server says of itself.
pub struct DescribeServerTool;

/// Which server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Its name in the configuration.
    #[schemars(length(max = 64))]
    server: String,
}

/// What it says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How many tools it defines.
    tools: usize,
    /// The artifact with everything that it says, as it wrote it.
    description: String,
}

impl Tool for DescribeServerTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "mcp_describe",
        version: "1.0.0",
        description: "Start an MCP server in its sandbox and store what it says of itself and its tools.",
        risk: Risk::Medium,
        permissions: &[Permission::McpCall],
        side_effects: &[SideEffect::StartsProcesses],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::UseServer { server: args.server.clone(), tool: None, definition: None }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let described = hands.describe_server(&args.server).await?;
        let whole = serde_json::to_vec(&described).map_err(|fault| ToolError::internal(fault.to_string()))?;
        Ok(Output { tools: described.tools.len(), description: hands.keep(&whole, "application/json")?.id })
    }
}
