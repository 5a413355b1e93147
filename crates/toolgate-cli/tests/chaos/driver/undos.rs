//! Undo of calls and runs, and release from quarantine.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Driver, server_index};
use crate::checks::is_implied;
use crate::hold;
use crate::operation::Actor;
use crate::reply::Reply;
use crate::tree::{self, Node};
use crate::tree_path::TreePath;
use crate::undo_check::UndoCheck;
use crate::violation::Violation;

impl Driver {
    pub(super) fn undo(&mut self, id: u32, by: Actor, of: u32) -> Result<(), Violation> {
        let call = self.calls.get(&of).map(|facts| facts.call.clone()).filter(|_| !self.running.contains_key(&of));
        let Some(call) = call else {
            self.tally.idle += 1;
            return Ok(());
        };
        let reply = match server_index(by) {
            Some(_) => self.call(by, "undo", json!({ "call": call }))?,
            None => self.world.reply(&["undo", &call]),
        };
        self.check_undo(id, by, &BTreeSet::from([call]), &reply)
    }

    /// Undoes everything of one start of a server.
    pub(super) fn undo_run(&mut self, id: u32, by: Actor, of: u32) -> Result<(), Violation> {
        let run = self.calls.get(&of).and_then(|facts| facts.run);
        let calls: BTreeSet<String> =
            self.calls.values().filter(|facts| facts.run == run).map(|facts| facts.call.clone()).collect();
        let Some(name) = run.and_then(|_| calls.first()).and_then(|call| self.run_name(call)) else {
            self.tally.idle += 1;
            return Ok(());
        };
        if self.running.values().any(|command| calls.contains(&command.call)) {
            self.tally.idle += 1;
            return Ok(());
        }
        let reply = match server_index(by) {
            Some(_) => self.call(by, "undo", json!({ "run": name }))?,
            None => self.world.reply(&["undo", "--run", &name]),
        };
        self.check_undo(id, by, &calls, &reply)
    }

    /// The run that has a call on record.
    fn run_name(&self, call: &str) -> Option<String> {
        let runs = std::fs::read_dir(self.world.state("runs")).ok()?.flatten();
        // An undo names the call in a run of its own, as an argument.
        let own = format!(r#""tool_call_id":"{call}""#);
        let has_call = |run: &std::fs::DirEntry| {
            std::fs::read_to_string(run.path().join("events.jsonl")).is_ok_and(|events| events.contains(&own))
        };
        runs.into_iter().find(has_call).map(|run| run.file_name().to_string_lossy().into_owned())
    }

    fn check_undo(&mut self, id: u32, by: Actor, calls: &BTreeSet<String>, reply: &Reply) -> Result<(), Violation> {
        let (before, after) = self.look();
        let (setting, history) = (self.world.setting, &self.history);
        UndoCheck { setting, history, calls, reply, before: &before, after: &after }.check()?;
        self.remember(id, by, reply, &tree::diff(&before, &after), vec![]);
        self.count(if reply.is_ok() { "undo" } else { "undo refused" });
        Ok(())
    }

    /// Which call is the last one is the program's to say; what was undone has to be one call's work.
    pub(super) fn undo_last(&mut self, id: u32) -> Result<(), Violation> {
        let output = self.world.run(&["--json", "undo", "last"]);
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        let Ok(raw) = serde_json::from_slice(&output.stdout) else {
            hold!(changed.is_empty(), UndoIsExact, "A refused `undo last` changed something: {changed:?}");
            return Ok(());
        };
        let reply = Reply::of_program(raw, &self.world.state("runs"));
        let (setting, history) = (self.world.setting, &self.history);
        // What a person did beside a command in place counts as the command's.
        let is_mixed = |path: &TreePath| history.of(path).iter().any(|change| change.is_ambiguous);
        let mixed: BTreeSet<TreePath> = changed.keys().filter(|path| is_mixed(path)).cloned().collect();
        let is_ambiguous = changed.keys().all(|path| mixed.contains(path) || is_implied(path, &mixed, &before, &after));
        let mut first_fault = None;
        for call in self.calls.values().rev().map(|facts| BTreeSet::from([facts.call.clone()])) {
            let check =
                UndoCheck { setting, history, calls: &call, reply: &reply, before: &before, after: &after }.check();
            let is_it = check.is_ok() && (is_ambiguous || !history.changed_by(&call).is_empty());
            if is_it || changed.is_empty() && check.is_ok() {
                first_fault = None;
                break;
            }
            first_fault = first_fault.or(check.err());
        }
        if let Some(fault) = first_fault {
            return Err(fault);
        }
        self.remember(id, Actor::Program, &reply, &changed, vec![]);
        self.count("undo last");
        Ok(())
    }

    /// What was quarantined can be released, once; what is there meanwhile stays unless that is asked for.
    pub(super) fn release(&mut self, id: u32, of: u32, which: usize, is_forced: bool) -> Result<(), Violation> {
        let found = self.calls.get(&of).filter(|facts| !facts.quarantined.is_empty());
        let Some((call, one)) =
            found.map(|facts| (facts.call.clone(), facts.quarantined[which % facts.quarantined.len()].clone()))
        else {
            self.tally.idle += 1;
            return Ok(());
        };
        let force: &[&str] = if is_forced { &["--force"] } else { &[] };
        let reply = self.world.reply(&[&["quarantine", "release", &call], force, &["--", &one.written]].concat());
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        if reply.is_ok() {
            let now = after.get(&one.path);
            let is_it = !one.is_known || Node::same_content(now, one.wanted.as_ref());
            hold!(is_it, ReplyIsTrue, "A release made {now:?} instead of {:?}; {}", one.wanted, reply.raw);
        }
        let is_other = |path: &&crate::tree_path::TreePath| !(**path == one.path || one.path.is_in(path));
        let others: Vec<_> = changed.keys().filter(is_other).collect();
        let is_fine = others.is_empty() && (reply.is_ok() || changed.is_empty());
        hold!(is_fine, NothingElseChanged, "A release changed something else: {changed:?}; {}", reply.raw);
        self.remember(id, Actor::Program, &reply, &changed, vec![]);
        self.count(if reply.is_ok() { "release" } else { "release refused" });
        Ok(())
    }
}
