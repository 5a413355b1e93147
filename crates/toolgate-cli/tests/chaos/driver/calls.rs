//! Calls that end with their reply: file tools, commands, rehearsals and their commits, and a person's own scripts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CallFacts, Driver, RunningCommand, server_index};
use crate::checks::{
    QuarantinedNode, check_settled, check_tool, crosses_mounts, is_git_bookkeeping, meets_protected, meets_shared_file,
    reads_hidden,
};
use crate::history::PathChange;
use crate::hold;
use crate::meaning::{first_line, lines, meaning};
use crate::mutation::{Mutation, script};
use crate::operation::{Act, Actor, How};
use crate::reply::{Names, Reply, Settled, texts};
use crate::tree::{self, Kind, Node, Tree, TreeDiff};
use crate::tree_path::TreePath;
use crate::violation::Violation;

/// The longest that a command may take, and that a call waits for one: none here takes nearly as long, but where others
/// use the machine a stopped one would be taken for a fault.
pub(super) const PATIENCE_SECONDS: u64 = 600;
pub(super) const PATIENCE_MS: u64 = 1000 * PATIENCE_SECONDS;
/// The longest line, in bytes, that is written on a command line.
const MOST_ARGUMENT: usize = 50_000;

impl Driver {
    /// A person's script.
    pub(super) fn script(&mut self, mutations: &[Mutation]) -> Result<(), Violation> {
        self.world.bash(&self.world.workspace, &script(mutations));
        let (before, after) = self.look();
        let is_ambiguous = self.running.values().any(|command| command.is_in_place);
        self.history.add(None, &tree::diff(&before, &after), is_ambiguous);
        self.count("script");
        Ok(())
    }

    /// Makes a call, through a server or on the command line.
    pub(super) fn call(&mut self, by: Actor, tool: &str, args: Value) -> Result<Reply, Violation> {
        let reply = match server_index(by) {
            Some(index) => self.server(index).call(tool, args),
            None => self.world.reply(&["call", "--approve", tool, &args.to_string()]),
        };
        if let Some((code, message)) = &reply.error {
            hold!(code != "internal", ProgramAnswers, "An internal error: {message}; {}", reply.raw);
            let cannot_run = tool == "shell" && code == "io_error";
            hold!(!cannot_run, ProgramAnswers, "No command can run any more: {message}; {}", reply.raw);
            let start: String = message.chars().take(50).filter(|letter| !letter.is_ascii_digit()).collect();
            *self.tally.refused.entry(format!("{tool} {code} {start}")).or_default() += 1;
        }
        Ok(reply)
    }

    /// What a script changes without Toolgate.
    fn tried(&self, mutations: &[Mutation]) -> TreeDiff {
        let text = script(mutations);
        let run = |directory: &std::path::Path| self.world.bash_without_capabilities(directory, &text);
        self.world.twin.try_out(&self.world.workspace, &self.tree, run).0
    }

    /// What a script changes without Toolgate; none if a command can't do the same.
    pub(super) fn wanted(&self, mutations: &[Mutation], how: How) -> Option<TreeDiff> {
        let wanted = self.tried(mutations);
        let is_in_place = self.is_in_place(how);
        let is_root = self.world.setting.is_root;
        let is_told_otherwise = meets_protected(&self.tree, &wanted, is_in_place, is_root)
            || crosses_mounts(&self.tree, mutations, is_in_place, is_root)
            || reads_hidden(&self.tree, mutations, is_root)
            || !is_in_place && meets_shared_file(&self.tree, &wanted);
        (!is_told_otherwise).then_some(wanted)
    }

    /// Whether a command works in place.
    pub(super) fn is_in_place(&self, how: How) -> bool {
        how != How::Layer || !self.world.setting.has_overlay
    }

