//! `agents`: sends agents that work beside the caller, and deals with them meanwhile (C-41).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, SubagentStatus, SubagentTask, Tool, ToolError};

use super::USUAL;

/// Sends agents and deals with them.
pub struct AgentsTool;

/// What to do with which agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to do.
    action: AgentsAction,
    /// For `spawn`: which agent, `general` unless told.
    #[serde(default)]
    agent: Option<String>,
    /// For `spawn`: what it should achieve, with all it needs to know.
    #[serde(default)]
    objective: Option<String>,
    /// For `message`, `wait` and `stop`: the agent's id.
    #[serde(default)]
    id: Option<String>,
    /// For `message`: what to tell it. It reads that before its next turn.
    #[serde(default)]
    text: Option<String>,
    /// For `wait`: how many seconds at the most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    seconds: Option<u64>,
}

/// What can be done.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentsAction {
    /// Sends an agent and goes on at once.
    Spawn,
    /// Tells one something more.
    Message,
    /// Waits for one's answer.
    Wait,
    /// Shows all.
    List,
    /// Stops one.
    Stop,
}

/// How they stand.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The agents in question.
    agents: Vec<SubagentStatus>,
}

impl Args {
    /// The agent that this is about, as it is declared.
    fn whom(&self) -> String {
        match self.action {
            AgentsAction::Spawn => self.agent.clone().unwrap_or_else(|| USUAL.into()),
            AgentsAction::List => "all".into(),
            AgentsAction::Message | AgentsAction::Wait | AgentsAction::Stop => self.id.clone().unwrap_or_default(),
        }
    }
}

fn needed(value: Option<String>, name: &str) -> Result<String, ToolError> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| ToolError::invalid_args(format!("This action needs `{name}`.")))
}

impl Tool for AgentsTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "agents",
        version: "1.0.0",
        description: "Send agents that work beside you: `spawn` gives an id at once; then `message`, `wait`, `list` or \
                      `stop`. They end when you do. To simply wait for one answer, use `task`.",
        risk: Risk::Medium,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: false,
    };

    /// Agents bring time limits of their own, which this leaves room for.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(86_400));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Delegate { agent: args.whom() }]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let whom = args.whom();
        let (agents, call) = hands.agents(&whom)?;
        let now = |id: &str| agents.list().into_iter().filter(|sent| sent.id == id).collect();
        let agents = match args.action {
            AgentsAction::Spawn => {
                let objective = needed(args.objective, "objective")?;
                let id = agents.send(SubagentTask {
                    agent: whom,
                    objective,
                    tool_call_id: call.to_owned(),
                    cancel: None,
                })?;
                now(&id)
            }
            AgentsAction::Message => {
                let id = needed(args.id, "id")?;
                agents.message(&id, &needed(args.text, "text")?)?;
                now(&id)
            }
            AgentsAction::Wait => {
                let most = args.seconds.map(Duration::from_secs);
                vec![agents.wait(&needed(args.id, "id")?, most).await?]
            }
            AgentsAction::List => agents.list(),
            AgentsAction::Stop => {
                let id = needed(args.id, "id")?;
                agents.stop(&id)?;
                vec![agents.wait(&id, None).await?]
            }
        };
        Ok(Output { agents })
    }
}
