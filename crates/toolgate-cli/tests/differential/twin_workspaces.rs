//! Two copies of one workspace: plain bash works in the first, Toolgate in the second.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tree;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");
const NOBODY: u32 = 65_534;
/// The paths have the same length, so that columns are the same.
const PLAIN: &str = "plain";
const INSIDE: &str = "gated";

/// Who runs the commands, and whether their changes are staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    is_root: bool,
    has_overlay: bool,
}

impl Setting {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..4).map(Self::numbered)
    }

    pub(crate) fn numbered(number: usize) -> Self {
        Self { is_root: number & 1 == 0, has_overlay: number & 2 == 0 }
    }

    pub(crate) fn can_be_tried(self) -> bool {
        self.is_root == is_root() || is_root()
    }

    /// Its name, of the words that a known difference can name.
    pub(crate) fn name(self) -> String {
        let user = if self.is_root { "root" } else { "user" };
        format!("{user} {}", if self.has_overlay { "overlay" } else { "in_place" })
    }

    pub(crate) fn has(self, word: &str) -> bool {
        self.name().split(' ').any(|own| own == word)
    }
}

/// The two copies, and what both are copied from.
pub(crate) struct TwinWorkspaces {
    setting: Setting,
    directory: TempDir,
    program: PathBuf,
    environment: BTreeMap<String, String>,
}

impl TwinWorkspaces {
    pub(crate) fn new(setting: Setting) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("toolgate");
        if std::fs::hard_link(PROGRAM, &program).is_err() {
            std::fs::copy(PROGRAM, &program).unwrap();
        }
        let mut twins = Self { setting, directory, program, environment: BTreeMap::new() };
        for name in ["home/.config/toolgate", "fixture", PLAIN, INSIDE] {
            std::fs::create_dir_all(twins.path(name)).unwrap();
        }
        let overlay = if setting.has_overlay { "on" } else { "off" };
        let config = format!("preset = 'full'\n[commands]\noverlay = '{overlay}'\n");
        std::fs::write(twins.path("home/.config/toolgate/config.toml"), config).unwrap();
        // The program may be a link to the one that was built, which stays whose it is.
        twins.outside("chown \"$1\" . && chown -R \"$1\" home fixture plain gated", &[&twins.owner()]);
        let made = twins
            .as_user(Command::new("bash").args(["-c", include_str!("fixture.sh")]).current_dir(twins.path("fixture")));
        assert!(made.status.success(), "{made:?}");
        twins.reset();
        let variables = twins.call("env -0")["stdout"].as_str().unwrap().to_owned();
        let varying = ["PWD", "OLDPWD", "SHLVL", "_"];
        let pairs = variables.split('\0').filter_map(|pair| pair.split_once('='));
        let own = pairs.filter(|(name, _)| !varying.contains(name));
        twins.environment = own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        twins
    }

    /// Runs a command on both sides; what differs, or none.
    pub(crate) fn compare(&self, line: &str) -> Option<String> {
        // What git records has a time in it.
        let dated = "export GIT_AUTHOR_DATE=2024-02-02T00:00:00Z GIT_COMMITTER_DATE=2024-02-02T00:00:00Z;";
        let script = if line.starts_with("git ") { format!("{dated} {line}") } else { line.to_owned() };
        self.reset();
        let started = now();
        let mut plain = Command::new("/bin/bash");
        plain.args(["-c", &script]).current_dir(self.path(PLAIN)).env_clear().envs(&self.environment);
        let plain = self.as_user(&mut plain);
        let inside = self.call(&script);
        let mut found = Vec::new();
        match inside["exit_code"].as_i64() {
            None => found.push(format!("  refused: {inside}")),
            Some(code) => {
                let plain_code = plain.status.code().map_or_else(|| signal_code(&plain), i64::from);
                if plain_code != code {
                    found.push(format!("  exit code: {plain_code} | {code}"));
                }
                for (name, plain) in [("stdout", &plain.stdout), ("stderr", &plain.stderr)] {
                    let plain = String::from_utf8_lossy(plain).replace(&self.shown(PLAIN), "W");
                    let inside = inside[name].as_str().unwrap_or_default().replace(&self.shown(INSIDE), "W");
                    if plain.trim_end() != inside.trim_end() {
                        found.push(format!("  {name}: {plain:?} | {inside:?}"));
                    }
                }
            }
        }
        let (left, right) = (tree::describe(&self.path(PLAIN), started), tree::describe(&self.path(INSIDE), started));
        found.extend(tree::differences(&left, &right).into_iter().map(|line| format!("  tree: {line}")));
        let denied = inside.get("denied").map(|denied| format!("  denied: {denied}"));
        (!found.is_empty()).then(|| found.into_iter().chain(denied).collect::<Vec<_>>().join("\n"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn owner(&self) -> String {
        if self.setting.is_root == is_root() { own_id().to_string() } else { format!("{NOBODY}:{NOBODY}") }
    }

    /// Makes both copies anew. What bash sees of Toolgate's state is what a command sees of it.
    fn reset(&self) {
        let script = "for copy in plain gated; do chmod -R u+rwX $copy; \
                      find $copy -mindepth 1 -maxdepth 1 ! -name .toolgate -exec rm -rf {} +; cp -a fixture/. $copy; done; \
                      if [ ! -e plain/.toolgate ]; then mkdir -m 755 plain/.toolgate; echo '*' > plain/.toolgate/.gitignore; fi; \
                      chown -h \"$1\" plain/.toolgate plain/.toolgate/.gitignore";
        self.outside(script, &[&self.owner()]);
    }

    fn outside(&self, script: &str, args: &[&str]) {
        let done =
            Command::new("bash").args(["-c", script, "bash"]).args(args).current_dir(self.directory.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    }

    /// The payload of a call of `shell`, or its error.
    fn call(&self, script: &str) -> Value {
        let args = json!({ "command": script, "timeout_seconds": 100 }).to_string();
        let mut command = Command::new(&self.program);
        command.args(["--json", "call", "--approve", "shell", &args]).current_dir(self.path(INSIDE)).env_clear();
        command.env("HOME", self.path("home")).env("USER", "ada");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let said = self.as_user(&mut command);
        let reply: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{script}: {said:?}"));
        if reply["payload"].is_null() { reply["error"].clone() } else { reply["payload"].clone() }
    }

    fn as_user(&self, command: &mut Command) -> Output {
        if self.setting.is_root != is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.stdin(Stdio::null()).output().unwrap()
    }
}

/// A command that a signal ended has this code in a shell.
fn signal_code(output: &Output) -> i64 {
    use std::os::unix::process::ExitStatusExt;
    128 + i64::from(output.status.signal().unwrap_or_default())
}

fn own_id() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

fn is_root() -> bool {
    own_id() == 0
}

/// Seconds since 1970, by the clock of the file system.
fn now() -> i64 {
    std::fs::metadata(Path::new("/proc/self/stat")).unwrap().mtime()
}
