//! `toolgate commit`: applies the changes of a rehearsal.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::StagedChanges;
use toolgate_sandbox::OverlayChanges;
use toolgate_workspace::root_directories;

use super::Invocation;
use super::applied_report::AppliedReport;
use super::call::CallArgs;
use super::sandbox::preview::RehearsalPreview;
use crate::exit::Exit;
use crate::output::errln;

const REPORT: AppliedReport = AppliedReport { done: "Applied:", left: "Quarantined:", left_in: "kept_aside" };

/// Apply the changes of a rehearsed command: exactly those that it showed, all or none, except those that it listed as
/// quarantined.
///
/// A commit is a call like any other: judged, recorded, and undoable. If a file has changed since the rehearsal,
/// nothing is applied. A rehearsal can be committed once, within a day. It prints each file with its added and removed
/// lines; `--json` prints the reply.
///
/// Examples:
///   toolgate sandbox --rehearse -- sed -i s/a/b/ notes.md
///   toolgate commit --show 18c3a7-5f2-0      (shows all of it, and changes nothing)
///   toolgate commit 18c3a7-5f2-0
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CommitArgs {
    /// The rehearsal's handle.
    rehearsal: String,
    /// Only show what it would change, in full.
    #[arg(long)]
    show: bool,
}

impl CommitArgs {
    pub(super) fn of(rehearsal: String) -> Self {
        Self { rehearsal, show: false }
    }

    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let location = &invocation.location;
        let settings = location.load()?.settings;
        let roots = root_directories(location, &settings.roots);
        // An agent's rehearsal belongs to its run, so the commit continues that run.
        let layers = OverlayChanges::open(&location.state()?.layers_dir(), &self.rehearsal, &roots)?;
        if self.show {
            let files = location.roots(&settings)?;
            let rehearsed = RehearsalPreview::of(&layers, &files, &self.rehearsal, invocation)?;
            match invocation.json {
                true => errln!("{}", rehearsed.json()?),
                false => rehearsed.show(true)?,
            }
            return Ok(Exit::Ok);
        }
        let owner = layers.owner().map(str::to_owned);
        drop(layers);
        let args = json!({ "rehearsal": self.rehearsal }).to_string();
        let call = CallArgs::approved("commit", args).in_run(owner);
        REPORT.print(&call.perform(invocation, Vec::new())?, invocation)
    }
}
