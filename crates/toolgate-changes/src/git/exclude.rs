//! `info/exclude`, the list of what git ignores in one repository, with hidden paths added for commands: git then neither lists
//! nor adds nor removes what a command sees in place of them.

use toolgate_contract::{Files, Substitute, WorkspacePath, unescape_path};

/// The largest list that is extended.
const MAX_BYTES: u64 = 1024 * 1024;

/// The list of a git directory, with these paths in it as well.
pub(super) fn exclude_file(git: &WorkspacePath, paths: &[String], files: &dyn Files) -> Option<Substitute> {
    let place = git.join("info").join("exclude");
    let own = files.content(&place, MAX_BYTES).ok()?;
    let patterns = paths.iter().flat_map(|path| [b"/", &as_pattern(&unescape_path(path))[..], b"\n"].concat());
    let added: Vec<u8> = b"\n# What is hidden from commands.\n".iter().copied().chain(patterns).collect();
    let (bytes, mode) = own.map_or((Vec::new(), None), |own| (own.bytes.to_vec(), own.mode));
    let content = [bytes, added.clone()].concat().into();
    Some(Substitute { place, content, mode: mode.unwrap_or(0o644), modified: None, added: Some(added.into()) })
}

/// A path as a pattern of `.gitignore` that matches it alone.
fn as_pattern(path: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| if b"\\*?[ #!".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    path.iter().flat_map(escape).collect()
}
