//! `toolgate replay`: repeats the calls of a recorded run and compares the replies.

mod compare;
mod past_run;
mod serve;
mod workspace_copy;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::{Call, CancellationToken};

use self::compare::{ReplayDifference, comparable_answer, compare};
use self::past_run::{PastCall, PastRun};
use self::workspace_copy::WorkspaceCopy;
use super::runs::find;
use super::{Invocation, block_on};
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, paint, plain};

/// Repeat the calls of a recorded run in a copy of the workspace, and compare.
///
/// The copy is restored to what the workspace was when the run began, as far as changes were recorded. The calls run
/// there, in the sandbox and by the current policy, and every reply is compared with the recorded one. Times, ids and
/// durations are ignored. Approvals are answered as they were then. The workspace itself is not touched.
///
/// Examples:
///   toolgate replay                      the last run
///   toolgate replay run_01a1 --all       continue after the first difference
///   toolgate replay run_01a1 --keep      keep the copy, to inspect it
///   toolgate replay run_01a1 --serve     answer calls from the record: one JSON call per line in, one reply per line out
///
/// Exit code 0 means that nothing differs, 1 that something does.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReplayArgs {
    /// The run: its id, its beginning, or `last`.
    #[arg(default_value = "last")]
    run: String,
    /// Continue after the first difference.
    #[arg(long)]
    all: bool,
    /// Keep the copy of the workspace, and print its path.
    #[arg(long)]
    keep: bool,
    /// Run nothing: answer calls from standard input with the recorded replies.
    #[arg(long, conflicts_with_all = ["all", "keep"])]
    serve: bool,
}

impl ReplayArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let run = find(&state, &self.run)?;
        let past = PastRun::read(&state, &run)?;
        if self.serve {
            return serve::serve(past);
        }
        let rebuilt = WorkspaceCopy::make(&invocation.location, &state, &past)?;
        rebuilt.notes.iter().for_each(|note| errln!("{} {}", paint(YELLOW.bold(), "note:"), plain(note)));
        let outcomes = block_on(self.repeat(&past, &rebuilt))??;
        let differ = outcomes.iter().filter(|outcome| matches!(outcome.1, ReplayOutcome::Differs(_))).count();
        self.show(&past, &outcomes, invocation.json);
        if self.keep {
            errln!("The copy is in {}.", paint(BOLD, rebuilt.keep().display()));
        }
        Ok(if differ == 0 { Exit::Ok } else { Exit::Failed })
    }

    /// Repeats the calls, up to the first difference unless `--all` is set.
    async fn repeat<'a>(
        &self,
        past: &'a PastRun,
        rebuilt: &WorkspaceCopy,
    ) -> Result<Vec<(&'a PastCall, ReplayOutcome)>> {
        let recorded = rebuilt.begin(past)?;
        let mut outcomes = Vec::new();
        for call in &past.calls {
            let outcome = match call.skip_reason() {
                Some(why) => ReplayOutcome::Skipped(why),
                None => {
                    let mut again =
                        Call::new(&call.tool, rebuilt.to_copy(&call.args), rebuilt.workspace.clock.as_ref());
                    again.tool_call_id.clone_from(&call.id);
                    let reply =
                        rebuilt.workspace.gate.perform(again, &recorded.session, CancellationToken::new()).await;
                    let changed = rebuilt.changed(&recorded, &call.id)?;
                    let now =
                        rebuilt.to_original(&comparable_answer(reply.payload.as_ref(), reply.error.as_ref(), &changed));
                    match compare(&call.answer, &now) {
                        None => ReplayOutcome::Same,
                        Some(difference) => ReplayOutcome::Differs(difference),
                    }
                }
            };
            let stop = matches!(outcome, ReplayOutcome::Differs(_)) && !self.all;
            outcomes.push((call, outcome));
            if stop {
                break;
            }
        }
        recorded.run.end()?;
        rebuilt.workspace.finish();
        Ok(outcomes)
    }

    fn show(&self, past: &PastRun, outcomes: &[(&PastCall, ReplayOutcome)], as_json: bool) {
        let count = |wanted: fn(&ReplayOutcome) -> bool| outcomes.iter().filter(|(_, outcome)| wanted(outcome)).count();
        let same = count(|outcome| matches!(outcome, ReplayOutcome::Same));
        let differ = count(|outcome| matches!(outcome, ReplayOutcome::Differs(_)));
        let skipped = count(|outcome| matches!(outcome, ReplayOutcome::Skipped(_)));
        let left = past.calls.len() - outcomes.len();
        if as_json {
            let calls: Vec<Value> = outcomes.iter().map(|(call, outcome)| outcome.json(call)).collect();
            let run = &past.run;
            let summary =
                json!({ "run": run, "same": same, "differ": differ, "skipped": skipped, "left": left, "calls": calls });
            return outln!("{summary}");
        }
        for (number, (call, outcome)) in (1..).zip(outcomes) {
            outcome.show(number, call);
        }
        let left = if left > 0 { format!(", {left} left; `--all` continues") } else { String::new() };
        outln!("{same} same, {differ} different, {skipped} not repeated{left}");
    }
}

/// The result of repeating a call.
enum ReplayOutcome {
    Same,
    Differs(ReplayDifference),
    Skipped(&'static str),
}

impl ReplayOutcome {
    fn show(&self, number: usize, call: &PastCall) {
        let (tool, id) = (paint(BOLD, plain(&call.tool)), paint(DIM, plain(&call.id)));
        match self {
            Self::Same => outln!("{} {number}. {tool} {id}", paint(GREEN, "=")),
            Self::Skipped(why) => {
                outln!("{} {number}. {tool} {id} {}", paint(YELLOW, "–"), paint(DIM, why))
            }
            Self::Differs(difference) => {
                outln!("{} {number}. {tool} {id} {}", paint(RED, "≠"), plain(&difference.at));
                outln!("     was: {}", shown(&difference.was));
                outln!("     now: {}", shown(&difference.now));
            }
        }
    }

    fn json(&self, call: &PastCall) -> Value {
        let base = json!({ "tool": call.tool, "tool_call_id": call.id });
        let more = match self {
            Self::Same => json!({ "outcome": "same" }),
            Self::Skipped(why) => json!({ "outcome": "skipped", "why": why }),
            Self::Differs(ReplayDifference { at, was, now }) => {
                json!({ "outcome": "differs", "at": at, "was": was, "now": now })
            }
        };
        let fields = [base, more].into_iter().filter_map(|value| value.as_object().cloned());
        Value::Object(fields.flatten().collect())
    }
}

/// A value on one line, shortened.
fn shown(value: &Option<Value>) -> String {
    const MAX_CHARS: usize = 400;
    let text = value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let short: String = text.chars().take(MAX_CHARS).collect();
    plain(&if short.len() < text.len() { format!("{short}…") } else { text })
}
