//! Ends, kills and starts of servers. A start after a kill finds what the killed one left, and leaves the workspace as
//! it should be; a second start changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::{CallFacts, Driver, RunningCommand, server_index};
use crate::checks::{LONGEST_PATH, equal, is_made_again};
use crate::hold;
use crate::leftovers::{self, ProcessIdentity};
use crate::operation::{Act, Actor};
use crate::tree::{self, Node, Tree, TreeDiff};
use crate::tree_path::TreePath;
use crate::violation::Violation;

impl Driver {
    pub(super) fn restart(&mut self, by: Actor, is_kill: bool) -> Result<(), Violation> {
        let Some(index) = server_index(by) else { return Ok(()) };
        let Some(server) = self.servers[index].take() else {
            self.tally.idle += 1;
            return Ok(());
        };
        let processes = match is_kill {
            true => leftovers::descendants_of_stopped(server.process()),
            false => leftovers::descendants(server.process()),
        };
        match is_kill {
            true => server.kill(),
            false => {
                let code = server.end();
                hold!(code == 0, ProgramAnswers, "A server ends with {code}");
            }
        }
        let (before, after) = self.start_again(index, &processes)?;
        // A server that ends as it should stops its commands, and what they did until then is written to the workspace.
        let staged: Vec<(String, TreeDiff)> = match is_kill {
            true => vec![],
            false => self
                .running
                .values()
                .filter(|one| one.server == index && !one.is_in_place)
                .map(RunningCommand::result)
                .collect(),
        };
        let ended = self.forget_running(index);
        let mut changed = tree::diff(&before, &after);
        for (call, wanted) in &staged {
            let all = changed.clone();
            let is_its = |path: &TreePath, now: &Option<Node>| {
                wanted.get(path).is_some_and(|(_, meant)| equal(path, meant.as_ref(), now.as_ref()))
                    || is_made_again(path, &all, wanted)
            };
            let its: TreeDiff = changed.extract_if(.., |path, (_, now)| is_its(path, now)).collect();
            // Which of several commands comes first is the server's choice; the others find it done.
            let is_shared = |path: &TreePath| staged.iter().any(|(other, all)| other != call && all.contains_key(path));
            let (shared, own): (TreeDiff, TreeDiff) = its.into_iter().partition(|(path, _)| is_shared(path));
            self.history.add(Some(call), &own, false);
            self.history.add(Some(call), &shared, true);
        }
        let (reverted, others) = self.reverts_of(&ended, changed);
        hold!(others.is_empty(), NothingElseChanged, "A new start changed {others:?}");
        for call in &ended {
            self.history.add(Some(call), &reverted, false);
        }
        self.count(if is_kill { "kill" } else { "restart" });
        Ok(())
    }

    /// Starts a server in place of one that is gone, and once more, which has to change nothing.
    fn start_again(&mut self, index: usize, gone: &BTreeSet<ProcessIdentity>) -> Result<(Tree, Tree), Violation> {
        leftovers::wait_for_end(gone);
        let server = self.server(index);
        server.call("list", serde_json::json!({}));
        let warnings = server.warnings();
        let is_clean = !warnings.contains("aren't recorded") && !warnings.contains("error");
        hold!(is_clean, StartIsIdempotent, "A start after a kill says: {warnings}");
        let (before, after) = self.look();
        let recorded = self.recorded();
        let again = self.world.reply(&["call", "list"]);
        hold!(again.is_ok(), StartIsIdempotent, "A second start fails: {}", again.raw);
        let (first, second) = self.look();
        let changed = tree::diff(&first, &second);
        hold!(changed.is_empty(), StartIsIdempotent, "A second start changed {changed:?}");
        let twice = self.recorded();
        hold!(recorded.len() == twice.len(), StartIsIdempotent, "A second start recorded changes again: {twice:?}");
        leftovers::check_audit(&self.world)?;
        Ok((before, after))
    }

    /// The commands of a server that is gone are gone, too. Gives the calls of those that worked in place.
    fn forget_running(&mut self, index: usize) -> BTreeSet<String> {
        let (gone, left) = std::mem::take(&mut self.running).into_iter().partition(|(_, one)| one.server == index);
        self.running = left;
        let gone: std::collections::BTreeMap<u32, RunningCommand> = gone;
        gone.into_values().filter(|one| one.is_in_place).map(|one| one.call).collect()
    }

