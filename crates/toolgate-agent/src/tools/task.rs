//! `task`: gives a piece of work to another agent and waits for its answer (C-41).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{Effect, FinishReason, Hands, Permission, Risk, Spec, SubagentTask, Tool, ToolError};

use super::USUAL;

/// Gives a piece of work to another agent.
pub struct TaskTool;

/// What to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Which agent: `general` has your tools, `explore` only looks. `general` unless told.
    #[serde(default = "usual")]
    agent: String,
    /// What it should achieve, with all it needs to know; it sees nothing of your conversation.
    objective: String,
}

fn usual() -> String {
    USUAL.into()
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Whether it came to an answer.
    ok: bool,
    /// Which agent it was.
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
                      need to see. Several can run side by side.",
        risk: Risk::Medium,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    /// Agents bring time limits of their own, which this leaves room for.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(86_400));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Delegate { agent: args.agent.clone() }]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let (agents, call) = hands.agents(&args.agent)?;
        let id = agents.send(SubagentTask {
            agent: args.agent,
            objective: args.objective,
            tool_call_id: call.to_owned(),
            cancel: Some(hands.cancelled()),
        })?;
        let sent = agents.wait(&id, None).await?;
        let finish = sent.finish.ok_or_else(|| ToolError::internal("An agent was lost on its way."))?;
        let summary = sent.summary.unwrap_or_default();
        Ok(Output { ok: finish == FinishReason::Answered, agent: sent.agent, summary, finish })
    }
}
