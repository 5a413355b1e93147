//! Everything that a sequence can consist of, in three tables: names, mutations and operations. A class whose fault is
//! known and not fixed yet is switched off here, with the reason; it can be tried all the same with `--all`.

use crate::mutation::Mutation;
use crate::operation::{Act, Actor, How, Operation};
use crate::random::Random;
use crate::tree_path::TreePath;

/// One class of things, how often it is chosen, and why it isn't at present.
struct Class<T: 'static> {
    name: &'static str,
    weight: usize,
    off: Option<&'static str>,
    make: T,
}

const fn class<T>(name: &'static str, weight: usize, make: T) -> Class<T> {
    Class { name, weight, off: None, make }
}

type MakeMutation = fn(&mut Maker) -> Mutation;
type MakeOperation = fn(&mut Maker) -> (Actor, Act);

/// Names of files and directories, by what is special about them.
const NAMES: &[Class<&[&str]>] = &[
    class("plain", 60, &["a", "b", "dir", "dir/a", "dir/b", "dir/sub", "dir/sub/c", "empty", "e/f/g", "x"]),
    class("odd", 12, &["with space", "dir/new\\x0aline", "-dash", "\\xc3\\xbcnicode", "dir/quo'te\"", "back\\\\slash"]),
    class("not UTF-8", 6, &["\\xff\\xfe", "dir/\\xffa", "\\xffdir/x"]),
    class("repositories", 14, &["repo", "repo/f", "repo/inner", "repo/inner/g"]),
    class("autoloaded", 6, &[".envrc", "dir/.vscode/tasks.json", ".mcp.json", "repo/.git/hooks/post-checkout"]),
];

/// What scripts do.
const MUTATIONS: &[Class<MakeMutation>] = &[
    class("write", 30, |maker| Mutation::Write(maker.path(), maker.word(), maker.size())),
    class("append", 10, |maker| Mutation::Append(maker.path(), maker.word())),
    class("make a directory", 8, |maker| Mutation::MakeDirectory(maker.path())),
    class("remove", 14, |maker| Mutation::Remove(maker.path())),
    class("remove a directory", 3, |maker| Mutation::RemoveDirectory(maker.path())),
    class("move", 10, |maker| maker.two_paths(Mutation::Move)),
    class("copy", 4, |maker| maker.two_paths(Mutation::Copy)),
    class("chmod", 6, |maker| Mutation::Chmod(maker.one_of(&["600", "755", "444", "640"]), maker.path())),
    class("close", 4, |maker| Mutation::Chmod(maker.one_of(&["000", "a-w", "111", "555"]), maker.path())),
    class("setuid", 1, |maker| Mutation::Chmod("u+s".into(), maker.path())),
    class("link", 5, |maker| Mutation::Link(maker.path(), maker.path())),
    class("hard link", 3, |maker| Mutation::HardLink(maker.path(), maker.path())),
    class("touch", 3, |maker| Mutation::Touch(maker.path())),
    class("sparse", 1, |maker| Mutation::Sparse(maker.path(), 40)),
    class("pipe", 2, |maker| Mutation::Pipe(maker.path())),
    class("long path", 1, |maker| Mutation::Deep(maker.path(), 22, 200)),
    class("deep directories", 1, |maker| Mutation::Deep(maker.path(), 60, 1)),
    class("many", 1, |maker| Mutation::Many(maker.path(), 250)),
    class("git init", 4, |maker| Mutation::GitInit(maker.repository())),
    class("git commit", 6, |maker| Mutation::GitCommit(maker.repository(), maker.word())),
    class("git commit -a", 3, |maker| Mutation::GitCommitAll(maker.repository(), maker.word())),
    class("git checkout -B", 2, |maker| Mutation::GitBranch(maker.repository(), maker.word())),
    class("git reset", 2, |maker| Mutation::GitReset(maker.repository())),
    class("git gc", 1, |maker| Mutation::GitCollectGarbage(maker.repository())),
    class("look", 2, |maker| Mutation::Look(maker.path())),
];

