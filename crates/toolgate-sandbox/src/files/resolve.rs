//! Resolves a path as a model wrote it to a root and a relative path without `.` and `..`. Lexically: the disk isn't read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use toolgate_contract::{ErrorCode, ToolError, WorkspacePath, escape_path, unescape_path};

/// Finds the root and the relative path that `path` means, without reading the disk.
pub(crate) fn lexical(roots: &[&Path], path: &str) -> Result<WorkspacePath, ToolError> {
    if path.contains('\0') {
        return Err(ToolError::invalid_args("The path contains a NUL byte."));
    }
    if path == "~" || path.starts_with("~/") {
        return Err(outside(path, "`~` is not expanded and the home directory is outside"));
    }
    // As the kernel has it, so that one name has one text, however a caller escapes it.
    let path = &*escape_path(&unescape_path(path)).into_owned();
    let (root, relative) = if path.starts_with('/') { strip_root(roots, path)? } else { (0, path.to_owned()) };
    let mut names: Vec<&str> = Vec::new();
    for name in relative.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop().ok_or_else(|| outside(path, "`..` leads above the root"))?),
            name => names.push(name),
        }
    }
    Ok(WorkspacePath { root, path: names.join("/") })
}

/// An absolute path has to be inside a root, compared name by name: `/ws-evil` isn't inside `/ws`.
fn strip_root(roots: &[&Path], path: &str) -> Result<(usize, String), ToolError> {
    let clean = clean_absolute(path);
    let clean = unescape_path(&clean);
    let inside = roots.iter().enumerate().filter_map(|(index, root)| {
        let rest = Path::new(OsStr::from_bytes(&clean)).strip_prefix(root).ok()?;
        Some((root.as_os_str().len(), index, escape_path(rest.as_os_str().as_bytes()).into_owned()))
    });
    let deepest = inside.max_by_key(|(length, ..)| *length);
    deepest.map(|(_, index, rest)| (index, rest)).ok_or_else(|| outside(path, "it is inside no root"))
}

fn clean_absolute(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// The error for a path that leads outside of all roots.
pub(crate) fn outside(path: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::PathOutsideWorkspace, format!("`{path}` is outside the workspace: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_places_by_names_alone() {
        let roots = [Path::new("/ws"), Path::new("/ws/sub/other"), Path::new("/data")];
        let cases = [
            ("a/b.rs", Some((0, "a/b.rs"))),
            ("./a//b/../c/", Some((0, "a/c"))),
            ("", Some((0, ""))),
            (".", Some((0, ""))),
            ("/ws/a", Some((0, "a"))),
            ("/ws", Some((0, ""))),
            ("/ws/sub/other/x", Some((1, "x"))),
            ("/data/../ws/y", Some((0, "y"))),
            ("/data/y", Some((2, "y"))),
            ("with\nnewline", Some((0, "with\nnewline"))),
            (r"a\xFF/\xc3\xa9", Some((0, r"a\xff/é"))),
            (r"/ws/a\xff/b\x5cc", Some((0, r"a\xff/b\c"))),
            (r"a\x2f\x2e\x2e\x2fb", Some((0, r"a\x2f\x2e\x2e\x2fb"))),
            ("..", None),
            ("a/../../etc/passwd", None),
            ("/etc/passwd", None),
            ("/ws-evil/a", None),
            ("/ws/../etc", None),
            ("~/x", None),
            ("a\0b", None),
        ];
        for (path, expected) in cases {
            let found = lexical(&roots, path).ok();
            assert_eq!(found, expected.map(|(root, path)| WorkspacePath { root, path: path.into() }), "{path:?}");
        }
    }
}
