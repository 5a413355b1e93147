//! `toolgate quarantine`: shows and releases changes that were not written to the workspace.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_changes::Release;
use toolgate_contract::LINK_MODE;
use toolgate_journal::{Quarantine, QuarantinedChange};

use super::Invocation;
use super::applied_report::AppliedReport;
use super::call::CallArgs;
use crate::exit::Exit;
use crate::output::{RawOutput, errln, outln};
use crate::terminal::{BOLD, DIM, paint, plain};

const REPORT: AppliedReport = AppliedReport { done: "Applied:", left: "Not applied:", left_in: "refused" };

/// Show and release quarantined changes: what commands changed, but was not written to the workspace.
///
/// A change is quarantined when policy denies its path, when the file was changed by something else while the command
/// ran, or when git, an editor or another agent would load or run the file automatically.
///
/// Examples:
///   toolgate quarantine list
///   toolgate quarantine show call_0195… .envrc
///   toolgate quarantine release call_0195… .envrc
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct QuarantineArgs {
    #[command(subcommand)]
    verb: QuarantineVerb,
}

#[derive(Debug, Subcommand)]
enum QuarantineVerb {
    /// List quarantined changes by call, with the reasons.
    List,
    /// Print one quarantined file.
    Show {
        /// The call.
        call: String,
        /// Its path.
        path: String,
    },
    /// Write a quarantined change to the workspace, after you have checked it. It is recorded, and `toolgate undo`
    /// undoes it.
    Release {
        /// The call.
        call: String,
        /// Its path.
        path: String,
        /// Replace an existing file.
        #[arg(long)]
        force: bool,
    },
}

impl QuarantineArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let store = invocation.location.state()?.quarantine()?;
        match self.verb {
            QuarantineVerb::List => list(&store, invocation.json),
            QuarantineVerb::Show { call, path } => show(&store, &call, &path),
            QuarantineVerb::Release { call, path, force } => {
                let args = json!({ "call": call, "path": path, "replace": force }).to_string();
                // Only the command line offers this tool, and the person who types the command has approved it.
                let call = CallArgs::approved("release", args);
                REPORT.print(&call.perform(invocation, vec![Release::tool(store)])?, invocation)
            }
        }
    }
}

fn list(store: &Quarantine, as_json: bool) -> Result<Exit> {
    let calls = store.calls()?;
    if calls.is_empty() && !as_json {
        errln!("Nothing is quarantined.");
    }
    for call in calls {
        let quarantined = store.changes(&call)?;
        if as_json {
            outln!("{}", json!({ "call": call, "held": quarantined }));
            continue;
        }
        outln!("{}", paint(BOLD, plain(&call)));
        for QuarantinedChange { path, reason, .. } in &quarantined {
            outln!("  {} {}", plain(path), paint(DIM, format!("({})", plain(reason))));
        }
    }
    Ok(Exit::Ok)
}

/// One quarantined change of a call, and its bytes.
fn find(store: &Quarantine, call: &str, path: &str) -> Result<(QuarantinedChange, Vec<u8>)> {
    let quarantined = store.changes(call)?.into_iter().find(|change| change.path == path);
    let quarantined = quarantined.with_context(|| {
        format!("{call} has no quarantined change at {path}; `toolgate quarantine list` shows what there is")
    })?;
    let bytes = match (&quarantined.name, quarantined.mode) {
        (Some(name), Some(LINK_MODE)) => store.for_call(call)?.link(name)?,
        _ => {
            let Some(mut file) = store.for_call(call)?.open(&quarantined)? else {
                bail!("The command removed {path} or replaced it by a directory, so there is no content to show.")
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).with_context(|| format!("{path} can't be read"))?;
            bytes
        }
    };
    Ok((quarantined, bytes))
}

fn show(store: &Quarantine, call: &str, path: &str) -> Result<Exit> {
    let (_, bytes) = find(store, call, path)?;
    RawOutput.write_all(&bytes).context("standard output can't be written")?;
    Ok(Exit::Ok)
}
