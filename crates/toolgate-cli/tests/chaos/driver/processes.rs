//! Commands that go on after their call: on an overlay until they end, or in place, doing one thing at a time while
//! others work too.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::calls::{PATIENCE_MS, PATIENCE_SECONDS};
use super::{Driver, RunningCommand, server_index};
use crate::checks::{check_settled, equal};
use crate::history::PathChange;
use crate::hold;
use crate::mutation::{Mutation, script};
use crate::operation::{Actor, How};
use crate::reply::{Names, Reply, Settled};
use crate::tree;
use crate::violation::Violation;

/// Does what it is told, line by line.
const OBEDIENT: &str = "while IFS= read -r line; do eval \"$line\"; done";
/// Goes on until it is asked to end.
const HELD: &str = "trap 'exit 0' TERM; echo rea\"\"dy; while :; do sleep 0.01; done";
/// After this time a command is ended, so that the longest step still fits into its own time.
const END_AFTER: Duration = Duration::from_secs(300);
/// How many paths that a cut list doesn't name are looked up in the quarantine.
const MOST_LOOKS: usize = 5;
/// As many as a session may have, by default.
const MOST: usize = 8;

impl Driver {
    pub(super) fn begin(&mut self, id: u32, by: Actor, how: How, mutations: &[Mutation]) -> Result<(), Violation> {
        let Some(server) = server_index(by).filter(|_| self.running.len() < MOST) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let is_in_place = self.is_in_place(how);
        if how == How::Layer {
            return self.begin_held(id, by, mutations, is_in_place);
        }
        let (is_input, is_terminal) = (how == How::Input, how == How::Terminal);
        let args = json!({
            "command": OBEDIENT, "background": is_input, "stdin": is_input, "tty": is_terminal, "yield_ms": 0,
        });
        let reply = self.call(by, "shell", args)?;
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        hold!(changed.is_empty(), NothingElseChanged, "A command that waits changed {changed:?}; {}", reply.raw);
        let Some(process) = reply.payload["process"].as_str().map(str::to_owned) else { return Ok(()) };
        self.remember(id, by, &reply, &Default::default(), vec![]);
        let wanted = Default::default();
        let (call, begun) = (reply.call, Instant::now());
        self.running.insert(id, RunningCommand { server, process, call, how, wanted, is_in_place, begun });
        self.count("begin");
        self.feed(id, mutations)
    }

    /// A command that does everything at once and then waits, so that its changes are staged while others work.
    fn begin_held(&mut self, id: u32, by: Actor, mutations: &[Mutation], is_in_place: bool) -> Result<(), Violation> {
        let Some(wanted) = self.wanted(mutations, How::Layer) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let (command, begun) = (format!("{}; {HELD}", script(mutations)), Instant::now());
        let reply =
            self.call(by, "shell", json!({ "command": command, "yield_ms": 0, "timeout_seconds": PATIENCE_SECONDS }))?;
        let Some(process) = reply.payload["process"].as_str().map(str::to_owned) else {
            hold!(!reply.is_ok(), ProgramAnswers, "A command that waits has ended: {}", reply.raw);
            return Ok(());
        };
        self.call(
            by,
            "process",
            json!({ "action": "wait", "process": process, "pattern": "ready", "timeout_ms": PATIENCE_MS }),
        )?;
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        self.remember(id, by, &reply, &Default::default(), vec![]);
        self.history.add(Some(&reply.call), &changed, self.has_others_in_place(id));
        match is_in_place {
            true => {
                let is_meant = changed.iter().all(|(path, (_, now))| {
                    wanted.get(path).is_some_and(|(_, meant)| equal(path, meant.as_ref(), now.as_ref()))
                });
                hold!(
                    is_meant && changed.len() == wanted.len(),
                    NothingElseChanged,
                    "A command in place changed {changed:?} instead of {wanted:?}"
                );
            }
            false => hold!(changed.is_empty(), NothingElseChanged, "A command on an overlay changed {changed:?}"),
        }
        let wanted = if is_in_place { Default::default() } else { wanted };
        let (server, call, how) = (server_index(by).unwrap_or_default(), reply.call, How::Layer);
        self.running.insert(id, RunningCommand { server, process, call, how, wanted, is_in_place, begun });
        self.count("begin");
        Ok(())
    }

    pub(super) fn feed(&mut self, of: u32, mutations: &[Mutation]) -> Result<(), Violation> {
        let Some(command) = self.running.get(&of).filter(|command| command.how != How::Layer) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let (server, process, call) = (command.server, command.process.clone(), command.call.clone());
        let wanted = self.wanted(mutations, command.how);
        let text = format!("{}; echo \"do\"ne-{of}\n", script(mutations));
        let by = if server == 0 { Actor::ServerA } else { Actor::ServerB };
        let args = json!({
            "action": "write", "process": process, "text": text, "pattern": format!("done-{of}"), "timeout_ms": PATIENCE_MS,
        });
        let reply = self.call(by, "process", args)?;
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        hold!(
            reply.is_ok() || changed.is_empty(),
            NothingElseChanged,
            "A refused input changed {changed:?}; {}",
            reply.raw
        );
        for (path, (_, now)) in &changed {
            let Some(wanted) = &wanted else { break };
            let meant = wanted.get(path).map(|(_, meant)| meant.as_ref());
            let is_meant = meant.is_some_and(|meant| equal(path, meant, now.as_ref()));
            hold!(
                is_meant,
                NothingElseChanged,
                "A command in place changed {path:?} to {now:?} instead of {meant:?}; {}",
                reply.raw
            );
        }
        self.history.add(Some(&call), &changed, self.has_others_in_place(of));
        self.count("feed");
        Ok(())
    }

