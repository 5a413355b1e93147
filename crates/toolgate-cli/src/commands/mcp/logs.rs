//! `toolgate mcp logs`: what a server's calls came to, from the record.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::{Effect, EventPayload};
use toolgate_journal::{list_runs, read_events};

use super::KnownServer;
use crate::commands::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, GREEN, YELLOW, paint, plain};

/// Show the latest calls of a server's tools, and why those failed that did.
///
/// What a server wrote to its standard error is shown with the calls that failed. All of it is from the record of this workspace.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct LogsArgs {
    /// The server's name.
    name: String,
    /// How many calls.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "NUMBER")]
    limit: usize,
}

/// A call of a server's tool.
struct LoggedCall {
    time: String,
    tool: String,
    /// The error; none if it worked, or hasn't ended.
    error: Option<Value>,
    is_ended: bool,
}

impl LogsArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let server = KnownServer::find(invocation, &self.name)?;
        let state = invocation.location.state()?;
        let mut calls: Vec<LoggedCall> = Vec::new();
        for run in list_runs(state.path())?.into_iter().rev() {
            let mut of_run = calls_in(&state.run_dir(&run)?, &server.name)?;
            of_run.reverse();
            calls.extend(of_run);
            if calls.len() >= self.limit {
                break;
            }
        }
        calls.truncate(self.limit);
        if calls.is_empty() && !invocation.json {
            errln!("Nothing of {} was called in this workspace yet.", server.name);
        }
        calls.iter().rev().for_each(|call| call.print(invocation.json));
        Ok(Exit::Ok)
    }
}

impl LoggedCall {
    fn print(&self, as_json: bool) {
        let Self { time, tool, error, is_ended } = self;
        if as_json {
            outln!("{}", json!({ "time": time, "tool": tool, "ended": is_ended, "error": error }));
            return;
        }
        let (time, tool) = (paint(DIM, time), paint(BOLD, plain(tool)));
        let Some(error) = error else {
            let state = if *is_ended { paint(GREEN, "ok") } else { paint(YELLOW, "no end on record") };
            outln!("{time} {tool} {state}");
            return;
        };
        let text = |value: &Value| plain(value.as_str().unwrap_or_default());
        outln!("{time} {tool} {} {}", paint(YELLOW, text(&error["code"])), text(&error["message"]));
        let errors = text(&error["details"]["stderr"]);
        errors.lines().for_each(|line| outln!("    {}", paint(DIM, line)));
    }
}

/// The calls of a run that use a server, in order.
fn calls_in(run: &std::path::Path, server: &str) -> Result<Vec<LoggedCall>> {
    let mut calls: Vec<(String, LoggedCall)> = Vec::new();
    for event in read_events(run)? {
        let event = event?.event;
        let Some(id) = event.tool_call_id else { continue };
        match event.payload {
            EventPayload::CallStarted { tool, effects, .. } => {
                let uses = |effect: &Effect| matches!(effect, Effect::UseServer { server: used, .. } if used == server);
                if effects.iter().any(uses) {
                    let time = event.time.to_string();
                    calls.push((id, LoggedCall { time, tool, error: None, is_ended: false }));
                }
            }
            EventPayload::CallCompleted(_) => {
                calls.iter_mut().filter(|(call, _)| *call == id).for_each(|(_, call)| call.is_ended = true)
            }
            EventPayload::CallFailed { error, .. } => {
                let known = calls.iter_mut().filter(|(call, _)| *call == id);
                known.for_each(|(_, call)| (call.error, call.is_ended) = (Some(json!(error)), true));
            }
            _ => {}
        }
    }
    Ok(calls.into_iter().map(|(_, call)| call).collect())
}
