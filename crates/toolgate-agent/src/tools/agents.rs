//! `agents`: starts agents that work concurrently with the caller, and manages them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, SubagentStatus, SubagentTask, Tool, ToolError};

use super::DEFAULT_AGENT;

/// Starts and manages agents.
pub struct AgentsTool;

/// The action, and the agent that it is for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to do.
    action: AgentsAction,
    /// For `spawn`: the kind of agent; `general` by default.
    #[serde(default)]
    agent: Option<String>,
    /// For `spawn`: its task, with everything it needs to know.
    #[serde(default)]
    objective: Option<String>,
    /// For `message`, `wait` and `stop`: the agent's id.
    #[serde(default)]
    id: Option<String>,
    /// For `message`: the message. The agent reads it before its next turn.
    #[serde(default)]
    text: Option<String>,
    /// For `wait`: the longest time to wait, in seconds.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    seconds: Option<u64>,
}

/// The actions.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentsAction {
    /// Starts an agent and returns at once.
    Spawn,
    /// Sends a message to an agent.
    Message,
    /// Waits for an agent's answer.
    Wait,
    /// Lists all agents.
    List,
    /// Stops an agent.
    Stop,
}

/// The state of the agents.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The agents in question.
    agents: Vec<SubagentStatus>,
}

impl Args {
    /// The agent that this is about, as declared in the effects.
    fn target(&self) -> String {
        match self.action {
            AgentsAction::Spawn => self.agent.clone().unwrap_or_else(|| DEFAULT_AGENT.into()),
            AgentsAction::List => "all".into(),
            AgentsAction::Message | AgentsAction::Wait | AgentsAction::Stop => self.id.clone().unwrap_or_default(),
        }
    }
}

fn required(value: Option<String>, name: &str) -> Result<String, ToolError> {
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
        description: "Start agents that work concurrently with you: `spawn` gives an id at once; then `message`, `wait`, `list` or \
                      `stop`. They end when you do. To simply wait for one answer, use `task`.",
        risk: Risk::Medium,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: false,
    };

    /// Agents have time limits of their own, which are shorter than this.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(86_400));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Delegate { agent: args.target() }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let target = args.target();
        let (agents, call) = hands.agents(&target)?;
        let now = |id: &str| agents.list().into_iter().filter(|sent| sent.id == id).collect();
        let agents = match args.action {
            AgentsAction::Spawn => {
                let objective = required(args.objective, "objective")?;
                let id = agents.send(SubagentTask {
                    agent: target,
                    objective,
                    tool_call_id: call.to_owned(),
                    cancel: None,
                })?;
                now(&id)
            }
            AgentsAction::Message => {
                let id = required(args.id, "id")?;
                agents.message(&id, &required(args.text, "text")?)?;
                now(&id)
            }
            AgentsAction::Wait => {
                let most = args.seconds.map(Duration::from_secs);
                vec![agents.wait(&required(args.id, "id")?, most).await?]
            }
            AgentsAction::List => agents.list(),
            AgentsAction::Stop => {
                let id = required(args.id, "id")?;
                agents.stop(&id)?;
                vec![agents.wait(&id, None).await?]
            }
        };
        Ok(Output { agents })
    }
}
