//! The memory of all commands together: a control group for the zygote, which everything that comes out of it inherits, so
//! a sandbox costs no more for it. Where the kernel or the administrator gives us none, each process is limited alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// What our groups are called: this, the host's number, and a count.
const NAME: &str = "toolgate-";

/// How often, and after which pause, a group that is not empty yet is tried again.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// A control group of ours. It is removed with whoever is still in it.
#[derive(Debug)]
pub(super) struct MemoryCgroup {
    directory: PathBuf,
}

/// Where groups can be made, and the file that bounds their memory.
struct CgroupParent {
    directory: PathBuf,
    limit_file: &'static str,
}

impl MemoryCgroup {
    /// A group whose processes have so much memory together; none where we may not make one.
    pub(super) fn make(memory: u64) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let ground = grounds(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?).into_iter().find(fits)?;
        sweep(&ground.directory);
        let name = format!("{NAME}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let pen = Self { directory: ground.directory.join(name) };
        std::fs::create_dir(&pen.directory).ok()?;
        // From here on a failure removes it again.
        std::fs::write(pen.directory.join(ground.limit_file), memory.to_string()).ok()?;
        // Without this the limit would only move what is beyond it to the disk. Not every kernel has it.
        let _ = std::fs::write(pen.directory.join("memory.swap.max"), "0");
        Some(pen)
    }

    /// Puts a process in it. What that starts from now on is in it too.
    pub(super) fn add_process(&self, process: u32) -> bool {
        std::fs::write(members(&self.directory), process.to_string()).is_ok()
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// For a zygote whose host is gone: leaves its group, and removes that with everybody in it.
pub(super) fn leave_and_remove(directory: &Path) {
    let Some(outside) = directory.parent() else { return };
    if std::fs::write(members(outside), std::process::id().to_string()).is_ok() {
        remove(directory);
    }
}

/// Kills whoever is in a group until it is empty and can be removed.
fn remove(directory: &Path) {
    for _ in 0..ATTEMPTS {
        if std::fs::remove_dir(directory).is_ok() || !directory.exists() {
            return;
        }
        let inside = std::fs::read_to_string(members(directory)).unwrap_or_default();
        for process in inside.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Removes the groups of hosts that are gone and couldn't do it themselves.
fn sweep(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let host = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-')).map(|(host, _)| host);
        if host.is_some_and(|host| !Path::new("/proc").join(host).exists()) {
            // One that isn't empty stays: only its own host or zygote may end what is in it.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn fits(ground: &CgroupParent) -> bool {
    let hands_memory_down = || {
        read(ground.directory.join("cgroup.subtree_control"))
            .is_some_and(|controllers| controllers.split_whitespace().any(|name| name == "memory"))
    };
    // Of the first generation every group can have children; of the second, those that hand the controller down.
    ground.limit_file == FIRST_GENERATION || hands_memory_down()
}

const FIRST_GENERATION: &str = "memory.limit_in_bytes";
const SECOND_GENERATION: &str = "memory.max";

/// Where this process could make a group: beside its own or in it in the second generation, in it in the first.
fn grounds(groups: &str, mounts: &str) -> Vec<CgroupParent> {
    let mut grounds = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            let Some(own) = mounted(mounts, "cgroup2", None, path) else { continue };
            let beside = own.parent().map(Path::to_owned);
            grounds.extend(
                [Some(own), beside]
                    .into_iter()
                    .flatten()
                    .map(|directory| CgroupParent { directory, limit_file: SECOND_GENERATION }),
            );
        } else if controllers.split(',').any(|name| name == "memory") {
            let own = mounted(mounts, "cgroup", Some("memory"), path);
            grounds.extend(own.map(|directory| CgroupParent { directory, limit_file: FIRST_GENERATION }));
        }
    }
    grounds
}

/// The directory of the group `path` in the hierarchy of this kind.
fn mounted(mounts: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let is_kind = filesystem.next() == Some(kind);
        let options = filesystem.nth(1).unwrap_or_default();
        let has_controller = controller.is_none_or(|wanted| options.split(',').any(|option| option == wanted));
        let mut place = place.split(' ').skip(3);
        let (root, mount) = (place.next()?, place.next()?);
        let within = Path::new(path).strip_prefix(root).ok()?;
        (is_kind && has_controller).then(|| Path::new(mount).join(within))
    })
}

fn members(directory: &Path) -> PathBuf {
    directory.join("cgroup.procs")
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(groups: &str, mounts: &str) -> Vec<String> {
        grounds(groups, mounts).into_iter().map(|ground| ground.directory.display().to_string()).collect()
    }

    #[test]
    fn groups_are_found_in_both_generations() {
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
