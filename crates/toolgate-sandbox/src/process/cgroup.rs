//! The memory cgroup: limits the memory of all commands together. The zygote is in it, and every sandbox inherits it, so a
//! sandbox starts no slower. Where no cgroup can be made, only the rlimits of each process apply.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

/// The name of a cgroup of ours: this prefix, the PID of the host, and a count.
const NAME_PREFIX: &str = "toolgate-";

/// How often, and after which pause, the removal of a cgroup that still has processes is tried again.
const REMOVE_ATTEMPTS: u32 = 500;
const REMOVE_PAUSE: Duration = Duration::from_millis(2);

/// Files of a cgroup, as in `Documentation/admin-guide/cgroup-v2.rst`.
const CGROUP_PROCS: &str = "cgroup.procs";
const CGROUP_KILL: &str = "cgroup.kill";
const CGROUP_SUBTREE_CONTROL: &str = "cgroup.subtree_control";
const MEMORY_SWAP_MAX: &str = "memory.swap.max";
/// The memory limit in cgroup v2.
const MEMORY_MAX: &str = "memory.max";
/// The memory limit in cgroup v1.
const MEMORY_LIMIT_IN_BYTES: &str = "memory.limit_in_bytes";
/// Where a cgroup counts the processes that were killed for their memory, in v2 and in v1: a line `oom_kill NUMBER`.
const KILL_COUNTS: [&str; 2] = ["memory.events", "memory.oom_control"];

/// The controller that limits memory, and the types of the two generations' file systems.
const MEMORY_CONTROLLER: &str = "memory";
const CGROUP_V1: &str = "cgroup";
const CGROUP_V2: &str = "cgroup2";

/// A cgroup of ours. Dropping it kills the processes in it and removes it.
#[derive(Debug)]
pub(super) struct MemoryCgroup {
    directory: PathBuf,
}

/// Where a cgroup can be made, and the file that limits its memory.
struct CgroupParent {
    directory: PathBuf,
    limit_file: &'static str,
}

impl MemoryCgroup {
    /// Makes a cgroup whose processes can use so many bytes of memory together; none where that isn't possible.
    pub(super) fn make(memory: u64) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let parents = parents(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?);
        let parent = parents.into_iter().find(can_limit_memory)?;
        remove_abandoned(&parent.directory);
        let name = format!("{NAME_PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let cgroup = Self { directory: parent.directory.join(name) };
        std::fs::create_dir(&cgroup.directory).ok()?;
        // From here on a failure drops the cgroup, and so removes it.
        std::fs::write(cgroup.directory.join(parent.limit_file), memory.to_string()).ok()?;
        // Otherwise the kernel would swap out what is beyond the limit. Not every kernel has this file.
        let _ = std::fs::write(cgroup.directory.join(MEMORY_SWAP_MAX), "0");
        Some(cgroup)
    }

    /// Moves a process into the cgroup. Its children will be in it, too.
    pub(super) fn add_process(&self, process: u32) -> bool {
        std::fs::write(self.directory.join(CGROUP_PROCS), process.to_string()).is_ok()
    }

    /// Whether the kernel killed a process in it because they used more memory than they may.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let counts = KILL_COUNTS.iter().filter_map(|name| read(self.directory.join(name)));
        counts.into_iter().any(|text| has_kills(&text))
    }

    /// The directory of the cgroup.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// For a zygote whose host is gone: leaves its cgroup, kills every process in it, and removes it.
pub(super) fn leave_and_remove(directory: &Path) {
    let Some(parent) = directory.parent() else { return };
    if std::fs::write(parent.join(CGROUP_PROCS), std::process::id().to_string()).is_ok() {
        remove(directory);
    }
}

/// Kills the processes in a cgroup until it is empty and can be removed.
fn remove(directory: &Path) {
    for _ in 0..REMOVE_ATTEMPTS {
        if std::fs::remove_dir(directory).is_ok() || !directory.exists() {
            return;
        }
        // The kernel kills them at once, or, in cgroup v1 and before Linux 5.14, we do.
        if std::fs::write(directory.join(CGROUP_KILL), "1").is_err() {
            kill_members(members(directory), |process| members(directory).contains(&process));
        }
        std::thread::sleep(REMOVE_PAUSE);
    }
}

