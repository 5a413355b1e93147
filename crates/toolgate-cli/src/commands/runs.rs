//! `toolgate runs`: shows past and current runs.

mod script;
mod tail;

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use toolgate_contract::{Event, counted};
use toolgate_dialects::{DIALECTS, WriteRecord, dialect};
use toolgate_journal::{
    CallRow, EventStore, RunFilter, RunRow, StateDirectory, catch_up, export, list_runs, newest_runs, read_events,
    read_tree, reindex,
};

use super::Invocation;
use crate::exit::Exit;
use crate::output::{RawOutput, out, outln, write_list};
use crate::terminal::{BOLD, DIM, GREEN, RED, TextTable, first_line, show_tree, to_the_minute};

/// Show past and current runs.
///
/// RUN is a run's id, its beginning, or `last`.
///
/// Examples:
///   toolgate runs list                    which runs there are
///   toolgate runs tree run_01a1           what a run did, as a tree
///   toolgate runs tail -f                 follow the last run's events
///   toolgate runs export > run.json       the complete last run in one file
///   toolgate runs export --script > s.toml     its model's turns, as a script for `--model`
///   toolgate runs export --dialect skills      its calls as audit records of that design
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    verb: RunsVerb,
}

#[derive(Debug, Subcommand)]
enum RunsVerb {
    /// List runs, newest first.
    List {
        /// Maximum number of runs.
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Include runs of other workspaces, where the store is shared.
        #[arg(long)]
        everywhere: bool,
    },
    /// Show a run's calls.
    Show {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
    },
    /// Show a run as a tree: turns, calls, decisions, messages.
    Tree {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
    },
    /// Show a run's events, line by line; with -f, follow them, whichever process writes them.
    Tail {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
        /// Continue until the run ends.
        #[arg(long, short)]
        follow: bool,
        /// Begin with the last N events.
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
        lines: usize,
    },
    /// Print a complete run as one JSON document: events, hash chain, artifacts, changes and file contents.
    Export {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
        /// Leave out file contents; files are identified by their hashes.
        #[arg(long)]
        without_contents: bool,
        /// Print the model's messages and calls as a script, for `--model scripted:FILE`.
        #[arg(long, conflicts_with = "without_contents")]
        script: bool,
        /// Print the record in the form of a dialect that has one of its own, one JSON value a line.
        #[arg(long, value_name = "NAME", conflicts_with_all = ["without_contents", "script"])]
        dialect: Option<String>,
    },
    /// Rebuild the store from the runs' journals.
    Reindex,
}

/// How a dialect writes the record.
fn record_form(name: &str) -> Result<WriteRecord> {
    let known = || DIALECTS.iter().filter(|dialect| dialect.record.is_some()).map(|dialect| dialect.name);
    dialect(name).and_then(|dialect| dialect.record).with_context(|| {
        let known: Vec<&str> = known().collect();
        format!("`{name}` has no form of its own for the record; those that have one are {}", known.join(", "))
    })
}

impl RunsArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        match self.verb {
            RunsVerb::List { limit, everywhere } => list(&state, limit, everywhere, invocation)?,
            RunsVerb::Show { run } => show(&state, &find(&state, &run)?, invocation)?,
            RunsVerb::Tree { run } => draw(&state, &find(&state, &run)?, invocation.json)?,
            RunsVerb::Tail { run, follow, lines } => {
                tail::tail(&state.run_dir(&find(&state, &run)?)?, lines, follow, invocation.json)?;
            }
            RunsVerb::Export { run, script: true, .. } => {
                out!("{}", script::script(&events_of(&state, &find(&state, &run)?)?)?);
            }
            RunsVerb::Export { run, dialect: Some(dialect), .. } => {
                let record = record_form(&dialect)?;
                for line in record(&events_of(&state, &find(&state, &run)?)?) {
                    outln!("{line}");
                }
            }
            RunsVerb::Export { run, without_contents, .. } => {
                let (run, key) = (find(&state, &run)?, invocation.location.signing_key());
                let all = export(&state, &run, key.as_ref(), !without_contents)?;
                serde_json::to_writer(RawOutput, &all)?;
                outln!();
            }
            RunsVerb::Reindex => {
                let count = reindex(state.path(), invocation.location.stores()?.store()?.as_ref())?;
                match invocation.json {
                    true => outln!("{}", json!({ "events": count })),
                    false => outln!("Rebuilt the store from {}.", counted(count, "event")),
                }
            }
        }
        Ok(Exit::Ok)
    }
}

