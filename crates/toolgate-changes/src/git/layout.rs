//! Tells which of many paths belong to which git repository, by the paths alone: a directory `.git`, or one that holds git
//! objects whatever its own name is.

use std::collections::BTreeSet;

use gix_hash::ObjectId;
use toolgate_contract::WorkspacePath;

/// The name of a repository's directory inside of its worktree.
const GIT_DIRECTORY: &str = ".git";
/// Where a repository keeps its objects.
const OBJECTS: &str = "objects";

/// The git directories among some paths.
pub(crate) struct GitLayout {
    directories: BTreeSet<WorkspacePath>,
}

impl GitLayout {
    /// The git directories that these paths are in. A repository inside of another's git directory, as that of a submodule,
    /// belongs to the outer one.
    pub(crate) fn of<'a>(places: impl Iterator<Item = &'a WorkspacePath>) -> Self {
        Self { directories: places.filter_map(git_directory).collect() }
    }

    /// The git directory that a path is, or is in.
    pub(crate) fn directory_of(&self, place: &WorkspacePath) -> Option<&WorkspacePath> {
        self.directories.iter().find(|directory| directory.covers(place))
    }
}

/// The repository whose object, or pack of objects, a path is.
pub(crate) fn repository_of_object(place: &WorkspacePath) -> Option<WorkspacePath> {
    object_parts(&place.path).map(|(path, _)| WorkspacePath { root: place.root, path })
}

/// The name of the object in a path such as `.git/objects/ab/cdef…`.
pub(crate) fn loose_object(place: &WorkspacePath) -> Option<ObjectId> {
    match object_parts(&place.path)?.1.as_slice() {
        [first, rest] => ObjectId::from_hex(format!("{first}{rest}").as_bytes()).ok(),
        _ => None,
    }
}

fn git_directory(place: &WorkspacePath) -> Option<WorkspacePath> {
    let parts: Vec<&str> = place.path.split('/').collect();
    let directory = match parts.iter().position(|part| *part == GIT_DIRECTORY) {
        Some(position) => parts[..=position].join("/"),
        None => object_parts(&place.path).filter(|(directory, names)| !directory.is_empty() && names.len() > 1)?.0,
    };
    Some(WorkspacePath { root: place.root, path: directory })
}

/// The directory whose objects a path is about, and the names below `objects`. None if the names aren't git's own.
fn object_parts(path: &str) -> Option<(String, Vec<&str>)> {
    let parts: Vec<&str> = path.split('/').collect();
    let position = parts.iter().rposition(|part| *part == OBJECTS)?;
    let names = parts[position + 1..].to_vec();
    let is_gits = match names.as_slice() {
        [] | ["pack"] => true,
        [first] => is_hex(first, 2),
        ["pack", name] => name.starts_with("pack-") || name.starts_with("multi-pack-index"),
        ["info", "commit-graph" | "packs"] | ["info", "commit-graphs", _] => true,
        [first, rest] => is_hex(first, 2) && (is_hex(rest, 38) || is_hex(rest, 62)),
        _ => false,
    };
    is_gits.then(|| (parts[..position].join("/"), names))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> WorkspacePath {
        WorkspacePath::in_workspace(path)
    }

    #[test]
    fn a_path_belongs_to_the_outermost_git_directory() {
        let rest = "0".repeat(38);
        let bare = format!("store/repo.git/objects/ab/{rest}");
        let paths = ["a.txt", "sub/.git/index", ".git/modules/x/refs/heads/main", bare.as_str()].map(place);
        let layout = GitLayout::of(paths.iter());
        let found = paths.each_ref().map(|path| layout.directory_of(path).map(|directory| directory.path.as_str()));
        assert_eq!(found, [None, Some("sub/.git"), Some(".git"), Some("store/repo.git")]);
        assert_eq!(layout.directory_of(&place("store/repo.git/HEAD")).unwrap().path, "store/repo.git");
        assert_eq!(layout.directory_of(&place(".gitignore")), None);
    }

    #[test]
    fn objects_are_known_by_their_names() {
        let rest = "0".repeat(38);
        for (path, is_object) in [
            (format!(".git/objects/ab/{rest}"), true),
            (".git/objects/ab".to_owned(), true),
            (".git/objects/pack/pack-1.idx".to_owned(), true),
            (".git/modules/x/objects/pack".to_owned(), true),
            (".git/objects/info/alternates".to_owned(), false),
            (".git/refs/heads/objects/x".to_owned(), false),
            (".git/index".to_owned(), false),
        ] {
            assert_eq!(repository_of_object(&place(&path)).is_some(), is_object, "{path}");
        }
        let object = loose_object(&place(&format!(".git/objects/ab/{rest}")));
        assert_eq!(object.map(|id| id.to_string()), Some(format!("ab{rest}")));
        assert_eq!(loose_object(&place(".git/objects/ab")), None);
    }
}
