//! A hermetic world for the program: a workspace and a home of its own, and nothing of this machine's environment.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "shared by the tests of the program, which make files of their own"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

/// A temporary home with a workspace in it.
pub(crate) struct World {
    directory: TempDir,
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(world.workspace()).unwrap();
        std::fs::create_dir_all(world.home()).unwrap();
        world.file("hello.txt", "hello\nworld\n")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn user_config(&self) -> PathBuf {
        self.home().join(".config/toolgate/config.toml")
    }

    /// Puts a file into the workspace.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(&self.workspace().join(path), content);
        self
    }

    pub(crate) fn put(&self, path: &Path, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    /// A command in this world.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "ada")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::from(self.command(PROGRAM).args(args).output().unwrap())
    }

    /// Hands everything over to an ordinary user, where we are root, and gives what runs the program as that one.
    pub(crate) fn as_ordinary_user(&self) -> impl Fn(&[&str]) -> Said {
        let program = self.program_of_ordinary_user();
        move |args| Said::from(program().args(args).output().unwrap())
    }

    /// Hands everything over to an ordinary user, where we are root, and gives commands that start the program as that
    /// one.
    pub(crate) fn program_of_ordinary_user(&self) -> impl Fn() -> Command {
        const NOBODY: u32 = 65_534;
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0);
        let program = self.directory.path().join("toolgate");
        if std::fs::hard_link(PROGRAM, &program).is_err() {
            std::fs::copy(PROGRAM, &program).unwrap();
        }
        let hand_over = |path: &Path| std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY));
        let mut left = vec![self.workspace(), self.home()];
        if is_root {
            hand_over(self.directory.path()).unwrap();
        }
        while let Some(path) = left.pop().filter(|_| is_root) {
            hand_over(&path).unwrap();
            left.extend(std::fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path()));
        }
        move || {
            let mut command = self.command(program.to_str().unwrap());
            if is_root {
                std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
                std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
            }
            command
        }
    }

    /// Runs a shell script in which `$toolgate` is the program.
    pub(crate) fn shell(&self, script: &str) -> Said {
        Said::from(self.command("sh").env("toolgate", PROGRAM).args(["-c", script]).output().unwrap())
    }

    /// Calls a tool and reads the reply.
    pub(crate) fn call(&self, tool: &str, args: Value) -> Value {
        self.run(&["--json", "call", tool, &args.to_string()]).json()
    }

    /// The newest run's directory.
    pub(crate) fn last_run(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = std::fs::read_dir(self.workspace().join(".toolgate/runs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        runs.sort();
        runs.pop().unwrap()
    }
}

impl Said {
    /// The JSON values of a list, one a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parsed = |line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("not JSON ({fault}): {line}"));
        self.out.lines().map(parsed).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|fault| panic!("not JSON ({fault}): {self:?}"))
    }

    /// A list for programs, which has one JSON value a line.
    pub(crate) fn list(&self) -> Value {
        let value = |line: &str| -> Value {
            serde_json::from_str(line).unwrap_or_else(|fault| panic!("not JSON ({fault}): {self:?}"))
        };
        self.out.lines().map(value).collect()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