/// What those who work in the workspace do.
const OPERATIONS: &[Class<MakeOperation>] = &[
    class("a person's script", 16, |maker| (Actor::Person, Act::Script(maker.script(3)))),
    class("read", 3, |maker| (maker.caller(), Act::Read(maker.path()))),
    class("search", 3, |maker| {
        (maker.caller(), Act::Search(maker.one_of(&["list", "find", "grep"]), maker.one_of(&["a", "w1", "c"])))
    }),
    class("a person's secrets", 2, |maker| {
        (Actor::Person, Act::Script(vec![Mutation::Write(".env".into(), maker.word(), 2)]))
    }),
    class("look at secrets", 2, |maker| (maker.caller(), Act::Shell(How::Layer, vec![Mutation::Look(".env".into())]))),
    class("write", 8, |maker| (maker.caller(), Act::Write(maker.path(), maker.word(), maker.size()))),
    class("append", 3, |maker| (maker.caller(), Act::Append(maker.path(), maker.word()))),
    class("edit", 5, |maker| (maker.caller(), Act::Edit(maker.path(), maker.word()))),
    class("patch", 3, |maker| (maker.caller(), Act::Patch(maker.path(), maker.word(), maker.path()))),
    class("delete", 5, |maker| (maker.caller(), Act::Delete(maker.path(), maker.random.percent(70)))),
    class("move", 4, |maker| (maker.caller(), Act::Move(maker.path(), maker.path(), maker.random.percent(50)))),
    class("command", 22, |maker| (maker.caller(), Act::Shell(How::Layer, maker.script(4)))),
    class("command with input", 4, |maker| (maker.caller(), Act::Shell(How::Input, maker.script(3)))),
    class("command on a terminal", 3, |maker| (maker.caller(), Act::Shell(How::Terminal, maker.script(3)))),
    class("begin on an overlay", 4, |maker| (maker.server(), Act::Begin(How::Layer, maker.script(3)))),
    class("begin in place", 4, |maker| (maker.server(), Act::Begin(How::Input, maker.script(2)))),
    class("begin on a terminal", 2, |maker| (maker.server(), Act::Begin(How::Terminal, maker.script(2)))),
    class("feed", 10, |maker| (Actor::ServerA, Act::Feed(maker.begun(), maker.script(2)))),
    class("end", 9, |maker| (Actor::ServerA, Act::End(maker.begun(), maker.random.percent(30)))),
    class("rehearse", 4, |maker| (maker.server(), Act::Rehearse(maker.script(3)))),
    class("commit", 4, |maker| (maker.server_or_program(), Act::Commit(maker.rehearsed()))),
    class("undo", 16, |maker| (maker.caller(), Act::Undo(maker.changing()))),
    class("undo last", 3, |_| (Actor::Program, Act::UndoLast)),
    class("undo a run", 2, |maker| (maker.caller(), Act::UndoRun(maker.changing()))),
    class("release", 4, |maker| {
        (Actor::Program, Act::Release(maker.changing(), maker.random.below(4), maker.random.percent(30)))
    }),
    class("restart", 2, |maker| (maker.server(), Act::Restart)),
    class("kill", 2, |maker| (maker.server(), Act::Kill)),
    class("cancel a command", 3, |maker| (maker.server(), maker.cancel_during())),
    class("kill during a call", 5, |maker| (maker.server(), maker.kill_during())),
];

/// Several commands that work in place at the same time.
const SIDE_BY_SIDE: Class<()> = class("commands in place side by side", 1, ());

/// Makes a sequence of operations.
pub(crate) struct Maker {
    random: Random,
    choice: Choice,
    made: Vec<Operation>,
    /// Only names that nothing loads automatically.
    is_tame: bool,
}

/// Which classes are used.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Choice {
    /// Also what is switched off.
    pub(crate) has_all: bool,
    /// Whether commands have no overlays, so that all of them work in place.
    pub(crate) is_in_place: bool,
    /// Names of classes that are left out this time.
    pub(crate) without: Vec<String>,
}

/// A sequence of so many operations that follows from the seed. It begins with some files to work on.
pub(crate) fn sequence(seed: u64, length: u32, choice: &Choice) -> Vec<Operation> {
    let mut maker = Maker { random: Random::new(seed), choice: choice.clone(), made: vec![], is_tame: false };
    let files = ["a", "b", "dir/a", "dir/sub/c", "x", "repo/f"].map(|name| {
        let words = [maker.word(), maker.word()];
        [Mutation::Write(name.into(), words[0].clone(), 1), Mutation::Append(name.into(), words[1].clone())]
    });
    maker.made.push(Operation { id: 0, by: Actor::Person, act: Act::Script(files.concat()) });
    for id in 1..length {
        let (by, act) = loop {
            let (by, act) = maker.choose(OPERATIONS)(&mut maker);
            if act.refers_to() != Some(id) && !maker.is_switched_off(&act) {
                break (by, act);
            }
        };
        maker.made.push(Operation { id, by, act });
    }
    maker.made
}

/// What is switched off, and why.
pub(crate) fn switched_off() -> Vec<(&'static str, &'static str)> {
    fn off<T>(classes: &'static [Class<T>]) -> impl Iterator<Item = (&'static str, &'static str)> {
        classes.iter().filter_map(|class| Some((class.name, class.off?)))
    }
    off(NAMES).chain(off(MUTATIONS)).chain(off(OPERATIONS)).chain(off(&[SIDE_BY_SIDE])).collect()
}

impl Choice {
    fn has<T>(&self, class: &Class<T>) -> bool {
        (class.off.is_none() || self.has_all) && !self.without.iter().any(|name| name == class.name)
    }
}

