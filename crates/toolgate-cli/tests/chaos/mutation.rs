//! What a script can do to files: each mutation is a few words of bash, the same for a command and for a person.

use serde::{Deserialize, Serialize};

use crate::tree_path::TreePath;

/// Something that bash does to the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mutation {
    /// A file of so many lines of this word; missing directories are made.
    Write(TreePath, String, u32),
    Append(TreePath, String),
    MakeDirectory(TreePath),
    /// `rm -rf`
    Remove(TreePath),
    RemoveDirectory(TreePath),
    Move(TreePath, TreePath),
    /// `cp -a`
    Copy(TreePath, TreePath),
    Chmod(String, TreePath),
    /// A symbolic link: where it leads, and where it is.
    Link(TreePath, TreePath),
    HardLink(TreePath, TreePath),
    Touch(TreePath),
    /// A file of so many megabytes without a byte in it.
    Sparse(TreePath, u32),
    Pipe(TreePath),
    /// Directories within each other, so many, with names of so many characters, and a file in the last one.
    Deep(TreePath, u32, u32),
    /// So many small files in a directory.
    Many(TreePath, u32),
    GitInit(TreePath),
    GitCommit(TreePath, String),
    /// Adds and commits only what git knows already.
    GitCommitAll(TreePath, String),
    GitBranch(TreePath, String),
    GitReset(TreePath),
    GitCollectGarbage(TreePath),
    /// The file's content, or a second of waiting: something that changes nothing.
    Look(TreePath),
}

/// Commits have the same hash wherever and whenever they are made. Git doesn't look at inodes and change times, which are
/// others in the twin: `reset --hard` would write files there that it leaves alone in the workspace.
const GIT: &str = "git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main -c gc.auto=0 \
                   -c maintenance.auto=false -c advice.detachedHead=false -c safe.directory='*' \
                   -c core.checkStat=minimal -c core.trustctime=false";
const DATES: &str = "GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'";

impl Mutation {
    /// The directory that it reads with everything in it.
    pub(crate) fn reads(&self) -> Option<&TreePath> {
        match self {
            Self::Copy(from, _) => Some(from),
            Self::GitCommit(repository, _) | Self::GitCommitAll(repository, _) | Self::GitBranch(repository, _) => {
                Some(repository)
            }
            Self::GitReset(repository) | Self::GitCollectGarbage(repository) => Some(repository),
            _ => None,
        }
    }

    /// The words of bash.
    pub(crate) fn script(&self) -> String {
        let in_parent = |path: &TreePath, act: String| match path.parent() {
            Some(parent) => format!("mkdir -p {} && {act}", parent.quoted()),
            None => act,
        };
        // Whoever opens a pipe waits for somebody at its other end.
        let unless_pipe = |path: &TreePath, act: String| format!("[ -p {p} ] || {{ {act}; }}", p = path.quoted());
        let git = |path: &TreePath, act: String| format!("{DATES} {GIT} -C {} {act}", path.quoted());
        match self {
            Self::Write(path, word, 1) => {
                unless_pipe(path, in_parent(path, format!("printf '{word}\\n' > {}", path.quoted())))
            }
            Self::Write(path, word, lines) => {
                unless_pipe(path, in_parent(path, format!("yes {word} | head -n {lines} > {}", path.quoted())))
            }
            Self::Append(path, word) => unless_pipe(path, format!("printf '{word}\\n' >> {}", path.quoted())),
            Self::MakeDirectory(path) => format!("mkdir -p {}", path.quoted()),
            Self::Remove(path) => format!("rm -rf {}", path.quoted()),
            Self::RemoveDirectory(path) => format!("rmdir {}", path.quoted()),
            // Without `-f` it asks on a terminal.
            Self::Move(from, to) => format!("mv -fT {} {}", from.quoted(), to.quoted()),
            // `cp` would open a pipe that is there, or in the directory that it copies into.
            Self::Copy(from, to) => format!(
                "[ -n \"$(find -L {to} -type p 2>/dev/null)\" ] || cp -aT {} {to}",
                from.quoted(),
                to = to.quoted()
            ),
            Self::Chmod(mode, path) => format!("chmod {mode} {}", path.quoted()),
            Self::Link(target, path) => format!("ln -sfT {} {}", target.quoted(), path.quoted()),
            Self::HardLink(from, to) => format!("ln -T {} {}", from.quoted(), to.quoted()),
            Self::Touch(path) => format!("touch -d 2001-02-03T04:05:06Z {}", path.quoted()),
            Self::Sparse(path, megabytes) => unless_pipe(path, format!("truncate -s {megabytes}M {}", path.quoted())),
            Self::Pipe(path) => format!("mkfifo {}", path.quoted()),
            Self::Deep(path, count, length) => format!(
                "(mkdir -p {p} && cd {p} || exit; n=$(printf %0{length}d 0); for i in $(seq {count}); do \
                 mkdir -p $n && cd $n || exit; done; echo deep > f)",
                p = path.quoted()
            ),
            Self::Many(path, count) => {
                format!("mkdir -p {p} && for i in $(seq {count}); do echo $i > {p}/$i; done", p = path.quoted())
            }
            // A repository whose HEAD is gone has a log, and gets a line in it.
            Self::GitInit(path) => format!("{DATES} {GIT} init -q {}", path.quoted()),
            Self::GitCommit(path, message) => {
                format!("{} && {}", git(path, "add -A".into()), git(path, format!("commit -qm {message}")))
            }
            Self::GitCommitAll(path, message) => git(path, format!("commit -qam {message}")),
            Self::GitBranch(path, name) => git(path, format!("checkout -q -B {name}")),
            Self::GitReset(path) => git(path, "reset -q --hard".into()),
            Self::GitCollectGarbage(path) => git(path, "gc -q --prune=now".into()),
            Self::Look(path) => unless_pipe(path, format!("head -c 100 {}", path.quoted())),
        }
    }
}

/// Several mutations, one after the other whatever becomes of them.
pub(crate) fn script(mutations: &[Mutation]) -> String {
    mutations.iter().map(Mutation::script).collect::<Vec<_>>().join("; ")
}
