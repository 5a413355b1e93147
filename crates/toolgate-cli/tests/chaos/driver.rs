//! Carries out operations one after the other, keeps the model of the workspace, and checks after each step that reply,
//! model and disk agree.

mod calls;
mod cancels;
mod processes;
mod restarts;
mod undos;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::checks::QuarantinedNode;
use crate::history::History;
use crate::hold;
use crate::leftovers;
use crate::operation::{Act, Actor, How, Operation};
use crate::server::Server;
use crate::setting::Setting;
use crate::tree::{self, Kind, Node, Tree, TreeDiff};
use crate::violation::Violation;
use crate::world::World;

/// A run of operations in a world.
pub(crate) struct Driver {
    world: World,
    servers: [Option<Server>; 2],
    /// How often each server was started: each start has a run of its own.
    starts: [u32; 2],
    /// What the workspace holds.
    tree: Tree,
    history: History,
    /// What calls of operations left for later ones, by number.
    calls: BTreeMap<u32, CallFacts>,
    /// Commands that go on, by the number of the operation that began them.
    running: BTreeMap<u32, RunningCommand>,
    pub(crate) tally: Tally,
    /// Whether what each operation changed is printed.
    pub(crate) is_traced: bool,
}

/// What a call left.
#[derive(Debug, Default)]
struct CallFacts {
    call: String,
    /// Which server, and which start of it.
    run: Option<(usize, u32)>,
    quarantined: Vec<QuarantinedNode>,
    /// The handle of a rehearsal, and what it would change.
    rehearsal: Option<(String, TreeDiff)>,
}

/// A command that goes on after its call.
struct RunningCommand {
    server: usize,
    process: String,
    call: String,
    how: How,
    /// What it changes when it ends; empty if it works in place.
    wanted: TreeDiff,
    is_in_place: bool,
    begun: Instant,
}

impl RunningCommand {
    /// Its call, and what it changes when it ends.
    fn result(&self) -> (String, TreeDiff) {
        (self.call.clone(), self.wanted.clone())
    }
}

/// How much was tried, and how much of it succeeded: a run in which everything is refused shows nothing.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) done: BTreeMap<&'static str, usize>,
    pub(crate) refused: BTreeMap<String, usize>,
    /// Operations whose partner wasn't there.
    pub(crate) idle: usize,
}

impl Tally {
    /// Adds another run's numbers.
    pub(crate) fn add(&mut self, other: &Self) {
        other.done.iter().for_each(|(what, count)| *self.done.entry(what).or_default() += count);
        other.refused.iter().for_each(|(what, count)| *self.refused.entry(what.clone()).or_default() += count);
        self.idle += other.idle;
    }
}

impl Driver {
    pub(crate) fn new(setting: Setting) -> Self {
        let world = World::new(setting);
        let tree = tree::scan(&world.workspace);
        let (servers, starts) = ([None, None], [0, 0]);
        let (history, calls, running) = (History::default(), BTreeMap::new(), BTreeMap::new());
        Self { world, servers, starts, tree, history, calls, running, tally: Tally::default(), is_traced: false }
    }

    /// All operations and the checks at the end; the first violation ends it.
    pub(crate) fn run(&mut self, operations: &[Operation]) -> Result<(), Violation> {
        for operation in operations {
            let before = self.is_traced.then(|| self.tree.clone());
            let done = crate::watchdog::step(|| self.end_old());
            let done = done.and_then(|()| crate::watchdog::step(|| self.step(operation)));
            if let Some(before) = before {
                println!("{:3} {:?}: {:?}", operation.id, operation.by, tree::diff(&before, &self.tree));
            }
            done.map_err(|violation| Violation { operation: Some(operation.id), ..violation })?;
        }
        crate::watchdog::step(|| self.finish())
    }

