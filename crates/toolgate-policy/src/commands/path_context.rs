//! The directories that `~`, `.` and absolute paths in a command refer to. Everything here works on names only; the
//! sandbox resolves links.

use toolgate_contract::WorkspacePath;

/// The root index of a path outside all roots.
pub(crate) const OUTSIDE: usize = usize::MAX;

/// Directories by name: absolute, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathContext {
    /// The workspace, then the other roots in their order.
    roots: Vec<String>,
    home: String,
}

impl Default for PathContext {
    /// Made-up directories, for judging without a workspace.
    fn default() -> Self {
        Self::new(["/workspace"], "/home/user")
    }
}

impl PathContext {
    /// The workspace and the other roots, and the home directory of the user who runs the command.
    pub fn new<Root: AsRef<str>>(roots: impl IntoIterator<Item = Root>, home: &str) -> Self {
        let roots = roots.into_iter().map(|root| tidy(root.as_ref())).collect();
        Self { roots, home: tidy(home) }
    }

    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    pub(crate) fn workspace(&self) -> &str {
        self.roots.first().map_or("/", String::as_str)
    }

    /// The absolute path of `path` in `directory`, which is absolute itself.
    pub(crate) fn resolve(directory: &str, path: &str) -> String {
        let joined = Self::written(directory, path);
        through_proc(&joined, directory).unwrap_or(joined)
    }

    /// The absolute path of `path` in `directory`, with the links of `/proc` kept as written.
    pub(crate) fn written(directory: &str, path: &str) -> String {
        if path.starts_with('/') { tidy(path) } else { tidy(&format!("{directory}/{path}")) }
    }

    /// The root that an absolute path is in, and the path relative to it.
    pub(crate) fn place(&self, absolute: &str) -> WorkspacePath {
        let beneath = |(root, directory): (usize, &String)| {
            below(directory, absolute).map(|path| WorkspacePath { root, path: path.to_owned() })
        };
        let outside = || WorkspacePath { root: OUTSIDE, path: absolute.trim_start_matches('/').to_owned() };
        self.roots.iter().enumerate().find_map(beneath).unwrap_or_else(outside)
    }

    /// The path as a person would write it: relative in the workspace, otherwise absolute.
    pub(crate) fn shown(&self, absolute: &str) -> String {
        match below(self.workspace(), absolute) {
            Some("") => ".".to_owned(),
            Some(path) => path.to_owned(),
            None => absolute.to_owned(),
        }
    }

    /// Whether losing this directory and its content would be disastrous: the system's directories, home, a root, and
    /// every parent of one of them.
    pub(crate) fn is_vital(&self, absolute: &str) -> bool {
        self.roots.iter().any(|root| root == absolute) || self.is_vital_to_change(absolute)
    }

    /// Whether changing everything in this directory would be disastrous: a vital directory, and not merely a root, whose
    /// content is there to be changed.
    pub(crate) fn is_vital_to_change(&self, absolute: &str) -> bool {
        let holds = |directory: &String| below(absolute, directory).is_some();
        let is_home = self.home == absolute || holds(&self.home);
        is_home
            || self.roots.iter().any(|root| root != absolute && holds(root))
            || absolute.bytes().filter(|byte| *byte == b'/').count() == 1 && !is_scratch(absolute)
            || VITAL.contains(&absolute)
    }
}

/// Directories below the top that a system can't do without.
const VITAL: &[&str] = &[
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/sbin",
    "/usr/local",
    "/usr/share",
    "/var/lib",
    "/var/log",
    "/etc/ssh",
    "/usr/local/bin",
    "/var/lib/dpkg",
    "/boot/efi",
    "/usr/include",
    "/var/spool",
];

/// A top-level directory whose content is expendable.
fn is_scratch(absolute: &str) -> bool {
    absolute == "/tmp"
}

/// The part of `path` below `directory`, if it is below.
fn below<'a>(directory: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// Removes `.`, `..` and doubled slashes.
fn tidy(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Resolves `/proc/self/root/x` to `/x`, and `/proc/self/cwd/x` to `x` in `directory`.
fn through_proc(absolute: &str, directory: &str) -> Option<String> {
    let rest = absolute.strip_prefix("/proc/")?;
    let (process, rest) = rest.split_once('/')?;
    if !matches!(process, "self" | "thread-self") && !process.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest = match rest.strip_prefix("task/") {
        Some(threads) => threads.split_once('/')?.1,
        None => rest,
    };
    let (link, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match link {
        "root" => Some(PathContext::resolve("/", rest)),
        "cwd" => Some(PathContext::resolve(directory, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_by_name() {
        for (directory, path, expected) in [
            ("/w", "a", "/w/a"),
            ("/w", "./a/../b", "/w/b"),
            ("/w", "../../..", "/"),
            ("/w", "/etc//./passwd", "/etc/passwd"),
            ("/w", "/proc/self/root/etc/shadow", "/etc/shadow"),
            ("/w", "/proc/42/cwd/a", "/w/a"),
            ("/w", "/proc/self/task/7/root/etc", "/etc"),
            ("/w", "/proc/cpuinfo", "/proc/cpuinfo"),
            ("/w", "/proc/self/root/proc/self/root/x", "/x"),
        ] {
            assert_eq!(PathContext::resolve(directory, path), expected, "{path}");
        }
    }

    #[test]
    fn a_place_is_in_the_first_root_that_holds_it() {
        let paths = PathContext::new(["/home/me/ws", "/data"], "/home/me/");
        for (path, root, rest) in [
            ("/home/me/ws/a", 0, "a"),
            ("/home/me/ws", 0, ""),
            ("/data/x", 1, "x"),
            ("/home/me/ws-evil", OUTSIDE, "home/me/ws-evil"),
        ] {
            assert_eq!(paths.place(path), WorkspacePath { root, path: rest.into() }, "{path}");
        }
        assert_eq!(paths.shown("/home/me/ws"), ".");
    }

    #[test]
    fn directories_that_hold_a_root_or_home_are_vital() {
        let paths = PathContext::new(["/srv/code/ws"], "/home/me");
        for path in ["/", "/home", "/home/me", "/srv", "/srv/code", "/srv/code/ws", "/etc", "/usr", "/usr/bin"] {
            assert!(paths.is_vital(path), "{path}");
        }
        for path in ["/tmp", "/tmp/a", "/srv/code/ws/target", "/home/me/old", "/home/you", "/opt/a"] {
            assert!(!paths.is_vital(path), "{path}");
        }
    }
}
