//! `toolgate undo`: takes changes back.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::Reply;
use toolgate_journal::State;

use super::call::{self, Performed};
use super::changes::Changes;
use super::{Setting, runs};
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, YELLOW, complain_of, paint, plain};

/// Files that are named at the most.
const MOST: usize = 200;

/// Take back the file changes of a call, a turn or a run.
///
/// Files that were changed again since are left alone and named. The undo is a call like any other: it is recorded,
/// and can be undone. It prints each file with the lines that came and went; `--json` prints the reply.
///
/// Examples:
///   toolgate undo call_0195…
///   toolgate undo --run last
///   toolgate undo --run last --turn 3
///   toolgate undo --run last --agent agent_01a1…      `runs tree` names the agents
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Undo {
    /// The call; `toolgate changes` lists them.
    #[arg(required_unless_present = "run", conflicts_with = "run")]
    call: Option<String>,
    /// The run, the beginning of its id, or `last`.
    #[arg(long)]
    run: Option<String>,
    /// Only this turn of the run.
    #[arg(long, requires = "run")]
    turn: Option<u64>,
    /// Only this agent of the run; every agent counts its turns for itself.
    #[arg(long, requires = "run")]
    agent: Option<String>,
}

impl Undo {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let run = self.run.map(|run| runs::find(&setting.place.state()?, &run)).transpose()?;
        let args =
            [("call", json!(self.call)), ("run", json!(run)), ("turn", json!(self.turn)), ("agent", json!(self.agent))];
        let args: serde_json::Map<String, Value> =
            args.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.into(), value)).collect();
        // Whoever types this has decided already.
        let Performed { reply, run, .. } =
            call::Call::approved("undo", Value::Object(args).to_string()).perform(setting, Vec::new())?;
        match setting.json {
            true => anstream::println!("{}", serde_json::to_string(&reply)?),
            false => show(&reply, &run, &setting.place.state()?)?,
        }
        Ok(Exit::of_reply(&reply))
    }
}

/// What was taken back, with numbers, and what was left alone, with the reasons.
fn show(reply: &Reply, run: &str, state: &State) -> Result<()> {
    if reply.ok {
        anstream::println!("{}", paint(BOLD, "Taken back:"));
        Changes::name_those_of(&reply.tool_call_id, run, state, MOST)?;
    }
    let answer = reply.payload.as_ref().or(reply.error.as_ref().and_then(|error| error.details.as_ref()));
    let refused = answer.and_then(|answer| answer["refused"].as_array()).map_or(&[][..], Vec::as_slice);
    if !refused.is_empty() {
        anstream::println!("{}", paint(YELLOW.bold(), "Left alone:"));
    }
    for one in refused.iter().take(MOST) {
        let [path, reason] = ["path", "reason"].map(|field| plain(one[field].as_str().unwrap_or_default()));
        anstream::println!("  {path} {}", paint(DIM, format!("({reason})")));
    }
    if refused.len() > MOST {
        anstream::println!("  {}", paint(DIM, format!("… and {} more", refused.len() - MOST)));
    }
    match &reply.error {
        Some(error) => complain_of(error),
        None => {
            anstream::eprintln!("{}", paint(DIM, format!("`toolgate undo {}` takes this back.", reply.tool_call_id)))
        }
    }
    Ok(())
}
