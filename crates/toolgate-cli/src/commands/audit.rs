//! `toolgate audit`: checks whether the journal was changed.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_journal::{Verification, list_runs, verify};

use super::Invocation;
use crate::exit::Exit;
use crate::terminal::{GREEN, RED, paint};

/// Check the journal.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
enum AuditVerb {
    /// Find the first line of a run's journal that was changed, dropped or added. Checks every run unless one is named.
    Verify {
        /// The run.
        run: Option<String>,
    },
}

impl AuditArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let AuditVerb::Verify { run } = self.verb;
        let state = invocation.location.state()?;
        let runs = match run {
            Some(run) => vec![run],
            None => list_runs(state.path())?,
        };
        let key = invocation.location.signing_key();
        let mut exit = Exit::Ok;
        for run in runs {
            let found = verify(&state.run_dir(&run)?, key.as_ref())?;
            if !matches!(found, Verification::Ok { .. }) {
                exit = Exit::Failed;
            }
            print(&run, &found, invocation.json);
        }
        Ok(exit)
    }
}

fn print(run: &str, found: &Verification, as_json: bool) {
    match found {
        Verification::Ok { events, signed, unfinished } if as_json => {
            let about = json!({ "run": run, "ok": true, "events": events, "sealed": signed, "unfinished": unfinished });
            anstream::println!("{about}");
        }
        Verification::Bad { line, fault } if as_json => {
            let words = fault.to_string();
            anstream::println!("{}", json!({ "run": run, "ok": false, "line": line, "fault": words }));
        }
        Verification::Ok { events, signed, unfinished } => {
            let signed = if *signed { "signed" } else { "not signed" };
            let rest = if *unfinished { "; killed while writing the next event, which is not recorded" } else { "" };
            anstream::println!("{} {run}: {events} events, hash chain intact, {signed}{rest}", paint(GREEN, "✓"));
        }
        Verification::Bad { fault, .. } => anstream::println!("{} {run}: {fault}", paint(RED, "✗")),
    }
}