    pub(super) fn tool(&mut self, id: u32, by: Actor, act: &Act) -> Result<(), Violation> {
        let Some((tool, args)) = self.tool_call(act) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let meant = self.meaning(act);
        let reply = self.call(by, tool, args)?;
        let (before, after) = self.look();
        if let (Act::Read(path), true) = (act, reply.is_ok()) {
            self.check_read(path, &reply)?;
        }
        let changed = check_tool(&reply, &before, &after, meant.as_ref())?;
        self.remember(id, by, &reply, &changed, vec![]);
        if reply.is_ok() {
            self.count(tool);
        }
        Ok(())
    }

    /// What a file tool means now; none if that can't be told.
    pub(super) fn meaning(&self, act: &Act) -> Option<TreeDiff> {
        meaning(act, &self.tree, self.world.twin.moment(), &|path| tree::read(&self.world.workspace, path))
    }

    /// A tool's name and arguments; none if there is nothing to call it with.
    pub(super) fn tool_call(&self, act: &Act) -> Option<(&'static str, Value)> {
        let read = |path: &TreePath| tree::read(&self.world.workspace, path);
        Some(match act {
            Act::Read(path) => ("read", json!({ "path": path.text()? })),
            Act::Search(tool, word) => match tool.as_str() {
                "grep" => ("grep", json!({ "pattern": word })),
                "find" => ("find", json!({ "pattern": format!("**/{word}*") })),
                _ => ("list", json!({ "path": "." })),
            },
            Act::Write(path, word, count) => ("write", json!({ "path": path.text()?, "content": lines(word, *count) })),
            Act::Append(path, word) => {
                ("write", json!({ "path": path.text()?, "content": lines(word, 1), "mode": "append" }))
            }
            Act::Edit(path, word) => {
                let bytes = read(path)?;
                // The arguments of a program have a limit.
                let first = first_line(&bytes).filter(|line| line.len() < MOST_ARGUMENT)?;
                ("edit", json!({ "path": path.text()?, "find": first, "replace": word }))
            }
            Act::Patch(path, word, new) => {
                let bytes = read(path)?;
                let old = first_line(&bytes).filter(|line| line.len() < MOST_ARGUMENT)?;
                let (from, to) = (path.text()?, new.text()?);
                let update = format!("*** Update File: {from}\n@@\n-{old}\n+{word}\n");
                let patch = format!("*** Begin Patch\n{update}*** Add File: {to}\n+{word}\n*** End Patch\n");
                ("patch", json!({ "patch": patch }))
            }
            Act::Delete(path, is_recursive) => ("delete", json!({ "path": path.text()?, "recursive": is_recursive })),
            Act::Move(from, to, overwrite) => {
                ("move", json!({ "from": from.text()?, "to": to.text()?, "overwrite": overwrite }))
            }
            Act::Shell(how, mutations) => ("shell", shell_args(*how, mutations)),
            _ => return None,
        })
    }

    fn check_read(&self, path: &TreePath, reply: &Reply) -> Result<(), Violation> {
        let Some(Kind::File(_)) = self.tree.get(path).map(|node| &node.kind) else { return Ok(()) };
        let bytes = tree::read(&self.world.workspace, path).unwrap_or_default();
        let said = reply.payload["content"].as_str().unwrap_or_default();
        let is_whole = reply.raw["_meta"].get("toolgate/truncated").is_none() && reply.raw["truncated"].is_null();
        let is_text = std::str::from_utf8(&bytes).is_ok() && bytes.len() < 10_000;
        // More than 2,000 lines are given by pages.
        let is_page = reply.payload["has_more"] == json!(true);
        let is_same = if is_page { bytes.starts_with(said.as_bytes()) } else { bytes == said.as_bytes() };
        hold!(
            !is_whole || !is_text || is_same,
            ReplyIsTrue,
            "`read` shows something else than is in {path:?}: {}",
            reply.raw
        );
        Ok(())
    }

