//! The checks of what a reply says against what is on the disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::hold;
use crate::mutation::Mutation;
use crate::reply::{Names, Reply, Settled};
use crate::tree::{Kind, Node, Tree, TreeDiff, diff};
use crate::tree_path::TreePath;
use crate::violation::Violation;

/// What a command had quarantined: the path as the reply writes it, and what it would have been.
#[derive(Debug, Clone)]
pub(crate) struct QuarantinedNode {
    pub(crate) path: TreePath,
    pub(crate) written: String,
    pub(crate) wanted: Option<Node>,
    /// Whether it is known what it would have been.
    pub(crate) is_known: bool,
}

/// Whether a file is git's own and holds times or inodes, so that two equal repositories differ in it.
pub(crate) fn is_git_bookkeeping(path: &TreePath) -> bool {
    let text = String::from_utf8_lossy(&path.0);
    text.split_once(".git/").is_some_and(|(_, rest)| {
        rest == "index" || rest.starts_with("objects/pack/") || rest.starts_with("objects/info/") || rest == "gc.log"
    })
}

/// Whether two states of a path count as equal.
pub(crate) fn equal(path: &TreePath, one: Option<&Node>, other: Option<&Node>) -> bool {
    Node::same(one, other) || is_git_bookkeeping(path) && one.is_some() == other.is_some()
}

/// Directories with a longer path are hidden from commands: what is in them can't be hidden by itself.
pub(crate) const LONGEST_PATH: usize = 3_500;

/// Whether commands see nothing of a directory: it can't be searched for what has to be hidden, because its mode keeps its
/// owner out or its path is too long.
fn is_hidden(path: &TreePath, node: &Node, is_root: bool) -> bool {
    node.is_directory() && (!is_root && node.mode & 0o500 != 0o500 || path.0.len() > LONGEST_PATH)
}

fn is_protected(path: &TreePath, node: &Node, is_in_place: bool, is_root: bool) -> bool {
    let is_configuration = is_in_place && path.0.ends_with(b".git/config");
    path.0.ends_with(b".git/hooks") || is_configuration || is_hidden(path, node, is_root)
}

/// Names of files that hold secrets.
const SECRETS: [&[u8]; 2] = [b".env", b".envrc"];

/// Files that hold secrets, their other names, and what links of such names lead to: a command sees a decoy there, which can't
/// be written. Policy refuses most commands that name such a file, but not those that it can't read.
fn secrets(before: &Tree) -> BTreeSet<TreePath> {
    let found = before.iter().filter(|(path, _)| SECRETS.contains(&path.name()));
    let named = found.flat_map(|(path, node)| {
        let target = match &node.kind {
            Kind::Link(target) => Some(path.parent().map_or(TreePath(target.clone()), |parent| parent.join(target))),
            _ => None,
        };
        [Some(path.clone()), target].into_iter().flatten()
    });
    let named: BTreeSet<TreePath> = named.collect();
    let first_name = |path: &TreePath| before.get(path)?.hard_link_to.clone();
    let first_names: BTreeSet<TreePath> =
        named.iter().map(|path| first_name(path).unwrap_or_else(|| path.clone())).collect();
    let is_other_name = |path: &&TreePath| first_name(path).is_some_and(|first| first_names.contains(&first));
    let others: BTreeSet<TreePath> = before.keys().filter(is_other_name).cloned().collect();
    named.into_iter().chain(first_names).chain(others).collect()
}

/// Whether a command meets what no sandbox lets it change: files that hold secrets, git's hooks and, in place, its
/// configuration, and directories that can't be searched for secrets. It is told so by the kernel and fails, so what it
/// would do without Toolgate says nothing.
pub(crate) fn meets_protected(before: &Tree, wanted: &TreeDiff, is_in_place: bool, is_root: bool) -> bool {
    let is_protected = |(path, node): &(&TreePath, &Node)| is_protected(path, node, is_in_place, is_root);
    let protected = before.iter().filter(is_protected).map(|(path, _)| path.clone());
    protected.chain(secrets(before)).any(|protected| {
        let meets = |path: &TreePath| *path == protected || protected.is_in(path) || path.is_in(&protected);
        wanted.keys().any(meets)
    })
}

/// Whether a script copies something of which commands see nothing, or a directory that holds such a thing: the copy is
/// another one. Git reads its whole worktree, and fails where it can't enter a directory; an empty one is no fault.
pub(crate) fn reads_hidden(before: &Tree, script: &[Mutation], is_root: bool) -> bool {
    let is_hidden = |(path, node): &(&TreePath, &Node)| is_hidden(path, node, is_root);
    let hidden = before.iter().filter(is_hidden).map(|(path, _)| path.clone());
    let hidden: Vec<TreePath> = hidden.chain(secrets(before)).collect();
    script
        .iter()
        .filter_map(Mutation::reads)
        .any(|read| hidden.iter().any(|path| path == read || path.is_in(read) || read.is_in(path)))
}

