//! Reports to a person what a call that writes files has done: each file with its added and removed lines, what was
//! skipped and why, and how to undo it.

use anyhow::Result;
use toolgate_contract::Reply;
use toolgate_journal::StateDirectory;

use super::Invocation;
use super::call::PerformedCall;
use super::changes::CallChangeList;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, YELLOW, paint, plain, print_tool_error};
use crate::workspace::typed_program;

/// Maximum number of skipped paths that are listed.
const MAX_LISTED: usize = 200;

/// The wording of such a report.
pub(super) struct AppliedReport {
    /// Heading above what was done.
    pub(super) done: &'static str,
    /// Heading above what was skipped.
    pub(super) left: &'static str,
    /// The payload field that lists what was skipped, each with a path and a reason.
    pub(super) left_in: &'static str,
}

impl AppliedReport {
    /// Reports what a call has done, to a person or as JSON.
    pub(super) fn print(&self, performed: &PerformedCall, invocation: &Invocation) -> Result<Exit> {
        let PerformedCall { reply, run, .. } = performed;
        match invocation.json {
            true => outln!("{}", serde_json::to_string(reply)?),
            false => self.show(reply, run, &invocation.location.state()?, &typed_program(&invocation.location))?,
        }
        Ok(Exit::of_reply(reply))
    }

    /// Shows a person what a call has done; `toolgate` is how the program is invoked here.
    pub(super) fn show(&self, reply: &Reply, run: &str, state: &StateDirectory, toolgate: &str) -> Result<()> {
        let changes =
            if reply.ok { CallChangeList::of(&reply.tool_call_id, run, state)? } else { CallChangeList::default() };
        if reply.ok {
            outln!("{}", paint(BOLD, self.done));
            changes.print(state, MAX_LISTED)?;
        }
        self.show_left(reply);
        match &reply.error {
            Some(error) => print_tool_error(error),
            // What changed nothing can't be undone.
            None if changes.is_empty() => {}
            None => {
                let back = format!("`{toolgate} undo {}` undoes this.", reply.tool_call_id);
                errln!("{}", paint(DIM, back));
            }
        }
        Ok(())
    }

    fn show_left(&self, reply: &Reply) {
        let answer = reply.payload.as_ref().or(reply.error.as_ref().and_then(|error| error.details.as_ref()));
        let left = answer.and_then(|answer| answer[self.left_in].as_array()).map_or(&[][..], Vec::as_slice);
        if !left.is_empty() {
            outln!("{}", paint(YELLOW.bold(), self.left));
        }
        for one in left.iter().take(MAX_LISTED) {
            let [path, reason] = ["path", "reason"].map(|field| plain(one[field].as_str().unwrap_or_default()));
            outln!("  {path} {}", paint(DIM, format!("({reason})")));
        }
        if left.len() > MAX_LISTED {
            outln!("  {}", paint(DIM, format!("… and {} more", left.len() - MAX_LISTED)));
        }
    }
}