    pub(super) fn shell(&mut self, id: u32, by: Actor, how: How, mutations: &[Mutation]) -> Result<(), Violation> {
        let (wanted, start) = (self.wanted(mutations, how), self.world.twin.moment());
        let is_beside_another = self.is_in_place(how) && self.running.values().any(|command| command.is_in_place);
        let touched_beside = if is_beside_another { self.tried(mutations) } else { TreeDiff::new() };
        let reply = self.call(by, "shell", shell_args(how, mutations))?;
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        let wanted = wanted.unwrap_or_else(|| changed.clone());
        let Some(settled) = reply.settled() else {
            hold!(
                changed.is_empty(),
                ReplyIsTrue,
                "A command changed {changed:?} and its reply names nothing: {}",
                reply.raw
            );
            let has_run = reply.is_ok() && !wanted.is_empty();
            hold!(
                !has_run,
                NothingIsLost,
                "A command's work is gone: {wanted:?}, and its reply names nothing: {}",
                reply.raw
            );
            return Ok(());
        };
        // In place, the time of a directory alone is no change.
        let touched = match self.is_in_place(how) {
            true => BTreeSet::new(),
            false => tree::touched_directories(&before, &after, start),
        };
        let left = self.without_reverts_of_others(&settled, &before, &after);
        let quarantined = check_settled(&reply, &settled, &before, &left, &wanted, &touched)?;
        self.check_quarantine(&reply.call, &quarantined)?;
        self.remember(id, by, &reply, &changed, quarantined);
        self.remember_what_was_put_back(touched_beside, &changed);
        self.count("shell");
        Ok(())
    }

    /// A command in place was found to have changed these paths beside another one, and they were put back: since then nobody
    /// can tell whose they are.
    fn remember_what_was_put_back(&mut self, touched: TreeDiff, changed: &TreeDiff) {
        let put_back = touched.into_keys().filter(|path| !changed.contains_key(path));
        let as_it_is = |path: TreePath| {
            let node = self.tree.get(&path).cloned();
            (path, (node.clone(), node))
        };
        let put_back: TreeDiff = put_back.map(as_it_is).collect();
        self.history.add(None, &put_back, true);
    }

    /// What a command in place left, apart from what another one had planted that still runs: what the command made of it is
    /// quarantined, and it goes back to what was there before both, as it would at the other's end.
    fn without_reverts_of_others(&self, settled: &Settled, before: &Tree, after: &Tree) -> Tree {
        let mut left = after.clone();
        let names = Names::of(before.keys());
        for path in names.find_all(settled.quarantined.iter().map(|(written, _)| written)) {
            let is_planted = |change: &PathChange| {
                // What a person did beside it counts as its own.
                let is_its = |running: &RunningCommand| {
                    running.is_in_place && (change.is_ambiguous || change.call.as_ref() == Some(&running.call))
                };
                self.running.values().any(is_its) && Node::same(change.before.as_ref(), after.get(&path))
            };
            if self.history.of(&path).iter().any(is_planted) {
                left.extend(before.get(&path).map(|node| (path.clone(), node.clone())));
            }
        }
        left
    }

    /// What was quarantined can be looked at, byte for byte.
    pub(super) fn check_quarantine(&self, call: &str, quarantined: &[QuarantinedNode]) -> Result<(), Violation> {
        // Git's own files hold times and inodes, which the twin has others of.
        for one in quarantined.iter().filter(|one| !is_git_bookkeeping(&one.path)) {
            let Some(Kind::File(content)) = one.wanted.as_ref().map(|node| &node.kind) else { continue };
            let shown = self.world.run(&["quarantine", "show", call, "--", &one.written]);
            let is_same = tree::Content::of(&shown.stdout) == *content;
            let said = crate::world::said(&shown);
            hold!(is_same, NothingIsLost, "What is named as quarantined isn't there: {:?} of {call}; {said}", one.path);
        }
        Ok(())
    }