    /// Whether another command works in place at the same time as this one: whichever is looked at first has the changes of
    /// both, since the file system doesn't say whose they are.
    fn has_others_in_place(&self, command: u32) -> bool {
        self.running.iter().any(|(id, other)| *id != command && other.is_in_place)
    }

    /// Ends commands whose time would be up soon.
    pub(super) fn end_old(&mut self) -> Result<(), Violation> {
        let is_old = |command: &RunningCommand| command.how == How::Layer && command.begun.elapsed() > END_AFTER;
        let old: Vec<u32> = self.running.iter().filter(|(_, one)| is_old(one)).map(|(id, _)| *id).collect();
        old.into_iter().try_for_each(|of| self.end(of, false))
    }

    pub(super) fn end(&mut self, of: u32, is_stop: bool) -> Result<(), Violation> {
        let Some(command) = self.running.remove(&of) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let start = self.world.twin.moment();
        let reply = self.ended(&command, is_stop);
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        let settled = reply.settled().unwrap_or_default();
        match command.is_in_place {
            false => {
                let touched = tree::touched_directories(&before, &after, start);
                let quarantined = check_settled(&reply, &settled, &before, &after, &command.wanted, &touched)?;
                self.check_quarantine(&command.call, &quarantined)?;
                self.calls.entry(of).and_modify(|facts| facts.quarantined = quarantined);
            }
            true => self.check_in_place(&command, &reply, &settled, &changed)?,
        }
        self.history.add(Some(&command.call), &changed, false);
        self.count("end");
        Ok(())
    }

    /// Ends a command, and gives the reply that says so.
    fn ended(&mut self, command: &RunningCommand, is_stop: bool) -> Reply {
        let process = command.process.clone();
        let how = command.how;
        let server = self.server(command.server);
        let mut reply = server.call(
            "process",
            match (is_stop, how) {
                (true, _) => json!({ "action": "stop", "process": process }),
                (false, How::Layer) => json!({ "action": "signal", "process": process, "signal": "TERM" }),
                (false, How::Input) => json!({ "action": "write", "process": process, "close": true }),
                (false, How::Terminal) => json!({ "action": "write", "process": process, "keys": ["ctrl-d"] }),
            },
        );
        while reply.is_ok() && reply.payload["running"] == json!(true) {
            reply = server.call("process", json!({ "action": "wait", "process": process }));
        }
        reply
    }

    /// A command that worked in place names what it did, and nothing that other calls did.
    fn check_in_place(
        &self,
        command: &RunningCommand,
        reply: &Reply,
        settled: &Settled,
        changed: &tree::TreeDiff,
    ) -> Result<(), Violation> {
        let own = self.history.changed_by(&BTreeSet::from([command.call.clone()]));
        let known: BTreeSet<_> = self.tree.keys().chain(&own).chain(self.history.all()).cloned().collect();
        let names = Names::of(&known);
        let quarantined = names.find_all(settled.quarantined.iter().map(|(written, _)| written));
        let mut unnamed = 0;
        for (path, (before, after)) in changed {
            let is_named = quarantined.iter().any(|one| one == path || path.is_in(one) || one.is_in(path));
            // A long list is cut; what isn't named is in quarantine all the same. Each look is a program of its own, so a
            // few have to do.
            unnamed += usize::from(!is_named);
            let is_there = || unnamed > MOST_LOOKS || self.is_quarantined(&command.call, path, before.as_ref());
            let is_reverted = is_named || settled.is_cut && is_there();
            hold!(
                is_reverted,
                NothingElseChanged,
                "The end of a command in place changed {path:?} from {before:?} to {after:?}; {}",
                reply.raw
            );
        }
        // Of a file whose content wasn't kept nobody can tell whether a new name is all that it got.
        let is_beyond_quota = reply.raw.to_string().contains("content exceeds the quota for undo");
        for (_, written) in &settled.paths {
            let Some(path) = names.find(written) else { continue };
            let changes = self.history.of(path);
            let is_possible = changes.is_empty()
                || changes.iter().any(|change| change.call.as_ref() == Some(&command.call) || change.is_ambiguous)
                || self.world.setting.has_small_quota && is_beyond_quota;
            hold!(
                is_possible,
                ReplyIsTrue,
                "A command in place says that it changed what others did: {path:?}; {}",
                reply.raw
            );
        }
        let said = names.find_all(settled.paths.iter().map(|(_, written)| written));
        for path in own.iter().filter(|_| !settled.is_cut) {
            let changes = self.history.of(path);
            let is_certain = |change: &PathChange| change.call.as_ref() == Some(&command.call) && !change.is_ambiguous;
            let is_only_its = changes.iter().all(is_certain);
            let is_back = crate::tree::Node::same(changes[0].before.as_ref(), self.tree.get(path));
            let is_folded = settled.folded.iter().any(|directory| directory.holds(path));
            let is_named =
                said.contains(path) || is_folded || quarantined.iter().any(|one| one == path || path.is_in(one));
            hold!(
                !is_only_its || is_back || is_named,
                ReplyIsTrue,
                "A command in place doesn't name what it changed: {path:?}; {}",
                reply.raw
            );
        }
        Ok(())
    }
}
