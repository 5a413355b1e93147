//! `toolgate policy replay`: what would have been decided, had the policy been what it is now?

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::{Effect, Happening, Verdict};
use toolgate_journal::{list_runs, read_events};

use crate::commands::{Setting, runs};
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, paint, plain, verdict_word};
use crate::wiring::Desk;

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Only this run: its id, the beginning of one, or `last`.
    #[arg(long)]
    run: Option<String>,
}

/// A call of a past run.
struct Past {
    run: String,
    tool: String,
    effects: Vec<Effect>,
    verdict: Verdict,
}

impl Replay {
    pub(super) fn run(self, desk: &Desk, setting: &Setting) -> Result<Exit> {
        let state = setting.place.state()?;
        let mut names = match &self.run {
            Some(wanted) => vec![runs::find(&state, wanted)?],
            None => list_runs(state.path())?,
        };
        names.sort();
        let (mut judged, mut differ) = (0, 0);
        for name in names {
            for past in calls(&state.path().join("runs").join(&name), &name)? {
                let Some(now) = desk.gate.judge_again(&past.tool, past.effects.clone()) else { continue };
                judged += 1;
                let now = now?;
                if (now.decision, now.confined) != (past.verdict.decision, past.verdict.confined) {
                    differ += 1;
                    tell(&past, &now, setting.json)?;
                }
            }
        }
        if !setting.json {
            anstream::println!("{judged} calls judged again, {differ} would be decided otherwise");
        }
        Ok(Exit::Ok)
    }
}

/// The calls of a run that were judged at all. A line that can't be read is no call.
fn calls(folder: &std::path::Path, run: &str) -> Result<Vec<Past>> {
    let events = read_events(folder)?.filter_map(Result::ok);
    let past = events.filter_map(|event| match event.event.happening {
        Happening::CallStarted { tool, effects, verdict: Some(verdict), .. } => {
            Some(Past { run: run.to_owned(), tool, effects, verdict })
        }
        _ => None,
    });
    Ok(past.collect())
}

fn tell(past: &Past, now: &Verdict, as_json: bool) -> Result<()> {
    if as_json {
        let line =
            json!({ "run": past.run, "tool": past.tool, "effects": past.effects, "was": past.verdict, "now": now });
        anstream::println!("{line}");
        return Ok(());
    }
    let effects: Vec<String> =
        past.effects.iter().map(|effect| plain(&effect.to_string()).replace('\n', "\\n")).collect();
    anstream::println!(
        "{} → {}  {} {} {}",
        verdict_word(&past.verdict),
        verdict_word(now),
        paint(BOLD, plain(&past.tool)),
        effects.join(", "),
        paint(DIM, format!("({})", past.run)),
    );
    anstream::println!("    {}", plain(&now.decided_by.reason));
    Ok(())
}
