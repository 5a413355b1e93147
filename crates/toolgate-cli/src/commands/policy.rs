//! `toolgate policy`: shows how a call would be judged, and why.

mod check;
mod examples;
mod explain;
mod replay;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::Value;
use toolgate_contract::{Call, Effect, LocatedEffect, Verdict};
use toolgate_dialects::{AskedCall, DIALECTS, Dialect, DialectMemory, strict_json};
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
///   toolgate policy check --dialect clude --tool delete_file '{"path":"a.txt"}'
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
    /// With --tool: take the tool and its arguments in the words of a dialect.
    #[arg(long, value_name = "NAME", value_parser = find_dialect)]
    dialect: Option<&'static Dialect>,
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
                let (tool, args) = match self.dialect {
                    None => (tool.clone(), args),
                    Some(dialect) => native(dialect, tool, &args, workspace)?,
                };
                Ok(workspace.gate.judge(&Call::new(tool, args, workspace.clock.as_ref()), &[])?)
            }
            None => judge_command(workspace, &self.input, &self.workdir),
        }
    }
}

/// The native tool and arguments of what is written in a dialect.
fn native(dialect: &Dialect, tool: &str, args: &Value, workspace: &Workspace) -> Result<(String, Value)> {
    let memory = DialectMemory::new(workspace.directory.display().to_string());
    match dialect.enter(tool, args, &memory) {
        Ok(entered) => Ok((entered.native.tool.to_owned(), entered.native.args)),
        Err(fault) => {
            let asked = AskedCall { id: "", tool, args };
            bail!("{}", dialect.fail(&asked, &fault, &memory).text)
        }
    }
}

/// The dialect of this name.
fn find_dialect(name: &str) -> Result<&'static Dialect, String> {
    let known: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.name).collect();
    toolgate_dialects::dialect(name)
        .ok_or_else(|| format!("there is no dialect `{name}`; there are {}", known.join(", ")))
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
