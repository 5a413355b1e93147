//! `toolgate audit`: checks whether the journal was changed.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_journal::{
    ListedRun, RunList, RunListCheck, RunOptions, SigningKey, StateDirectory, Verification, list_runs, verify_listed,
};

use toolgate_contract::counted;

use super::{Invocation, runs};
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{GREEN, RED, YELLOW, paint};
use crate::workspace::person_name;

/// Check the journal.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
enum AuditVerb {
    /// Find the first line of a run's journal that was changed, dropped or added. Checks every run unless one is named,
    /// and finds runs that are gone: a list of all runs is signed too, and its head is kept outside of the workspace.
    Verify {
        /// The run: its id, its beginning, or `last`.
        run: Option<String>,
    },
    /// Record that you know of the runs that are gone, because you removed them, and of what is wrong with the list of
    /// runs. From then on `audit verify` reports only what is new.
    Accept,
}

impl AuditArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let (key, heads) = (invocation.location.signing_key(), invocation.location.run_list_heads());
        let options = RunOptions { key: key.clone(), list_heads: heads, ..RunOptions::default() };
        let list = state.run_list(&options)?;
        match self.verb {
            AuditVerb::Verify { run } => {
                Audit { list: list.check()?, state, key, as_json: invocation.json }.verify(run.as_deref())
            }
            AuditVerb::Accept => accept(&list, invocation.json),
        }
    }
}

/// What is checked.
struct Audit {
    list: RunListCheck,
    state: StateDirectory,
    key: Option<SigningKey>,
    as_json: bool,
}

impl Audit {
    /// Checks one run, or all of them and the list.
    fn verify(&self, wanted: Option<&str>) -> Result<Exit> {
        let there = list_runs(self.state.path())?;
        let is_ok = match wanted {
            Some(wanted) => {
                // A run that is gone can be named, and can be the last one.
                let known: BTreeSet<String> = there.into_iter().chain(self.list.gone.keys().cloned()).collect();
                self.verify_run(&runs::choose(known.into_iter().collect(), wanted)?)?
            }
            None => {
                let runs: BTreeSet<&String> = there.iter().chain(self.list.gone.keys()).collect();
                let mut is_ok = self.list.is_ok();
                for run in runs {
                    is_ok &= self.verify_run(run)?;
                }
                self.print_list();
                is_ok
            }
        };
        Ok(if is_ok { Exit::Ok } else { Exit::Failed })
    }

    fn verify_run(&self, run: &str) -> Result<bool> {
        if let Some(gone) = self.list.gone.get(run) {
            print_gone(run, gone, self.as_json);
            return Ok(false);
        }
        let found = verify_listed(&self.state.run_dir(run)?, self.key.as_ref(), self.list.listed.get(run))?;
        print(run, &found, self.as_json);
        Ok(matches!(found, Verification::Ok { .. }))
    }

    /// Prints what is known of the list itself.
    fn print_list(&self) {
        let RunListCheck { entries, signed, faults, removed, others, copied, gone, listed } = &self.list;
        if self.as_json {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            let about = json!({
                "ok": self.list.is_ok(), "entries": entries, "runs": listed.len(), "sealed": signed, "faults": faults,
                "gone": gone.keys().collect::<Vec<_>>(), "removed": removed, "copied": copied, "other_lists": others,
            });
            return outln!("{}", json!({ "list_of_runs": about }));
        }
        for fault in faults {
            outln!("{} {fault}", paint(RED, "✗"));
        }
        if faults.is_empty() && *entries > 0 {
            let signed = if *signed { "signed" } else { "not signed" };
            let removed = if *removed > 0 { format!(", {removed} of them removed by you") } else { String::new() };
            let runs = counted(listed.len(), "run");
            outln!("{} list of runs: {runs}{removed}, hash chain intact, {signed}", paint(GREEN, "✓"));
        }
        self.notes().iter().for_each(|note| outln!("{} {note}", paint(YELLOW, "note:")));
        if !self.list.is_ok() {
            let how = "If you removed this yourself, `toolgate audit accept` records that you know of it.";
            errln!("{how}");
        }
    }

    fn notes(&self) -> Vec<String> {
        let RunListCheck { entries, copied, others, .. } = &self.list;
        let none = (*entries == 0 && self.list.faults.is_empty())
            .then(|| "There is no list of runs of yours yet; the next run begins it.".to_owned());
        let copied = copied.map(|since| {
            format!("This workspace is a copy: what was removed from it before {since:.0} can't be told.")
        });
        let others = (*others > 0).then(|| {
            let found = counted(*others, "other list");
            format!("Found {found} of runs without a signature by your key: not yours, and not checked.")
        });
        none.into_iter().chain(copied).chain(others).collect()
    }
}

fn accept(list: &RunList, as_json: bool) -> Result<Exit> {
    let accepted = list.accept(&person_name())?;
    let faults: Vec<String> = accepted.faults.iter().map(ToString::to_string).collect();
    if as_json {
        let gone: Vec<&String> = accepted.gone.keys().collect();
        outln!("{}", json!({ "accepted": { "gone": gone, "faults": faults } }));
        return Ok(Exit::Ok);
    }
    accepted.gone.keys().for_each(|run| outln!("Accepted: {run} is gone."));
    faults.iter().for_each(|fault| outln!("Accepted: {fault}"));
    if accepted.is_ok() {
        outln!("There was nothing to accept: no run is gone, and the list of runs is intact.");
    }
    Ok(Exit::Ok)
}

fn print_gone(run: &str, gone: &ListedRun, as_json: bool) {
    let ListedRun { began, last_seen, events, .. } = gone;
    if as_json {
        let about =
            json!({ "run": run, "ok": false, "gone": true, "began": began, "last_seen": last_seen, "events": events });
        return outln!("{about}");
    }
    let began = began.map(|began| format!("It began {began:.0} and ")).unwrap_or_else(|| "It ".into());
    let seen = format!("{began}was last seen {last_seen:.0}, with {}.", counted(*events, "event"));
    outln!("{} {run}: The run is gone: its directory was removed or emptied. {seen}", paint(RED, "✗"));
}

fn print(run: &str, found: &Verification, as_json: bool) {
    match found {
        Verification::Ok { events, signed, unfinished } if as_json => {
            let about = json!({ "run": run, "ok": true, "events": events, "sealed": signed, "unfinished": unfinished });
            outln!("{about}");
        }
        Verification::Bad { line, fault } if as_json => {
            let words = fault.to_string();
            outln!("{}", json!({ "run": run, "ok": false, "line": line, "fault": words }));
        }
        Verification::Ok { events, signed, unfinished } => {
            let signed = if *signed { "signed" } else { "not signed" };
            let rest = if *unfinished { "; killed while writing the next event, which is not recorded" } else { "" };
            let events = counted(*events, "event");
            outln!("{} {run}: {events}, hash chain intact, {signed}{rest}", paint(GREEN, "✓"));
        }
        Verification::Bad { fault, .. } => outln!("{} {run}: {fault}", paint(RED, "✗")),
    }
}
