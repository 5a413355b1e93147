//! Language servers of this workspace that run now, whoever started them: each has a home of its own, by which its processes are known.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The processes of one server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerProcesses {
    pub(super) pids: Vec<u32>,
    /// What they have in memory together.
    pub(super) memory_bytes: u64,
}

/// The servers whose homes are in this directory and that run, by name.
#[allow(clippy::disallowed_methods, reason = "looks at processes, not at a workspace")]
pub(super) fn servers_with_homes_in(homes: &Path) -> BTreeMap<String, ServerProcesses> {
    let mut found: BTreeMap<String, ServerProcesses> = BTreeMap::new();
    let Ok(homes) = std::fs::canonicalize(homes) else { return found };
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let Some(server) = server_of(&environment, &homes) else { continue };
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let processes = found.entry(server).or_default();
        processes.pids.push(pid);
        processes.memory_bytes += resident_bytes(&status);
    }
    found.values_mut().for_each(|processes| processes.pids.sort_unstable());
    found
}

/// The server whose home these variables name.
fn server_of(environment: &[u8], homes: &Path) -> Option<String> {
    let home = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"HOME="))?;
    let home = PathBuf::from(OsStr::from_bytes(home));
    Some(home.strip_prefix(homes).ok()?.to_str()?.to_owned()).filter(|name| !name.is_empty() && !name.contains('/'))
}

/// What a process has in memory, by its `status` in `/proc`.
fn resident_bytes(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_home() {
        let homes = Path::new("/state/lsp/key");
        for (environment, expected) in [
            ("PATH=/bin\0HOME=/state/lsp/key/ty\0", Some("ty")),
            ("HOME=/state/lsp/key\0", None),
            ("HOME=/state/lsp/key/ty/cache\0", None),
            ("HOME=/root\0", None),
            ("", None),
        ] {
            assert_eq!(server_of(environment.as_bytes(), homes).as_deref(), expected, "{environment:?}");
        }
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    12 kB\n"), 12 * 1024);
        assert_eq!(resident_bytes(""), 0);
    }
}
