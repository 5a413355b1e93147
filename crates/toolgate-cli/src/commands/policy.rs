//! `toolgate policy`: shows how a call would be judged, and why.

mod check;
mod examples;
mod explain;
mod replay;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use toolgate_contract::{Call, Effect, LocatedEffect, Verdict};
use toolgate_dialects::strict_json;
use toolgate_runtime::Judgement;
use toolgate_workspace::Workspace;

use super::Invocation;
use crate::exit::Exit;
use crate::workspace::open_workspace;

pub(super) use self::examples::holds;

/// Judge calls without running them.
///
/// Examples:
///   toolgate policy check 'git status && cargo test 2>&1 | tail -20'
///   toolgate policy check --preset read-only 'find . -delete'
///   toolgate policy check --tool read '{"path":".env"}'
///   printf 'ls\nrm -rf /\n' | toolgate policy check --batch
///   toolgate policy explain 'sudo env X=1 sh -c "cat a > b"'
///   toolgate policy test
///   toolgate policy replay --preset read-only
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
enum PolicyVerb {
    /// Print the decision as the first word: allow, allow-confined, ask or deny. Exit code 0, 0, 4, 3.
    Check(check::PolicyCheckArgs),
    /// Show every part as a tree: what it touches, the rule that decided, the rules that lost.
    Explain(JudgedInput),
    /// Check the examples of every rule in every layer.
    Test(examples::PolicyTestArgs),
    /// Judge past runs by the current policy, and list the decisions that would change.
    Replay(replay::PolicyReplayArgs),
}

#[derive(Debug, Args)]
struct JudgedInput {
    /// A command line; with --tool, the tool's arguments as JSON.
    input: String,
    /// Judge a call of this tool instead of a command.
    #[arg(long)]
    tool: Option<String>,
    /// The directory that the command runs in.
    #[arg(long, default_value = ".", value_name = "DIR")]
    workdir: String,
}

impl PolicyArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let workspace = open_workspace(&invocation.location)?;
        match self.verb {
            PolicyVerb::Check(check) => check.run(&workspace, invocation.json),
            PolicyVerb::Explain(subject) => explain::run(&subject, &workspace, invocation.json),
            PolicyVerb::Test(test) => test.run(&workspace, invocation.json),
            PolicyVerb::Replay(replay) => replay.run(&workspace, invocation),
        }
    }
}

impl JudgedInput {
    fn judge(&self, workspace: &Workspace) -> Result<Judgement> {
        match &self.tool {
            Some(tool) => {
                let args = strict_json::parse(self.input.as_bytes())?;
                Ok(workspace.gate.judge(&Call::new(tool, args, workspace.clock.as_ref()), &[])?)
            }
            None => judge_command(workspace, &self.input, &self.workdir),
        }
    }
}

/// Judges a command as a call of the tool `shell` would be.
fn judge_command(workspace: &Workspace, command: &str, workdir: &str) -> Result<Judgement> {
    let effect = Effect::Run { command: command.to_owned(), workdir: workdir.to_owned() };
    let verdict =
        workspace.gate.judge_again("shell", vec![effect.clone()]).context("there is no tool that runs commands")??;
    Ok(Judgement { effects: vec![LocatedEffect::nowhere(effect)], verdict })
}

fn exit(verdict: &Verdict) -> Exit {
    use toolgate_contract::Decision;
    match verdict.decision {
        Decision::Allow => Exit::Ok,
        Decision::Ask => Exit::ApprovalNeeded,
        Decision::Deny => Exit::Denied,
    }
}
