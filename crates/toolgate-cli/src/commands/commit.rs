//! `toolgate commit`: puts the changes of a rehearsal in place.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::Apart;
use toolgate_sandbox::Layers;

use super::{Setting, call};
use crate::exit::Exit;
use crate::wiring::folders;

/// Put the changes of a rehearsed command in place: exactly those that it showed, all or none.
///
/// It is a call like any other: judged, recorded, and undoable. Where a file has changed since the rehearsal, nothing is
/// put in place. A rehearsal can be committed once, within a day.
///
/// Examples:
///   toolgate sandbox --rehearse -- sed -i s/a/b/ notes.md
///   toolgate commit 18c3a7-5f2-0
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Commit {
    /// The rehearsal, by the handle that it gave.
    pub(super) rehearsal: String,
}

impl Commit {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let place = &setting.place;
        let roots = folders(place, &place.load()?.settings.roots);
        // An agent's rehearsal belongs to its run, which is gone on with.
        let layers = Layers::open(&place.state()?.layers_dir(), &self.rehearsal, &roots)?;
        let owner = layers.owner().map(str::to_owned);
        drop(layers);
        let args = json!({ "rehearsal": self.rehearsal }).to_string();
        call::Call::approved("commit", args).in_run(owner).run(setting)
    }
}