/// Whether a script links a file from one mount of the sandbox into another, which the kernel refuses: directories above what
/// is protected or hidden are mounts, so that nobody moves them away. A move between mounts is a copy and a removal, as between
/// two disks, and leaves half of it where a mode keeps `mv` out; a rename would have been refused as a whole.
pub(crate) fn crosses_mounts(before: &Tree, script: &[Mutation], is_in_place: bool, is_root: bool) -> bool {
    let is_protected = |(path, node): &(&TreePath, &Node)| is_protected(path, node, is_in_place, is_root);
    let protected = before.iter().filter(is_protected).map(|(path, _)| path.clone());
    let guarded: Vec<TreePath> = protected.chain(secrets(before)).collect();
    let mount_of = |path: &TreePath| {
        let mut above = path.parent();
        while let Some(directory) = above {
            if guarded.iter().any(|inner| inner.is_in(&directory)) {
                return Some(directory);
            }
            above = directory.parent();
        }
        None
    };
    let changes_modes = script.iter().any(|mutation| matches!(mutation, Mutation::Chmod(..)));
    let is_closed = |node: &Node| match node.is_directory() {
        true => node.mode & 0o700 != 0o700,
        false => node.mode & 0o400 == 0,
    };
    // Also the directory that it is in: where that can't be written, only the copy can be made.
    let has_closed = |moved: &TreePath| {
        let above = moved.parent();
        let is_concerned = |path: &TreePath| path == moved || path.is_in(moved) || above.as_ref() == Some(path);
        before.iter().any(|(path, node)| is_concerned(path) && is_closed(node))
    };
    let is_across = |mutation: &Mutation| match mutation {
        Mutation::HardLink(from, to) => mount_of(from) != mount_of(to),
        Mutation::Move(from, to) => (changes_modes || has_closed(from)) && mount_of(from) != mount_of(to),
        _ => false,
    };
    script.iter().any(is_across)
}

/// Whether a command on an overlay changes a file that has several names. overlayfs copies it under the one name that the
/// command writes to, so the other names keep the old content, as they do when a tool writes the file. What the command
/// would do without Toolgate, to all names at once, says nothing then.
pub(crate) fn meets_shared_file(before: &Tree, wanted: &TreeDiff) -> bool {
    let first_names: BTreeSet<&TreePath> = before.values().filter_map(|node| node.hard_link_to.as_ref()).collect();
    let is_shared = |path: &TreePath| {
        first_names.contains(path) || before.get(path).is_some_and(|node| node.hard_link_to.is_some())
    };
    wanted.iter().any(|(path, (_, after))| after.is_some() && is_shared(path))
}

/// Compares what a command did with what the reply says and with what it would have done without Toolgate. `touched` are
/// directories that only have another time, which settling staged changes keeps and names. Gives what was quarantined.
pub(crate) fn check_settled(
    reply: &Reply,
    settled: &Settled,
    before: &Tree,
    after: &Tree,
    wanted: &TreeDiff,
    touched: &BTreeSet<TreePath>,
) -> Result<Vec<QuarantinedNode>, Violation> {
    let changed = diff(before, after);
    let names = Names::of(before.keys().chain(after.keys()).chain(wanted.keys()));
    for (path, (_, now)) in &changed {
        let meant = wanted.get(path).map(|(_, meant)| meant.as_ref());
        hold!(
            meant.is_some_and(|meant| equal(path, meant, now.as_ref())) || is_made_again(path, &changed, wanted),
            NothingElseChanged,
            "A command changed what it didn't touch: {path:?} is {now:?}, was {:?}, meant {meant:?}; {}",
            before.get(path),
            reply.raw
        );
    }
    check_named(reply, settled, &changed, touched, &names)?;
    let mut quarantined = Vec::new();
    for (written, _) in &settled.quarantined {
        let path = names.find(written).cloned();
        let Some(path) = path else { continue };
        let is_known = wanted.contains_key(&path);
        let wanted = wanted.get(&path).and_then(|(_, meant)| meant.clone());
        let written = if written.contains("… [+") { path.spellings().remove(0) } else { written.clone() };
        quarantined.push(QuarantinedNode { path, written, wanted, is_known });
    }
    for (path, (found, meant)) in wanted {
        if equal(path, meant.as_ref(), after.get(path)) || settled.is_cut {
            continue;
        }
        // Somebody removed a directory while the command ran, which had only changed its mode: that is no reason to make
        // an empty directory again.
        let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_directory);
        if is_directory(found) && is_directory(meant) && !before.contains_key(path) {
            continue;
        }
        // A directory stays where something in it does.
        let is_covered = |one: &QuarantinedNode| {
            one.path == *path || path.is_in(&one.path) || meant.is_none() && one.path.is_in(path)
        };
        hold!(
            quarantined.iter().any(is_covered),
            NothingIsLost,
            "A command's work is gone: {path:?} should be {meant:?}, is {:?}, and isn't named as quarantined; {}",
            after.get(path),
            reply.raw
        );
    }
    Ok(quarantined)
}

