//! Where a run takes place: a workspace, its twin and a home, on the file system and for the user that the setting
//! says.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use tempfile::TempDir;

use crate::reply::Reply;
use crate::setting::Setting;
use crate::twin::Twin;

/// The ordinary user of tests that run as root. It needs no entry in `/etc/passwd`.
const ORDINARY_USER: u32 = 61_234;

/// A line of `/proc/self/mountinfo` and `statfs` call it so.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// The variable with the program to try, where it isn't the one that was built with the tests.
pub(crate) const PROGRAM: &str = "TOOLGATE_CHAOS_PROGRAM";

/// The directories of one run.
pub(crate) struct World {
    directory: TempDir,
    pub(crate) setting: Setting,
    pub(crate) workspace: PathBuf,
    pub(crate) twin: Twin,
    program: Arc<ProgramCopy>,
    /// The user that the program runs as, if it isn't ours.
    user: Option<u32>,
    /// Whether the directories stay, for somebody to look at them.
    pub(crate) is_kept: bool,
}

/// Whether this test may become any user.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Why a setting can't be tried here: the key of the skip, and the reason.
pub(crate) fn obstacle(setting: Setting) -> Option<(&'static str, &'static str)> {
    if setting.is_root && !is_root() {
        return Some(("not-root", "only root can try what happens to root"));
    }
    let obstacle = match setting.is_tmpfs {
        true => ("no-tmpfs", "neither `/dev/shm` nor the temporary directory is a tmpfs"),
        false => ("only-tmpfs", "the temporary directory and `/var/tmp` are a tmpfs"),
    };
    base(setting).is_none().then_some(obstacle)
}

/// A directory of everybody's on a file system of that kind.
fn base(setting: Setting) -> Option<PathBuf> {
    let candidates = match setting.is_tmpfs {
        true => vec![PathBuf::from("/dev/shm"), std::env::temp_dir()],
        false => vec![std::env::temp_dir(), PathBuf::from("/var/tmp")],
    };
    let is_tmpfs = |path: &Path| rustix::fs::statfs(path).ok().map(|facts| facts.f_type == TMPFS_MAGIC);
    candidates.into_iter().find(|path| is_tmpfs(path) == Some(setting.is_tmpfs))
}

/// The program, where an ordinary user may run it. It is removed with the last world that uses it.
pub(crate) struct ProgramCopy {
    _directory: TempDir,
    path: PathBuf,
}

impl ProgramCopy {
    pub(crate) fn shared() -> Arc<Self> {
        static PROGRAM: Mutex<Weak<ProgramCopy>> = Mutex::new(Weak::new());
        let mut known = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Self::new());
            *known = Arc::downgrade(&new);
            new
        })
    }

    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("chaos-program-").tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let path = directory.path().join("toolgate");
        let built = std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_toolgate").into());
        if std::fs::hard_link(&built, &path).is_err() {
            std::fs::copy(&built, &path).unwrap();
        }
        Self { _directory: directory, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let directory = tempfile::Builder::new().prefix("chaos-").tempdir_in(base(setting).unwrap()).unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let user = (!setting.is_root && is_root()).then_some(ORDINARY_USER);
        let [workspace, twin, home] = ["workspace", "twin", "home"].map(|name| directory.path().join(name));
        for path in [&workspace, &twin, &home] {
            std::fs::create_dir(path).unwrap();
            std::os::unix::fs::chown(path, user, user).unwrap();
        }
        let config = home.join(".config/toolgate");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), setting.config()).unwrap();
        for path in [&home.join(".config"), &config, &config.join("config.toml")] {
            std::os::unix::fs::chown(path, user, user).unwrap();
        }
        let twin = Twin { root: twin, owner: user };
        Self { directory, setting, workspace, twin, program: ProgramCopy::shared(), user, is_kept: false }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.workspace.join(".toolgate").join(name)
    }

    /// A command in this world, of its user.
    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env_clear().env("HOME", self.path().join("home")).env("USER", "ada");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The program, not started yet.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.program.path, &self.workspace);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.program(args).output().unwrap()
    }

    /// Runs the program with `--json`, and reads the reply that it prints.
    pub(crate) fn reply(&self, args: &[&str]) -> Reply {
        let output = self.run(&[&["--json"], args].concat());
        let reply: Result<Value, _> = serde_json::from_slice(&output.stdout);
        let reply = reply.unwrap_or_else(|_| panic!("{args:?} prints no reply: {}", said(&output)));
        Reply::of_program(reply, &self.state("runs"))
    }

    /// Runs a script as commands run in the sandbox: root has no more rights there than the owner of the files.
    pub(crate) fn bash_without_capabilities(&self, directory: &Path, script: &str) -> Output {
        if !self.setting.is_root {
            return self.bash(directory, script);
        }
        let drop_all = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "bash", "-c", script];
        self.command(Path::new("setpriv"), directory).args(drop_all).output().unwrap()
    }

    /// Runs a script without Toolgate.
    pub(crate) fn bash(&self, directory: &Path, script: &str) -> Output {
        self.command(Path::new("bash"), directory).args(["-c", script]).output().unwrap()
    }
}

/// What a process said, for a report.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    format!("{}, said {:?} and {:?}", output.status, text(&output.stdout), text(&output.stderr))
}

impl Drop for World {
    fn drop(&mut self) {
        if self.is_kept {
            self.directory.disable_cleanup(true);
            println!("kept: {}", self.path().display());
            return;
        }
        // Directories that nobody may enter, and paths too long for the standard library to remove.
        let script = format!("chmod -R u+rwx {0}; rm -rf {0}", self.path().display());
        let _ = Command::new("bash").args(["-c", &script]).stderr(Stdio::null()).status();
    }
}
