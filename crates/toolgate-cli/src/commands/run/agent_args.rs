//! The options that every command with an agent takes: the model, the limits of a task, and the run to go on with.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use toolgate_agent::{AgentLimits, PastConversation};
use toolgate_dialects::DialectSet;

use super::{ModelArgs, OpenedModel};
use crate::commands::dialects::DialectChoice;

/// The agent's model and limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The names under which the model is given the tools; `toolgate dialects` lists them. Several can be named, and `auto`
    /// takes those that the model knows best [default: those of the run that goes on, or `model.dialect` of your
    /// configuration, or native].
    #[arg(long, value_name = "NAMES", help_heading = "Model")]
    dialect: Option<DialectChoice>,
    /// Go on with the last run in which an agent worked.
    #[arg(long = "continue", short = 'c')]
    pub(crate) continues: bool,
    /// Go on with this run: its id, its beginning, or `last`.
    #[arg(long, value_name = "RUN", conflicts_with = "continues")]
    pub(crate) resume: Option<String>,
    /// Maximum number of turns for one task.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().turns)]
    max_turns: u64,
    /// Maximum time for one task, in minutes.
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    max_minutes: f64,
    /// Maximum number of tokens for one task, input and output, subagents included.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().tokens)]
    max_tokens: u64,
    /// Maximum tokens of context; older turns are summarized to make room.
    #[arg(long, value_name = "N", default_value_t = AgentLimits::default().context)]
    context_tokens: u64,
    /// The session whose approvals apply.
    #[arg(long, env = "TOOLGATE_SESSION", default_value = "agent", hide_env_values = true)]
    pub(crate) session: String,
}

impl AgentArgs {
    /// The dialects in which the model is spoken to: as the command line says, as before, or as configured.
    pub(crate) fn dialects(&self, opened: &OpenedModel, before: Option<&PastConversation>) -> Result<DialectSet> {
        if let Some(choice) = &self.dialect {
            return Ok(choice.for_model(&opened.name));
        }
        if let Some(past) = before {
            return Ok(past.dialects.as_ref().map(|state| state.set().clone()).unwrap_or_default());
        }
        match &opened.settings.dialect {
            None => Ok(DialectSet::default()),
            Some(names) => {
                let choice: DialectChoice = names.parse().context("`model.dialect` names no dialects")?;
                Ok(choice.for_model(&opened.name))
            }
        }
    }

    /// The limits of a task.
    pub(crate) fn limits(&self) -> Result<AgentLimits> {
        let time = Duration::try_from_secs_f64(self.max_minutes * 60.0)
            .ok()
            .filter(|time| !time.is_zero() && *time <= Duration::from_secs(30 * 24 * 3600))
            .context("`--max-minutes` has to be more than 0 and at most a month.")?;
        anyhow::ensure!(self.max_turns > 0, "`--max-turns` is 0. Give it 1 or more.");
        let (turns, tokens, context) = (self.max_turns, self.max_tokens, self.context_tokens);
        Ok(AgentLimits { turns, time, tokens, context, ..AgentLimits::default() })
    }
}