/// Whether a directory that somebody removed while the command ran is made again for what the command wrote into it: its
/// work isn't lost, and the reply names the directory, too.
pub(crate) fn is_made_again(path: &TreePath, changed: &TreeDiff, wanted: &TreeDiff) -> bool {
    let is_made = matches!(changed.get(path), Some((None, Some(made))) if made.is_directory());
    let is_written =
        |(inner, (_, meant)): (&TreePath, &(Option<Node>, Option<Node>))| inner.is_in(path) && meant.is_some();
    is_made && wanted.iter().any(|one| is_written(one) && changed.contains_key(one.0))
}

/// Every change is named with the right sign, and nothing else is.
fn check_named(
    reply: &Reply,
    settled: &Settled,
    changed: &TreeDiff,
    touched: &BTreeSet<TreePath>,
    names: &Names<'_>,
) -> Result<(), Violation> {
    let said: BTreeMap<TreePath, char> =
        settled.paths.iter().filter_map(|(sign, written)| Some((names.find(written)?.clone(), *sign))).collect();
    // Of a file whose content wasn't kept nobody can tell whether a new name is all that it got.
    let is_beyond_quota = reply.raw.to_string().contains("content exceeds the quota for undo");
    let is_unkept = |(path, sign): &(&TreePath, &char)| {
        **sign == '~' && is_beyond_quota && !changed.contains_key(*path) && !touched.contains(*path)
    };
    let known = changed.len() + touched.len() + said.iter().filter(is_unkept).count();
    hold!(
        settled.count == known,
        ReplyIsTrue,
        "A reply counts other changes than there are: {} instead of {known}, {:?}; {}",
        settled.count,
        changed.keys().chain(touched).collect::<Vec<_>>(),
        reply.raw
    );
    for (path, sign) in said.iter().filter(|named| !is_unkept(named)) {
        let is = changed.get(path).map(sign_of).or(touched.contains(path).then_some('~'));
        hold!(
            is == Some(*sign),
            ReplyIsTrue,
            "A reply says {sign} of a path where it is {is:?}: {path:?}; {}",
            reply.raw
        );
    }
    let is_folded = |path: &TreePath| settled.folded.iter().any(|directory| directory.holds(path));
    let unsaid: BTreeSet<_> =
        changed.keys().chain(touched).filter(|path| !said.contains_key(*path) && !is_folded(path)).collect();
    hold!(
        unsaid.is_empty() || settled.is_cut,
        ReplyIsTrue,
        "A reply doesn't name what changed: {unsaid:?}; {}",
        reply.raw
    );
    Ok(())
}

fn sign_of((before, after): &(Option<Node>, Option<Node>)) -> char {
    match (before, after) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    }
}

/// Compares what a file tool did with its reply and, where it is known, with its meaning.
pub(crate) fn check_tool(
    reply: &Reply,
    before: &Tree,
    after: &Tree,
    meaning: Option<&TreeDiff>,
) -> Result<TreeDiff, Violation> {
    let changed = diff(before, after);
    if !reply.is_ok() {
        hold!(changed.is_empty(), NothingElseChanged, "A refused call changed something: {changed:?}; {}", reply.raw);
        return Ok(changed);
    }
    let names = Names::of(before.keys().chain(after.keys()));
    let said = names.find_all(&reply.files_changed);
    let is_folded = |path: &TreePath| reply.folded.iter().any(|directory| directory.holds(path));
    for path in changed.keys().filter(|path| !said.contains(*path) && !is_folded(path)) {
        hold!(
            reply.is_cut || is_implied(path, &said, before, after),
            ReplyIsTrue,
            "A tool's reply doesn't name what changed: {path:?} of {changed:?}; {}",
            reply.raw
        );
    }
    // `cp -a x y`, then `x` moved onto `y`: the file is another one, and nobody sees it.
    let is_replaced_by_equal = |path: &TreePath| {
        let is_equal = |was: &Option<Node>| Node::same(was.as_ref(), before.get(path));
        reply.payload["replaced"] == true && changed.values().any(|(was, now)| now.is_none() && is_equal(was))
    };
    for path in &said {
        hold!(
            changed.contains_key(path) || is_replaced_by_equal(path),
            ReplyIsTrue,
            "A tool's reply names what didn't change: {path:?}; {}",
            reply.raw
        );
    }
    if let Some(meaning) = meaning {
        let is_same = meaning.len() == changed.len()
            && meaning.iter().all(|(path, (_, meant))| Node::same(meant.as_ref(), after.get(path)));
        hold!(is_same, ReplyIsTrue, "A tool did something else: {changed:?} instead of {meaning:?}; {}", reply.raw);
    }
    Ok(changed)
}

/// Whether a directory came or went with what is named: it was made for a file in it, or everything in it is gone.
pub(crate) fn is_implied(path: &TreePath, named: &BTreeSet<TreePath>, before: &Tree, after: &Tree) -> bool {
    match (before.get(path), after.get(path)) {
        (None, Some(made)) => made.is_directory() && named.iter().any(|one| one.is_in(path)),
        (Some(gone), None) => gone.is_directory(),
        _ => false,
    }
}