/// The processes in a cgroup.
fn members(directory: &Path) -> Vec<Pid> {
    let processes = std::fs::read_to_string(directory.join(CGROUP_PROCS)).unwrap_or_default();
    processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

/// Kills processes by their PIDs. One of them may have ended since the PIDs were read, and another process may have its PID by
/// now. So each is asked for again after a pidfd of it was opened, which never means another process.
fn kill_members(processes: Vec<Pid>, is_member: impl Fn(Pid) -> bool) {
    for process in processes {
        let Ok(opened) = rustix::process::pidfd_open(process, PidfdFlags::empty()) else { continue };
        if is_member(process) {
            let _ = rustix::process::pidfd_send_signal(opened, Signal::KILL);
        }
    }
}

/// Removes the cgroups of hosts that ended without removing them.
fn remove_abandoned(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let host = name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.split_once('-')).map(|(host, _)| host);
        if host.is_some_and(|host| !Path::new("/proc").join(host).exists()) {
            // One that isn't empty stays: only its own host or zygote may kill what is in it.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Whether children of a cgroup can limit memory. In cgroup v1 all can; in v2 the parent has to enable the controller for them.
fn can_limit_memory(parent: &CgroupParent) -> bool {
    let enables_memory = || {
        read(parent.directory.join(CGROUP_SUBTREE_CONTROL))
            .is_some_and(|controllers| controllers.split_whitespace().any(|name| name == MEMORY_CONTROLLER))
    };
    parent.limit_file == MEMORY_LIMIT_IN_BYTES || enables_memory()
}

/// Where this process could make a cgroup: in its own, and in v2 also beside its own. `cgroups` is `/proc/self/cgroup`, and
/// `mounts` is `/proc/self/mountinfo`.
fn parents(cgroups: &str, mounts: &str) -> Vec<CgroupParent> {
    let mut parents = Vec::new();
    for line in cgroups.lines() {
        // hierarchy ID:controllers:path (cgroups(7))
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            let Some(own) = mounted(mounts, CGROUP_V2, None, path) else { continue };
            let beside = own.parent().map(Path::to_owned);
            parents.extend(
                [Some(own), beside]
                    .into_iter()
                    .flatten()
                    .map(|directory| CgroupParent { directory, limit_file: MEMORY_MAX }),
            );
        } else if controllers.split(',').any(|name| name == MEMORY_CONTROLLER) {
            let own = mounted(mounts, CGROUP_V1, Some(MEMORY_CONTROLLER), path);
            parents.extend(own.map(|directory| CgroupParent { directory, limit_file: MEMORY_LIMIT_IN_BYTES }));
        }
    }
    parents
}

/// The directory of the cgroup `path`, where a file system of this type is mounted with this controller.
fn mounted(mounts: &str, filesystem_type: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        // mount ID, parent ID, device, root, mount point, ... - type, source, options (proc_pid_mountinfo(5))
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let is_type = filesystem.next() == Some(filesystem_type);
        let options = filesystem.nth(1).unwrap_or_default();
        let has_controller = controller.is_none_or(|wanted| options.split(',').any(|option| option == wanted));
        let mut mount = mount.split(' ').skip(3);
        let (root, mount_point) = (mount.next()?, mount.next()?);
        let within = Path::new(path).strip_prefix(root).ok()?;
        (is_type && has_controller).then(|| Path::new(mount_point).join(within))
    })
}

/// Whether such a count says that a process was killed.
fn has_kills(counts: &str) -> bool {
    let count = counts.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(groups: &str, mounts: &str) -> Vec<String> {
        parents(groups, mounts).into_iter().map(|parent| parent.directory.display().to_string()).collect()
    }

    #[test]
    fn whoever_has_the_pid_of_a_former_member_is_not_killed() {
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&other);
        kill_members(vec![pid], |_| false);
        assert_eq!(other.try_wait().unwrap(), None);
        kill_members(vec![pid], |process| process == pid);
        assert!(!other.wait().unwrap().success());
    }

    #[test]
    fn kills_are_counted_in_v1_and_v2() {
        assert!(has_kills("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n"));
        assert!(has_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"));
        assert!(!has_kills("oom_kill_disable 1\nunder_oom 0\noom_kill 0\n"));
    }

    #[test]
    fn cgroups_are_found_in_v1_and_v2() {
        let second = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n";
        let slice = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice";
        assert_eq!(directories(own, second), [format!("{slice}/term.scope"), slice.to_owned()]);

        let first = "33 25 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     36 25 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(directories("4:memory:/jobs/7\n1:cpu:/\n", first), ["/sys/fs/cgroup/memory/jobs/7"]);

        let in_a_container = "36 25 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
        assert_eq!(directories("4:memory:/docker/abc/inner\n", in_a_container), ["/sys/fs/cgroup/memory/inner"]);
        assert_eq!(directories("4:memory:/elsewhere\n", in_a_container), Vec::<String>::new());
    }
}