/// A run by its id, its beginning, or `last`. Ids sort by time.
pub(super) fn find(state: &StateDirectory, wanted: &str) -> Result<String> {
    choose(list_runs(state.path())?, wanted)
}

/// The one of these runs that has this id or this beginning, or the last one for `last`. The runs are sorted.
pub(super) fn choose(runs: Vec<String>, wanted: &str) -> Result<String> {
    let found: Vec<&String> = match wanted {
        "last" => runs.last().into_iter().collect(),
        start => runs.iter().filter(|run| run.starts_with(start)).collect(),
    };
    match found[..] {
        [run] => Ok(run.clone()),
        [] => Err(anyhow::anyhow!("There is no run `{wanted}` here. `toolgate runs list` shows them.")),
        _ => Err(anyhow::anyhow!("`{wanted}` matches {}. Give more of the id.", counted(found.len(), "run"))),
    }
}

/// The store, with these runs complete: events that a killed process left unindexed are read from the journals first.
fn store_with(runs: &[String], state: &StateDirectory, invocation: &Invocation) -> Result<Arc<dyn EventStore>> {
    let store = invocation.location.stores()?.store()?;
    for run in runs {
        catch_up(state.path(), run, store.as_ref())?;
    }
    Ok(store)
}

fn list(state: &StateDirectory, limit: usize, everywhere: bool, invocation: &Invocation) -> Result<()> {
    let workspace = (!everywhere).then(|| invocation.location.directory.display().to_string());
    let store = store_with(&newest_runs(state.path(), limit)?, state, invocation)?;
    let runs = store.runs(&RunFilter { limit, workspace, ..RunFilter::default() })?;
    if invocation.json {
        write_list(&runs)?;
        return Ok(());
    }
    let mut table = TextTable::new(&["RUN", "STARTED", "FROM", "CALLS", "FAILED", "PRESET", "TASK"]);
    for run in &runs {
        table.row(row(run));
    }
    table.print();
    Ok(())
}

fn row(run: &RunRow) -> [(String, anstyle::Style); 7] {
    let plain = anstyle::Style::new();
    [
        (run.id.clone(), BOLD),
        (time(run.started), DIM),
        (run.front_end.clone().unwrap_or_default(), plain),
        (run.calls.to_string(), plain),
        (run.failed.to_string(), if run.failed > 0 { RED } else { DIM }),
        (run.preset.clone().unwrap_or_default(), plain),
        (run.task.as_deref().map(first_line).unwrap_or_default(), plain),
    ]
}

fn time(time: Option<Timestamp>) -> String {
    time.map(to_the_minute).unwrap_or_default()
}

fn show(state: &StateDirectory, run: &str, invocation: &Invocation) -> Result<()> {
    let store = store_with(&[run.to_owned()], state, invocation)?;
    let calls = store.calls(run)?;
    if invocation.json {
        let facts = store.run(run)?.context("the run isn't in the store; try `toolgate runs reindex`")?;
        outln!("{}", json!({ "run": facts, "calls": calls }));
        return Ok(());
    }
    let mut table = TextTable::new(&["CALL", "TOOL", "DECISION", "BY RULE", "RESULT", "MS"]);
    for call in &calls {
        table.row(call_row(call));
    }
    table.print();
    Ok(())
}

fn call_row(call: &CallRow) -> [(String, anstyle::Style); 6] {
    let plain = anstyle::Style::new();
    let (result, style) = match (call.ok, call.error_code) {
        (Some(true), _) => ("ok".into(), GREEN),
        (_, Some(code)) => (code.to_string(), RED),
        _ => ("running".into(), DIM),
    };
    [
        (call.tool_call_id.clone(), DIM),
        (call.tool.clone().unwrap_or_default(), BOLD),
        (call.decision.map(|decision| decision.to_string()).unwrap_or_default(), plain),
        (call.rule.clone().unwrap_or_default(), DIM),
        (result, style),
        (call.duration_ms.map(|ms| ms.to_string()).unwrap_or_default(), plain),
    ]
}

fn events_of(state: &StateDirectory, run: &str) -> Result<Vec<Event>> {
    let events: Result<Vec<Event>, _> =
        read_events(&state.run_dir(run)?)?.map(|recorded| recorded.map(|recorded| recorded.event)).collect();
    Ok(events?)
}

fn draw(state: &StateDirectory, run: &str, as_json: bool) -> Result<()> {
    let tree = read_tree(&state.run_dir(run)?)?;
    match as_json {
        true => outln!("{}", serde_json::to_string(&tree)?),
        false => show_tree(&tree),
    }
    Ok(())
}
