//! `toolgate policy replay`: judges past calls by the current policy.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::{Effect, EventPayload, ToolError, Verdict, counted};
use toolgate_journal::{list_runs, read_events};
use toolgate_workspace::Workspace;

use crate::commands::{Invocation, runs};
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, DIM, YELLOW, paint, plain, verdict_word};

#[derive(Debug, Args)]
pub(super) struct PolicyReplayArgs {
    /// Only this run: its id, its beginning, or `last`.
    #[arg(long)]
    run: Option<String>,
}

/// A call of a past run.
struct JudgedCall {
    run: String,
    tool: String,
    effects: Vec<Effect>,
    verdict: Verdict,
}

impl JudgedCall {
    fn in_words(&self) -> String {
        let effects: Vec<String> =
            self.effects.iter().map(|effect| plain(&effect.to_string()).replace('\n', "\\n")).collect();
        let (tool, run) = (paint(BOLD, plain(&self.tool)), paint(DIM, format!("({})", self.run)));
        format!("{tool} {} {run}", effects.join(", "))
    }
}

impl PolicyReplayArgs {
    pub(super) fn run(self, workspace: &Workspace, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let mut names = match &self.run {
            Some(wanted) => vec![runs::find(&state, wanted)?],
            None => list_runs(state.path())?,
        };
        names.sort();
        let (mut judged, mut differ, mut unjudged) = (0, 0, 0);
        for name in names {
            for past in calls(&state.path().join("runs").join(&name), &name)? {
                let Some(now) = workspace.gate.judge_again(&past.tool, past.effects.clone()) else { continue };
                judged += 1;
                let now = match now {
                    Ok(now) => now,
                    Err(error) => {
                        unjudged += 1;
                        print_unjudged(&past, &error, invocation.json);
                        continue;
                    }
                };
                if (now.decision, now.confined) != (past.verdict.decision, past.verdict.confined) {
                    differ += 1;
                    print_changed(&past, &now, invocation.json)?;
                }
            }
        }
        if !invocation.json {
            let unjudged = if unjudged > 0 { format!(", {unjudged} can no longer be judged") } else { String::new() };
            outln!("{} judged again, {differ} would be decided differently{unjudged}", counted(judged, "call"));
        }
        Ok(Exit::Ok)
    }
}

/// The calls of a run that were judged. Unreadable lines are skipped.
fn calls(directory: &std::path::Path, run: &str) -> Result<Vec<JudgedCall>> {
    let events = read_events(directory)?.filter_map(Result::ok);
    let past = events.filter_map(|event| match event.event.payload {
        EventPayload::CallStarted { tool, effects, verdict: Some(verdict), .. } => {
            Some(JudgedCall { run: run.to_owned(), tool, effects, verdict })
        }
        _ => None,
    });
    Ok(past.collect())
}

fn print_changed(past: &JudgedCall, now: &Verdict, as_json: bool) -> Result<()> {
    if as_json {
        let line =
            json!({ "run": past.run, "tool": past.tool, "effects": past.effects, "was": past.verdict, "now": now });
        outln!("{line}");
        return Ok(());
    }
    outln!("{} → {}  {}", verdict_word(&past.verdict), verdict_word(now), past.in_words());
    outln!("    {}", plain(&now.decided_by.reason));
    Ok(())
}

/// Reports a call that can no longer be judged, such as one about a root that is no longer configured.
fn print_unjudged(past: &JudgedCall, why: &ToolError, as_json: bool) {
    if as_json {
        let line =
            json!({ "run": past.run, "tool": past.tool, "effects": past.effects, "was": past.verdict, "error": why });
        return outln!("{line}");
    }
    outln!("{} → {}  {}", verdict_word(&past.verdict), paint(YELLOW.bold(), "?"), past.in_words());
    outln!("    {}", plain(&why.message));
}