    /// What would be run automatically is reverted when its command in place ends, however it ends. Gives those of the changes that
    /// do that for these commands, and the others.
    fn reverts_of(&self, ended: &BTreeSet<String>, changed: TreeDiff) -> (TreeDiff, TreeDiff) {
        changed.into_iter().partition(|(path, (_, is))| {
            self.history.of(path).iter().any(|change| {
                let is_its = change.call.as_ref().is_some_and(|call| ended.contains(call));
                (is_its || change.is_ambiguous && !ended.is_empty()) && Node::same(change.before.as_ref(), is.as_ref())
            })
        })
    }

    /// Every change on record: the call and its paths.
    pub(super) fn recorded(&self) -> Vec<(String, Value)> {
        let output = self.world.run(&["--json", "changes"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = |line: &str| serde_json::from_str::<Value>(line).ok();
        let call = |event: Value| (event["call"].as_str().unwrap_or_default().to_owned(), event["changes"].clone());
        text.lines().filter_map(line).map(call).collect()
    }

    /// A call that is killed half way is done or not done; in place it may be half done, and is on record.
    pub(super) fn kill_during(&mut self, id: u32, by: Actor, act: &Act, after_us: u64) -> Result<(), Violation> {
        let (Some(index), Some((tool, args))) = (server_index(by), self.tool_call(act)) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let known: BTreeSet<String> = self.recorded().into_iter().map(|(call, _)| call).collect();
        let wanted = match act {
            Act::Shell(how, mutations) => self.wanted(mutations, *how),
            act => self.meaning(act),
        };
        self.server(index).begin(tool, args);
        std::thread::sleep(Duration::from_micros(after_us));
        let server = self.servers[index].take().expect("it was just asked");
        let processes = leftovers::descendants_of_stopped(server.process());
        server.kill();
        let (before, after) = self.start_again(index, &processes)?;
        let ended = self.forget_running(index);
        let (reverted, changed) = self.reverts_of(&ended, tree::diff(&before, &after));
        for call in &ended {
            self.history.add(Some(call), &reverted, false);
        }
        let is_in_place = matches!(act, Act::Shell(how, _) if self.is_in_place(*how));
        if let (Some(wanted), false) = (wanted, is_in_place || !ended.is_empty()) {
            check_all_or_nothing(&changed, &wanted, &after)?;
        }
        self.count("kill during");
        if changed.is_empty() {
            return Ok(());
        }
        // What commands in place did that were killed, too, may be on record only now.
        let is_new = |call: &String| !known.contains(call) && !ended.contains(call);
        let new = self.recorded().into_iter().map(|(call, _)| call).find(is_new);
        let Some(call) = new else {
            hold!(!ended.is_empty(), NothingIsLost, "A killed call changed {changed:?}, and nothing is on record");
            return Ok(());
        };
        self.history.add(Some(&call), &changed, false);
        let run = Some((index, self.starts[index] - 1));
        self.calls.insert(id, CallFacts { call, run, ..CallFacts::default() });
        Ok(())
    }
}

fn check_all_or_nothing(changed: &TreeDiff, wanted: &TreeDiff, after: &Tree) -> Result<(), Violation> {
    let is_meant = |(path, (_, now)): (&TreePath, &(Option<Node>, Option<Node>))| {
        wanted.get(path).is_some_and(|(_, meant)| equal(path, meant.as_ref(), now.as_ref()))
    };
    hold!(changed.iter().all(is_meant), StartIsIdempotent, "A killed call left {changed:?}, it meant {wanted:?}");
    // What has too long a path is quarantined.
    let is_missing = |(path, (_, meant)): &(&TreePath, &(Option<Node>, Option<Node>))| {
        path.0.len() <= LONGEST_PATH && !equal(path, meant.as_ref(), after.get(path))
    };
    let missing: Vec<_> = wanted.iter().filter(is_missing).collect();
    hold!(
        changed.is_empty() || missing.is_empty(),
        StartIsIdempotent,
        "A killed call is half done: {changed:?}, without {missing:?}"
    );
    Ok(())
}
