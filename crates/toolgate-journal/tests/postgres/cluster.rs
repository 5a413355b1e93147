//! A private PostgreSQL server for a test: in a temporary directory, reached through a socket in it. Only a test of
//! connections between hosts gives it a port, on loopback.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::{Client, NoTls};
use tempfile::TempDir;

/// The user that the server runs as when the tests run as root, which PostgreSQL refuses: `nobody`.
const NOBODY: u32 = 65534;

/// Stopped and removed when it is dropped, also when the test fails.
pub(crate) struct Cluster {
    directory: TempDir,
    programs: PathBuf,
    /// The port on loopback, if it has one.
    port: Option<u16>,
    /// Settings beside those that every test has.
    settings: &'static str,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let cluster = Self::prepare(None, "");
        cluster.run();
        cluster
    }

    /// Makes a server that doesn't run yet.
    pub(crate) fn prepare(port: Option<u16>, settings: &'static str) -> Self {
        let cluster = Self { directory: TempDir::new().unwrap(), programs: programs(), port, settings };
        if is_root() {
            chown(cluster.directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(cluster.directory.path(), Permissions::from_mode(0o700)).unwrap();
        let options = ["--username=toolgate", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"];
        cluster.call("initdb", &options);
        cluster
    }

    /// Puts a file into the server's data directory, which only the server may read.
    #[allow(dead_code, reason = "only some of the tests that use a server change its files")]
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.directory.path().join("data").join(name);
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Starts the server, and waits until it responds.
    pub(crate) fn run(&self) {
        let directory = self.directory.path().display();
        let listen = self.port.map_or_else(|| "''".into(), |port| format!("127.0.0.1 -c port={port}"));
        let settings = format!(
            "-c listen_addresses={listen} -c unix_socket_directories='{directory}' -c fsync=off {}",
            self.settings
        );
        self.call("pg_ctl", &["start", "--wait", "--silent", &format!("--log={directory}/log"), "-o", &settings]);
    }

    /// Kills the server as a crash would, without notifying its clients.
    pub(crate) fn kill(&self) {
        self.call("pg_ctl", &["stop", "--wait", "--silent", "--mode=immediate"]);
    }

    /// Stops the server's processes where they are, until what this returns is dropped: connections stay, new ones are
    /// accepted by the kernel, and nobody answers.
    #[allow(dead_code, reason = "only some of the tests that use a server freeze it")]
    pub(crate) fn freeze(&self) -> FrozenServer {
        let file = fs::read_to_string(self.directory.path().join("data/postmaster.pid")).unwrap();
        let server = file.lines().next().unwrap().to_owned();
        // It goes first, so that it starts no other process meanwhile.
        signal("STOP", std::slice::from_ref(&server));
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        let children: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        signal("STOP", &children);
        FrozenServer { processes: children.into_iter().chain([server]).collect() }
    }

    /// Creates a database, and returns its URL.
    pub(crate) fn database(&self, name: &str) -> String {
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.address(name)
    }

    pub(crate) fn execute(&self, database: &str, statement: &str) {
        Client::connect(&self.address(database), NoTls).unwrap().batch_execute(statement).unwrap();
    }

    fn address(&self, database: &str) -> String {
        let port = self.port.map(|port| format!("&port={port}")).unwrap_or_default();
        format!("postgres://toolgate@/{database}?host={}{port}", self.directory.path().display())
    }

    /// Runs one of PostgreSQL's programs, and shows its output and the server's log if it fails.
    fn call(&self, program: &str, arguments: &[&str]) {
        let log = self.directory.path().join("log");
        let output = self.command(program).args(arguments).output().unwrap();
        let (said, logged) = (String::from_utf8_lossy(&output.stderr), fs::read_to_string(log).unwrap_or_default());
        assert!(output.status.success(), "`{program}` failed: {said}\n{logged}");
    }

    /// A program as an unprivileged user, without environment variables for other servers.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").env("PGDATA", self.directory.path().join("data"));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }
}

/// A server whose processes are stopped.
pub(crate) struct FrozenServer {
    processes: Vec<String>,
}

impl Drop for FrozenServer {
    fn drop(&mut self) {
        signal("CONT", &self.processes);
    }
}

fn signal(name: &str, processes: &[String]) {
    assert!(Command::new("kill").arg(format!("-{name}")).args(processes).status().unwrap().success());
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be stopped already. Nothing is kept, so it may also end immediately.
        let _ = self.command("pg_ctl").args(["stop", "--wait", "--silent", "--mode=immediate"]).output();
    }
}

/// The directory with `initdb` and `pg_ctl`. Debian keeps them off the search path, one directory for each version.
fn programs() -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&on_path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    directories.extend(versions.map(|version| version.path().join("bin")));
    let complete = |directory: &PathBuf| ["initdb", "pg_ctl"].iter().all(|program| directory.join(program).is_file());
    directories.into_iter().find(complete).expect(
        "PostgreSQL's `initdb` and `pg_ctl` are neither on the search path nor in /usr/lib/postgresql/*/bin; \
         install the Debian package `postgresql` (`cargo xtask setup` does)",
    )
}

/// The owner of this process's own entry in `/proc` is its effective user.
fn is_root() -> bool {
    Path::new("/proc/self").metadata().unwrap().uid() == 0
}