impl Maker {
    /// Whether an operation would begin a command in place beside another one, where that isn't tried.
    fn is_switched_off(&self, act: &Act) -> bool {
        let in_place = |act: &Act| match act {
            Act::Shell(how, _) | Act::Begin(how, _) => *how != How::Layer || self.choice.is_in_place,
            _ => false,
        };
        let is_new = match act {
            Act::KillDuring(act, _) | Act::CancelDuring(act, _) => in_place(act),
            act => in_place(act),
        };
        let has_ended = |id: u32| self.made.iter().any(|one| matches!(one.act, Act::End(of, _) if of == id));
        let is_running =
            |one: &Operation| matches!(one.act, Act::Begin(..)) && in_place(&one.act) && !has_ended(one.id);
        is_new && !self.choice.has(&SIDE_BY_SIDE) && self.made.iter().any(is_running)
    }

    fn choose<T: Copy>(&mut self, classes: &[Class<T>]) -> T {
        let weight = |class: &Class<T>| if self.choice.has(class) { class.weight } else { 0 };
        let weights: Vec<usize> = classes.iter().map(weight).collect();
        classes[self.random.weighted(&weights)].make
    }

    fn path(&mut self) -> TreePath {
        loop {
            let names = self.choose(NAMES);
            let name = *self.random.pick(names);
            if !(self.is_tame && (name.contains(".envrc") || name.contains(".json") || name.contains("hooks"))) {
                return name.parse().expect("the names of the table can be read");
            }
        }
    }

    /// Something from one path to another. Never into itself: whether `mv` then fails at once or copies first depends
    /// on the file system, and neither says anything about Toolgate.
    fn two_paths(&mut self, act: fn(TreePath, TreePath) -> Mutation) -> Mutation {
        loop {
            let (from, to) = (self.path(), self.path());
            if from != to && !to.is_in(&from) {
                return act(from, to);
            }
        }
    }

    fn repository(&mut self) -> TreePath {
        TreePath::from(*self.random.pick(&["repo", "repo/inner", "dir"]))
    }

    fn word(&mut self) -> String {
        format!("w{}", self.random.below(1000))
    }

    /// Lines of a file: mostly few, sometimes enough to fill a small quota.
    fn size(&mut self) -> u32 {
        [1, 1, 1, 2, 5, 2000, 6000][self.random.below(7)]
    }

    fn one_of(&mut self, words: &[&str]) -> String {
        (*self.random.pick(words)).to_owned()
    }

    fn script(&mut self, most: usize) -> Vec<Mutation> {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.choose(MUTATIONS)(self)).collect()
    }

    fn server(&mut self) -> Actor {
        if self.random.percent(70) { Actor::ServerA } else { Actor::ServerB }
    }

    fn caller(&mut self) -> Actor {
        if self.random.percent(12) { Actor::Program } else { self.server() }
    }

    fn server_or_program(&mut self) -> Actor {
        if self.random.percent(30) { Actor::Program } else { self.server() }
    }

    /// One of the last operations of a kind; its own number if there is none.
    fn earlier(&mut self, is_it: impl Fn(&Act) -> bool, last: usize) -> u32 {
        let found: Vec<u32> =
            self.made.iter().rev().filter(|one| is_it(&one.act)).take(last).map(|one| one.id).collect();
        if found.is_empty() { u32::try_from(self.made.len()).unwrap_or_default() } else { *self.random.pick(&found) }
    }

    fn begun(&mut self) -> u32 {
        self.earlier(|act| matches!(act, Act::Begin(..)), 3)
    }

    fn rehearsed(&mut self) -> u32 {
        self.earlier(|act| matches!(act, Act::Rehearse(_)), 2)
    }

    fn changing(&mut self) -> u32 {
        let last = if self.random.percent(60) { 3 } else { 40 };
        self.earlier(Act::is_undoable, last)
    }

    fn cancel_during(&mut self) -> Act {
        self.is_tame = true;
        let how = if self.random.percent(70) { How::Layer } else { How::Input };
        let act = Act::Shell(how, self.script(4));
        self.is_tame = false;
        Act::CancelDuring(Box::new(act), self.random.below(30_000) as u64)
    }

    fn kill_during(&mut self) -> Act {
        self.is_tame = true;
        let act = match self.random.below(6) {
            0 => Act::Write(self.path(), self.word(), self.size()),
            1 => Act::Delete(self.path(), true),
            2 => Act::Move(self.path(), self.path(), true),
            3 => Act::Shell(How::Input, self.script(2)),
            _ => Act::Shell(How::Layer, self.script(4)),
        };
        self.is_tame = false;
        let limit = [2_000, 20_000, 60_000, 200_000][self.random.below(4)];
        Act::KillDuring(Box::new(act), self.random.below(limit) as u64)
    }
}

#[test]
fn a_sequence_follows_from_its_seed_and_survives_being_printed() {
    let all = Choice { has_all: true, ..Choice::default() };
    let operations = sequence(7, 200, &all);
    let text = crate::operation::print(&operations);
    assert_eq!(crate::operation::parse(&text), Ok(operations.clone()));
    assert_eq!(sequence(7, 200, &all), operations);
    assert_ne!(sequence(8, 200, &all), operations);
}
