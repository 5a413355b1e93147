//! `toolgate quarantine`: what commands made and the workspace didn't get.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_changes::Release;
use toolgate_contract::LINK_MODE;
use toolgate_journal::{Quarantine as Store, QuarantinedChange};

use super::Invocation;
use super::applied_report::AppliedReport;
use super::call::CallArgs;
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, paint, plain};

const WORDING: AppliedReport = AppliedReport { done: "Put in place:", left: "Left alone:", left_in: "refused" };

/// Look at what commands made and the workspace didn't get, and let it in.
///
/// Something is kept aside when policy denies its place, when somebody else changed it while the command ran, or when git, an
/// editor or another agent would obey it.
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
    /// List what is kept aside, by call, with the reasons.
    List,
    /// Print one thing that is kept aside.
    Show {
        /// The call.
        call: String,
        /// Its path.
        path: String,
    },
    /// Put something in place after all: you have looked at it. It is recorded, and `toolgate undo` takes it back.
    Release {
        /// The call.
        call: String,
        /// Its path.
        path: String,
        /// Replace what is there.
        #[arg(long)]
        force: bool,
    },
}

impl QuarantineArgs {
    pub(crate) fn run(self, setting: &Invocation) -> Result<Exit> {
        let store = setting.place.state()?.quarantine()?;
        match self.verb {
            QuarantineVerb::List => list(&store, setting.json),
            QuarantineVerb::Show { call, path } => show(&store, &call, &path),
            QuarantineVerb::Release { call, path, force } => {
                let args = json!({ "call": call, "path": path, "replace": force }).to_string();
                // Only whoever types this is offered that tool, and has decided already.
                let call = CallArgs::approved("release", args);
                WORDING.tell(&call.perform(setting, vec![Release::tool(store)])?, setting)
            }
        }
    }
}

fn list(store: &Store, as_json: bool) -> Result<Exit> {
    let calls = store.calls()?;
    if calls.is_empty() && !as_json {
        anstream::eprintln!("Nothing is kept aside.");
    }
    for call in calls {
        let held = store.held(&call)?;
        if as_json {
            anstream::println!("{}", json!({ "call": call, "held": held }));
            continue;
        }
        anstream::println!("{}", paint(BOLD, plain(&call)));
        for QuarantinedChange { path, reason, .. } in &held {
            anstream::println!("  {} {}", plain(path), paint(DIM, format!("({})", plain(reason))));
        }
    }
    Ok(Exit::Ok)
}

/// One thing of a call's, and its bytes.
fn find(store: &Store, call: &str, path: &str) -> Result<(QuarantinedChange, Vec<u8>)> {
    let held = store.held(call)?.into_iter().find(|held| held.path == path);
    let held =
        held.with_context(|| format!("nothing of {call} is kept aside at {path}; `toolgate quarantine list`"))?;
    let bytes = match (&held.name, held.mode) {
        (Some(name), Some(LINK_MODE)) => store.room(call)?.link(name)?,
        _ => {
            let Some(mut file) = store.room(call)?.open(&held)? else {
                bail!("The command removed {path} or made a directory of it, so there is no content to show.")
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).with_context(|| format!("{path} can't be read"))?;
            bytes
        }
    };
    Ok((held, bytes))
}

fn show(store: &Store, call: &str, path: &str) -> Result<Exit> {
    let (_, bytes) = find(store, call, path)?;
    std::io::stdout().write_all(&bytes).context("standard output can't be written")?;
    Ok(Exit::Ok)
}
