//! The tools with which an agent starts other agents. They are offered only to agents.

mod agents;
mod task;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use agents::AgentsTool;
pub use task::TaskTool;

/// The agent that is started when none is named.
const DEFAULT_AGENT: &str = "general";

/// All tools that only agents have.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(AgentsTool), // starts agents, and manages them while they work
        erase(TaskTool),   // starts an agent and waits for its answer
    ]
}