    /// Keeps the workspace, to look at what the operations left.
    pub(crate) fn keep(&mut self) {
        self.world.is_kept = true;
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Violation> {
        self.expect_quiet()?;
        let (id, by) = (operation.id, operation.by);
        match &operation.act {
            Act::Script(script) => self.script(script),
            Act::Shell(how, script) => self.shell(id, by, *how, script),
            Act::Begin(how, script) => self.begin(id, by, *how, script),
            Act::Feed(of, script) => self.feed(*of, script),
            Act::End(of, is_stop) => self.end(*of, *is_stop),
            Act::Rehearse(script) => self.rehearse(id, by, script),
            Act::Commit(of) => self.commit(id, by, *of),
            Act::Undo(of) => self.undo(id, by, *of),
            Act::UndoLast => self.undo_last(id),
            Act::UndoRun(of) => self.undo_run(id, by, *of),
            Act::Release(of, which, is_forced) => self.release(id, *of, *which, *is_forced),
            Act::Restart => self.restart(by, false),
            Act::Kill => self.restart(by, true),
            Act::CancelDuring(act, after) => self.cancel_during(id, by, act, *after),
            Act::KillDuring(act, after) => self.kill_during(id, by, act, *after),
            act => self.tool(id, by, act),
        }
    }

    /// Between two operations nobody changes anything.
    fn expect_quiet(&mut self) -> Result<(), Violation> {
        let before = std::mem::replace(&mut self.tree, tree::scan(&self.world.workspace));
        let changed = tree::diff(&before, &self.tree);
        hold!(changed.is_empty(), NothingElseChanged, "Something changed while nobody did anything: {changed:?}");
        let is_decoy = |node: &Node| matches!(&node.kind, Kind::File(content) if content.is_decoy());
        let decoy = self.tree.iter().find(|(_, node)| is_decoy(node));
        hold!(decoy.is_none(), NothingElseChanged, "A decoy has become a file: {decoy:?}");
        Ok(())
    }

    /// Looks at the disk, and gives what it was before and is now.
    fn look(&mut self) -> (Tree, Tree) {
        let before = std::mem::replace(&mut self.tree, tree::scan(&self.world.workspace));
        (before, self.tree.clone())
    }

    /// The server, started if it isn't running.
    fn server(&mut self, index: usize) -> &mut Server {
        if self.servers[index].is_none() {
            self.starts[index] += 1;
            let name = format!("errors-{index}-{}", self.starts[index]);
            self.servers[index] = Some(Server::start(&self.world, &name));
        }
        self.servers[index].as_mut().expect("it was just started")
    }

    fn run_of(&self, by: Actor) -> Option<(usize, u32)> {
        server_index(by).map(|index| (index, self.starts[index]))
    }

    /// Ends everything, and looks for what is left.
    fn finish(&mut self) -> Result<(), Violation> {
        let running: Vec<u32> = self.running.keys().copied().collect();
        running.into_iter().try_for_each(|of| self.end(of, false))?;
        for server in self.servers.iter_mut().filter_map(Option::take) {
            let processes = leftovers::descendants(server.process());
            let code = server.end();
            hold!(code == 0, ProgramAnswers, "A server ends with {code}");
            leftovers::wait_for_end(&processes);
        }
        self.expect_quiet()?;
        // A killed command's layer is removed by the next one.
        self.world.reply(&["call", "shell", r#"{"command":"true"}"#]);
        leftovers::check_repositories(&self.world, &self.tree)?;
        leftovers::check_audit(&self.world)?;
        let rehearsals = self.calls.values().filter_map(|facts| Some(facts.rehearsal.as_ref()?.0.clone())).collect();
        leftovers::check(&self.world, &self.tree, &rehearsals)
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.done.entry(what).or_default() += 1;
    }
}

/// Which server; none if it is somebody else.
fn server_index(by: Actor) -> Option<usize> {
    match by {
        Actor::ServerA => Some(0),
        Actor::ServerB => Some(1),
        Actor::Program | Actor::Person => None,
    }
}
