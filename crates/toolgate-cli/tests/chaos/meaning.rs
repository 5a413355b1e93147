//! What the file tools mean, as changes of the model. Where links are on the way, the meaning isn't predicted: then
//! only what the reply says is compared with the disk.

use crate::operation::Act;
use crate::tree::{Kind, Node, Tree, TreeDiff, diff};
use crate::tree_path::TreePath;

/// What permissions new files and directories get.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// The bytes of a file of so many lines of a word.
pub(crate) fn lines(word: &str, count: u32) -> String {
    format!("{word}\n").repeat(count as usize)
}

/// What a call changes that is made at this moment, if it succeeds; none if that can't be told.
pub(crate) fn meaning(
    act: &Act,
    now: &Tree,
    moment: i128,
    read: &dyn Fn(&TreePath) -> Option<Vec<u8>>,
) -> Option<TreeDiff> {
    let mut then = now.clone();
    let put = |tree: &mut Tree, path: &TreePath, bytes: &[u8]| put(tree, path, bytes, moment);
    match act {
        Act::Read(_) | Act::Search(..) => {}
        Act::Write(path, word, count) => put(&mut then, path, lines(word, *count).as_bytes())?,
        Act::Append(path, word) => {
            let old = read(path).unwrap_or_default();
            put(&mut then, path, &[old, lines(word, 1).into_bytes()].concat())?;
        }
        Act::Edit(path, word) => put(&mut then, path, &with_first_line(&read(path)?, word)?)?,
        Act::Patch(path, word, new) => {
            put(&mut then, path, &with_first_line(&read(path)?, word)?)?;
            put(&mut then, new, lines(word, 1).as_bytes())?;
        }
        Act::Delete(path, _) => {
            has_no_link_above(&then, path)?;
            then.retain(|other, _| other != path && !other.is_in(path));
        }
        Act::Move(from, to, _) => {
            has_no_link_above(&then, from)?;
            let moved = then.get(from)?.clone();
            let bytes = match &moved.kind {
                Kind::Link(_) => None,
                _ => Some(read(from)?),
            };
            if then.get(to).is_some_and(|there| matches!(there.kind, Kind::Link(_))) {
                return None;
            }
            put(&mut then, to, &bytes.unwrap_or_default())?;
            then.insert(to.clone(), moved);
            then.remove(from);
        }
        _ => return None,
    }
    Some(diff(now, &then))
}

/// The bytes with another first line; none if there is no line that occurs once.
pub(crate) fn with_first_line(bytes: &[u8], word: &str) -> Option<Vec<u8>> {
    let first = first_line(bytes)?;
    Some([word.as_bytes(), &bytes[first.len()..]].concat())
}

/// The first line, if it is text and occurs once.
pub(crate) fn first_line(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let first = text.lines().next().filter(|line| !line.is_empty())?;
    (text.matches(first).count() == 1).then_some(first)
}

/// Puts a file there, with the directories above it.
fn put(tree: &mut Tree, path: &TreePath, bytes: &[u8], moment: i128) -> Option<()> {
    has_no_link_above(tree, path)?;
    let mode = match tree.get(path) {
        None => FILE_MODE,
        Some(Node { kind: Kind::File(_), mode, .. }) => *mode,
        Some(_) => return None,
    };
    let mut above = path.parent();
    while let Some(directory) = above {
        above = directory.parent();
        tree.entry(directory).or_insert(Node::directory(DIRECTORY_MODE));
    }
    let made = Node::file(bytes, mode, moment);
    // What a file holds already isn't written again.
    if !Node::same_content(tree.get(path), Some(&made)) {
        tree.insert(path.clone(), made);
    }
    Some(())
}

fn has_no_link_above(tree: &Tree, path: &TreePath) -> Option<()> {
    let mut above = path.parent();
    while let Some(directory) = above {
        if tree.get(&directory).is_some_and(|node| !node.is_directory()) {
            return None;
        }
        above = directory.parent();
    }
    Some(())
}
