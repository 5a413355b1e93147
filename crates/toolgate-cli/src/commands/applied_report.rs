//! What a call that puts files in place has done, for a person: each file with the lines that came and went, what was left
//! alone and why, and how to take it back.

use anyhow::Result;
use toolgate_contract::Reply;
use toolgate_journal::StateDirectory;

use super::Invocation;
use super::call::PerformedCall;
use super::changes::ChangesArgs;
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, YELLOW, paint, plain, print_tool_error};

/// Files that are named at the most.
const MOST: usize = 200;

/// How such a call speaks.
pub(super) struct AppliedReport {
    /// Stands above what was done.
    pub(super) done: &'static str,
    /// Stands above what wasn't.
    pub(super) left: &'static str,
    /// The field of its payload that names what wasn't, each with a path and a reason.
    pub(super) left_in: &'static str,
}

impl AppliedReport {
    /// Tells what a call has done, to a person or to a program.
    pub(super) fn tell(&self, performed: &PerformedCall, setting: &Invocation) -> Result<Exit> {
        let PerformedCall { reply, run, .. } = performed;
        match setting.json {
            true => anstream::println!("{}", serde_json::to_string(reply)?),
            false => self.show(reply, run, &setting.place.state()?)?,
        }
        Ok(Exit::of_reply(reply))
    }

    /// Shows a person what a call has done.
    pub(super) fn show(&self, reply: &Reply, run: &str, state: &StateDirectory) -> Result<()> {
        if reply.ok {
            anstream::println!("{}", paint(BOLD, self.done));
            ChangesArgs::print_call_changes(&reply.tool_call_id, run, state, MOST)?;
        }
        self.show_left(reply);
        match &reply.error {
            Some(error) => print_tool_error(error),
            None => {
                let back = format!("`toolgate undo {}` takes this back.", reply.tool_call_id);
                anstream::eprintln!("{}", paint(DIM, back));
            }
        }
        Ok(())
    }

    fn show_left(&self, reply: &Reply) {
        let answer = reply.payload.as_ref().or(reply.error.as_ref().and_then(|error| error.details.as_ref()));
        let left = answer.and_then(|answer| answer[self.left_in].as_array()).map_or(&[][..], Vec::as_slice);
        if !left.is_empty() {
            anstream::println!("{}", paint(YELLOW.bold(), self.left));
        }
        for one in left.iter().take(MOST) {
            let [path, reason] = ["path", "reason"].map(|field| plain(one[field].as_str().unwrap_or_default()));
            anstream::println!("  {path} {}", paint(DIM, format!("({reason})")));
        }
        if left.len() > MOST {
            anstream::println!("  {}", paint(DIM, format!("… and {} more", left.len() - MOST)));
        }
    }
}
