//! What a dialect remembers between the calls of one session. Most clients keep some state of their own: the folder of their
//! shell, numbers for what runs in the background. The front end's session owns it; nothing in here does I/O.

use std::borrow::Cow;
use std::collections::HashMap;

use toolgate_contract::file_uri_path;

/// The state of one session in one dialect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DialectMemory {
    /// The absolute path of the workspace.
    pub workspace: String,
    /// The id of the session.
    pub session: String,
    /// The directory that the next command starts in, relative to the workspace; empty for the workspace itself.
    pub directory: String,
    /// The content hash that the model saw last, by the path as it is shown natively.
    seen: HashMap<String, String>,
    /// The highest number of a task so far, in dialects that number them.
    pub last_task: u64,
    /// Our handles of processes, by the number that the model knows; the first has number 1.
    processes: Vec<String>,
}

impl DialectMemory {
    /// The memory of a new session in this workspace.
    pub fn new(workspace: impl Into<String>) -> Self {
        Self { workspace: workspace.into(), ..Self::default() }
    }

    /// A path as a client with absolute paths shows it.
    pub fn absolute(&self, path: &str) -> String {
        match path {
            _ if path.starts_with('/') => path.to_owned(),
            "" | "." => self.workspace.clone(),
            _ => format!("{}/{}", self.workspace.trim_end_matches('/'), path.trim_start_matches("./")),
        }
    }

    /// A path for a native call: one that isn't absolute is meant from the shell's directory.
    pub fn native(&self, path: &str) -> String {
        let path = &*match file_uri_path(path) {
            Some(named) => named.to_string_lossy().into_owned().into(),
            None => Cow::from(path),
        };
        match path.strip_prefix(self.workspace.as_str()) {
            Some("" | "/") if !self.workspace.is_empty() => ".".to_owned(),
            Some(inner) if inner.starts_with('/') => inner.trim_start_matches('/').to_owned(),
            _ if path.starts_with('/') || self.directory.is_empty() => path.to_owned(),
            _ => format!("{}/{path}", self.directory),
        }
    }

    /// The path of an optional argument for a native call: where it wasn't given, the shell's directory.
    pub fn native_or_here(&self, path: Option<&str>) -> String {
        match path.filter(|path| !path.is_empty()) {
            Some(path) => self.native(path),
            None if self.directory.is_empty() => ".".to_owned(),
            None => self.directory.clone(),
        }
    }

    /// Remembers which version of a file the model has seen.
    pub fn saw(&mut self, path: String, sha256: &str) {
        sha256.clone_into(self.seen.entry(path).or_default());
    }

    /// The version of a file that the model has seen last.
    pub fn seen(&self, path: &str) -> Option<&str> {
        self.seen.get(path).map(String::as_str)
    }

    /// The number of a process. A process keeps its number, and no number is given twice.
    pub fn number(&mut self, process: &str) -> usize {
        let known = self.processes.iter().position(|known| known == process);
        known.unwrap_or_else(|| {
            self.processes.push(process.to_owned());
            self.processes.len() - 1
        }) + 1
    }

    /// The process with this number, if this session has one.
    pub fn process(&self, number: i64) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.processes.get(index).map(String::as_str)
    }
}

/// A path in a directory, as it is named from there. Any other path stays as it is.
pub(crate) fn path_from<'a>(path: &'a str, directory: &str) -> &'a str {
    path.strip_prefix(directory).and_then(|inner| inner.strip_prefix('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_in_as_written_from_the_shells_directory() {
        let mut memory = DialectMemory::new("/srv/work");
        for (given, native) in [
            ("/srv/work/a.txt", "a.txt"),
            ("/srv/work", "."),
            ("/srv/work/", "."),
            ("file:///srv/work/a.txt", "a.txt"),
            ("file://localhost/srv/work/a%20b%2Fc.txt", "a b/c.txt"),
            ("file:///srv/work/../../etc/passwd", "../../etc/passwd"),
            ("file://elsewhere/a.txt", "file://elsewhere/a.txt"),
            ("/srv/works/a.txt", "/srv/works/a.txt"),
            ("/etc/passwd", "/etc/passwd"),
            ("a.txt", "a.txt"),
            ("~/a.txt", "~/a.txt"),
        ] {
            assert_eq!(memory.native(given), native, "{given}");
        }
        memory.directory = "src".into();
        assert_eq!(memory.native("a.txt"), "src/a.txt");
        assert_eq!(memory.native("/srv/work/a.txt"), "a.txt");
        assert_eq!((memory.absolute("src/a"), memory.absolute(".")), ("/srv/work/src/a".into(), "/srv/work".into()));
    }

    #[test]
    fn only_a_whole_directory_is_left_out_before_a_path() {
        for (path, directory, expected) in [
            ("src/a.rs", "src", "a.rs"),
            ("src", "src", "src"),
            ("srcs/a.rs", "src", "srcs/a.rs"),
            (".github/a", ".", ".github/a"),
            ("a.rs", ".", "a.rs"),
        ] {
            assert_eq!(path_from(path, directory), expected, "{path} from {directory}");
        }
    }

    #[test]
    fn numbers_are_given_once_and_are_this_sessions_own() {
        let mut memory = DialectMemory::default();
        assert_eq!((memory.number("proc_a"), memory.number("proc_b"), memory.number("proc_a")), (1, 2, 1));
        assert_eq!(
            (memory.process(2), memory.process(3), memory.process(0), memory.process(-1)),
            (Some("proc_b"), None, None, None)
        );
    }
}
