//! `toolgate commit`: puts the changes of a rehearsal in place.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::Apart;
use toolgate_sandbox::Layers;

use super::Setting;
use super::call::Call;
use super::placed::Wording;
use super::sandbox::changes::Rehearsed;
use crate::exit::Exit;
use crate::wiring::folders;

const WORDING: Wording = Wording { done: "Put in place:", left: "Kept aside:", left_in: "kept_aside" };

/// Put the changes of a rehearsed command in place: exactly those that it showed, all or none, but for what it said would be
/// kept aside.
///
/// It is a call like any other: judged, recorded, and undoable. Where a file has changed since the rehearsal, nothing is
/// put in place. A rehearsal can be committed once, within a day. It prints each file with the lines that came and went;
/// `--json` prints the reply.
///
/// Examples:
///   toolgate sandbox --rehearse -- sed -i s/a/b/ notes.md
///   toolgate commit --show 18c3a7-5f2-0      (shows all of it, and changes nothing)
///   toolgate commit 18c3a7-5f2-0
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Commit {
    /// The rehearsal, by the handle that it gave.
    rehearsal: String,
    /// Only show what it would change, all of it.
    #[arg(long)]
    show: bool,
}

impl Commit {
    pub(super) fn of(rehearsal: String) -> Self {
        Self { rehearsal, show: false }
    }

    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let place = &setting.place;
        let settings = place.load()?.settings;
        let roots = folders(place, &settings.roots);
        // An agent's rehearsal belongs to its run, which is gone on with.
        let layers = Layers::open(&place.state()?.layers_dir(), &self.rehearsal, &roots)?;
        if self.show {
            let files = crate::wiring::roots(place, &settings)?;
            let rehearsed = Rehearsed::of(&layers, &files, &self.rehearsal, setting)?;
            match setting.json {
                true => anstream::eprintln!("{}", rehearsed.json()?),
                false => rehearsed.show(true)?,
            }
            return Ok(Exit::Ok);
        }
        let owner = layers.owner().map(str::to_owned);
        drop(layers);
        let args = json!({ "rehearsal": self.rehearsal }).to_string();
        let call = Call::approved("commit", args).in_run(owner);
        WORDING.tell(&call.perform(setting, Vec::new())?, setting)
    }
}
