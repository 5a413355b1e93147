//! `task`: gives a task to another agent and waits for its answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{Effect, FinishReason, Hands, Permission, Risk, Spec, SubagentTask, Tool, ToolError};

use super::DEFAULT_AGENT;

/// Gives a task to another agent.
pub struct TaskTool;

/// The task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Which agent: `general` has your tools, `explore` only reads. The default is `general`.
    #[serde(default = "default_agent")]
    agent: String,
    /// Its task, with everything it needs to know; it sees nothing of your conversation.
    objective: String,
}

fn default_agent() -> String {
    DEFAULT_AGENT.into()
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Whether it found an answer.
    ok: bool,
    /// The agent's kind.
    agent: String,
    /// Its answer, or why there is none.
    summary: String,
    /// How its work ended.
    finish: FinishReason,
}

impl Tool for TaskTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "task",
        version: "1.0.0",
        description: "Give a piece of work to another agent and get its answer. It has a conversation of its own and \
                      no more rights than you. Good for looking around widely, and for work whose details you don't \
                      need to see. Several can run concurrently.",
        risk: Risk::Medium,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    /// Agents have time limits of their own, which are shorter than this.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(86_400));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Delegate { agent: args.agent.clone() }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let (agents, call) = hands.agents(&args.agent)?;
        let id = agents.send(SubagentTask {
            agent: args.agent,
            objective: args.objective,
            tool_call_id: call.to_owned(),
            cancel: Some(hands.cancelled()),
        })?;
        let sent = agents.wait(&id, None).await?;
        let finish = sent.finish.ok_or_else(|| ToolError::internal("The agent ended without an outcome."))?;
        let summary = sent.summary.unwrap_or_default();
        Ok(Output { ok: finish == FinishReason::Answered, agent: sent.agent, summary, finish })
    }
}