    /// Whether the quarantine of a call has this, byte for byte.
    pub(super) fn is_quarantined(&self, call: &str, path: &TreePath, node: Option<&Node>) -> bool {
        let Some(Kind::File(content)) = node.map(|node| &node.kind) else { return node.is_some() };
        let shown = self.world.run(&["quarantine", "show", call, "--", &path.spellings()[0]]);
        tree::Content::of(&shown.stdout) == *content
    }

    /// Keeps what later operations need of a call.
    pub(super) fn remember(
        &mut self,
        id: u32,
        by: Actor,
        reply: &Reply,
        changed: &TreeDiff,
        quarantined: Vec<QuarantinedNode>,
    ) {
        self.history.add(Some(&reply.call), changed, false);
        let (call, run) = (reply.call.clone(), self.run_of(by));
        self.calls.insert(id, CallFacts { call, run, quarantined, rehearsal: None });
    }

    pub(super) fn rehearse(&mut self, id: u32, by: Actor, mutations: &[Mutation]) -> Result<(), Violation> {
        let Some(wanted) = self.wanted(mutations, How::Layer) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let mut args = shell_args(How::Layer, mutations);
        args["rehearse"] = json!(true);
        let reply = self.call(by, "shell", args)?;
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        hold!(changed.is_empty(), NothingElseChanged, "A rehearsal changed something: {changed:?}; {}", reply.raw);
        if let Some(handle) = reply.payload["changes"]["rehearsal"].as_str() {
            self.remember(id, by, &reply, &changed, vec![]);
            let facts = self.calls.get_mut(&id).expect("it was just remembered");
            facts.rehearsal = Some((handle.to_owned(), wanted));
            self.count("rehearse");
        }
        Ok(())
    }

    /// A commit makes exactly the rehearsed change, or nothing.
    pub(super) fn commit(&mut self, id: u32, by: Actor, of: u32) -> Result<(), Violation> {
        let Some((handle, wanted)) = self.calls.get(&of).and_then(|facts| facts.rehearsal.clone()) else {
            self.tally.idle += 1;
            return Ok(());
        };
        let start = self.world.twin.moment();
        let reply = match server_index(by) {
            Some(_) => self.call(by, "commit", json!({ "rehearsal": handle }))?,
            None => self.world.reply(&["commit", &handle]),
        };
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        if !reply.is_ok() {
            hold!(
                changed.is_empty(),
                NothingElseChanged,
                "A refused commit changed something: {changed:?}; {}",
                reply.raw
            );
            return Ok(());
        }
        self.calls.entry(of).and_modify(|facts| facts.rehearsal = None);
        let touched = tree::touched_directories(&before, &after, start);
        let said = Settled {
            count: changed.len() + touched.len(),
            is_cut: true,
            quarantined: crate::reply::pairs(&reply.payload["kept_aside"]),
            ..Default::default()
        };
        let quarantined = check_settled(&reply, &said, &before, &after, &wanted, &touched)?;
        let names = Names::of(before.keys().chain(after.keys()));
        let named = names.find_all(&texts(&reply.payload["committed"]));
        let is_named = changed.keys().chain(&touched).all(|path| named.contains(path))
            && named.len() == changed.len() + touched.len();
        hold!(is_named, ReplyIsTrue, "A commit doesn't name what changed: {changed:?}; {}", reply.raw);
        self.remember(id, by, &reply, &changed, quarantined);
        // The program commits in the run that made the rehearsal, so that the run's undo covers it.
        let run = self.calls.get(&of).and_then(|facts| facts.run);
        self.calls.entry(id).and_modify(|facts| facts.run = facts.run.or(run));
        self.count("commit");
        Ok(())
    }
}

/// The arguments of a command that its call waits for.
pub(super) fn shell_args(how: How, mutations: &[Mutation]) -> Value {
    json!({
        "command": script(mutations), "yield_ms": PATIENCE_MS, "timeout_seconds": PATIENCE_SECONDS,
        "stdin": how == How::Input, "tty": how == How::Terminal,
    })
}
