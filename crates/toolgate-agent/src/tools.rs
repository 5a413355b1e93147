//! The tools with which an agent sets others to work. They are offered where an agent is at work, and nowhere else.

mod agents;
mod task;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use agents::AgentsTool;
pub use task::TaskTool;

/// The agent that is sent when none is named.
const USUAL: &str = "general";

/// Every tool of an agent's own.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(AgentsTool), // sends agents, and deals with them while they work
        erase(TaskTool),   // sends an agent and waits for its answer
    ]
}
