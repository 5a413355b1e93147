//! The language servers of a workspace: from configuration and what this machine has to something that answers questions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolgate_config::{LspServerConfig, Settings};
use toolgate_contract::{ErrorCode, ToolError};
use toolgate_lsp::{Catalog, LanguageServers, ServerEntry, ServerMachine};
use toolgate_sandbox::process::Profile;

use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;
use crate::sandbox_profile::{create_private_directory, root_directories};

/// Bytes of a server's log. A longer one is begun anew.
const LONGEST_LOG: u64 = 1024 * 1024;

/// Milliseconds in which a server that isn't built in begins to report that it reads the project.
const USUAL_GRACE_MS: u64 = 500;

/// What answers questions about code in this workspace.
pub fn language_servers(
    location: &WorkspaceLocation,
    settings: &Settings,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<LanguageServers, WorkspaceError> {
    let mut catalog = Catalog::built_in();
    let configured = settings.lsp.servers.iter().map(|(name, config)| server_entry(&catalog, name, config)).collect();
    catalog.add(configured);
    let machine = WorkspaceMachine {
        homes: location.config.language_servers().join(location.cache_key()?),
        environment: environment.clone(),
        home: location.home.clone(),
        workspace: location.directory.clone(),
    };
    let wait = Duration::from_secs(settings.lsp.wait_seconds);
    let directories = root_directories(location, &settings.roots);
    Ok(LanguageServers::new(catalog, Arc::new(machine), directories, location.is_trusted()?, wait))
}

/// A configured server. What it doesn't say is as in the built-in one of its name.
fn server_entry(catalog: &Catalog, name: &str, config: &LspServerConfig) -> ServerEntry {
    let LspServerConfig { command, files, markers, env, settings, options, install, idle_seconds } = config.clone();
    // Nothing is known of how it treats changes of other files, so it begins with a document again after them.
    let unknown = || ServerEntry { grace_ms: USUAL_GRACE_MS, reopens: true, ..ServerEntry::default() };
    let mut entry = catalog.server(name).cloned().unwrap_or_else(unknown);
    entry.name = name.to_owned();
    entry.command = command;
    if !files.is_empty() {
        entry.files = files;
    }
    if !markers.is_empty() {
        entry.markers = markers;
    }
    entry.environment.extend(env);
    if !settings.is_null() {
        entry.settings = settings;
    }
    if !options.is_null() {
        entry.options = options;
    }
    if let Some(install) = install {
        entry.install = install;
    }
    if entry.install.is_empty() {
        entry.install = format!("(install `{}`)", entry.command.first().map(String::as_str).unwrap_or_default());
    }
    entry.idle_seconds = idle_seconds.or(entry.idle_seconds);
    entry
}

/// What this machine has for servers of one workspace.
struct WorkspaceMachine {
    homes: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    workspace: PathBuf,
}

#[allow(clippy::disallowed_methods, reason = "looks at programs and directories of the user's own, not in a workspace")]
impl ServerMachine for WorkspaceMachine {
    fn find_program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_program).map(runnable);
        }
        let path = self.environment.get(&OsString::from("PATH"))?;
        // A program in the workspace is the workspace's own, whatever the search path says.
        let outside = std::env::split_paths(path)
            .filter(|directory| directory.is_absolute() && !directory.starts_with(&self.workspace));
        outside.map(|directory| directory.join(name)).find(is_program).map(runnable)
    }

    fn installation(&self, program: &Path) -> Vec<PathBuf> {
        let of = |path: &Path| Profile::installation_of(path, self.home.as_deref());
        let packages = [Some(program.to_owned()), std::fs::canonicalize(program).ok()].into_iter().flatten();
        let mut shown: Vec<PathBuf> = packages.filter_map(|path| node_modules(&path)).collect();
        shown.extend(of(program));
        if let Some(interpreter) = interpreter(program) {
            shown.extend(of(&interpreter));
            // A virtual environment names its interpreter by a link beside its own files.
            shown.extend(
                interpreter
                    .parent()
                    .and_then(Path::parent)
                    .filter(|place| place.join("pyvenv.cfg").exists())
                    .map(Path::to_owned),
            );
        }
        shown.sort();
        shown.dedup();
        shown
    }

    fn toolchains(&self, program: &Path) -> Vec<PathBuf> {
        let homes = self.shown_for("RUSTUP_HOME");
        let installed =
            homes.iter().flat_map(|home| std::fs::read_dir(home.join("toolchains")).into_iter().flatten().flatten());
        // One that is started by its own path isn't beneath the home of rustup, or not of this one.
        let own = program.ancestors().nth(2).map(Path::to_owned);
        installed.map(|entry| entry.path()).chain(own).collect()
    }

    fn real_file(&self, path: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(path).ok().filter(|path| path.is_file())
    }

    fn home(&self, server: &str) -> Result<PathBuf, ToolError> {
        let home = self.homes.join(server);
        let made = create_private_directory(&home).and_then(|()| std::fs::canonicalize(&home));
        made.map_err(|error| ToolError::io("The directory of a language server can't be made", &error))
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.environment.get(&OsString::from(name)).cloned();
        let usual = match name {
            "CARGO_HOME" => Some(".cargo"),
            "RUSTUP_HOME" => Some(".rustup"),
            _ => None,
        };
        given.or_else(|| Some(self.home.as_ref()?.join(usual?).into_os_string()))
    }

    fn shown_for(&self, variable: &str) -> Vec<PathBuf> {
        let Some(value) = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute()) else {
            return Vec::new();
        };
        // Cargo's own directory also holds tokens, so only what is downloaded is shown.
        let shown = match variable {
            "CARGO_HOME" => vec![value.join("registry"), value.join("git")],
            _ => vec![value],
        };
        shown.into_iter().filter_map(|path| std::fs::canonicalize(path).ok()).filter(|path| path.is_dir()).collect()
    }

    fn restart_asked(&self, server: &str) -> Option<SystemTime> {
        std::fs::metadata(self.homes.join(format!("{server}.restart"))).ok()?.modified().ok()
    }

    fn log(&self, server: &str, piece: &[u8]) {
        let file = self.homes.join(format!("{server}.log"));
        let is_long = std::fs::metadata(&file).is_ok_and(|found| found.len() > LONGEST_LOG);
        let opened = std::fs::OpenOptions::new()
            .create(true)
            .append(!is_long)
            .write(true)
            .truncate(is_long)
            .mode(0o600)
            .open(&file);
        // A log that can't be written costs nothing but itself.
        let _ = opened.and_then(|mut file| file.write_all(piece));
    }
}

/// The path by which a program is started. Package managers put links to programs into a directory of the person's own, which a
/// server has no reason to see; a link to another program beside it stays, since such a program goes by its name.
#[allow(clippy::disallowed_methods, reason = "looks at a program of the user's own, not in a workspace")]
fn runnable(program: PathBuf) -> PathBuf {
    match std::fs::canonicalize(&program) {
        Ok(real) if !program.starts_with("/usr") && real.parent() != program.parent() => real,
        _ => program,
    }
}

/// The outermost directory of npm packages that a program is in.
fn node_modules(program: &Path) -> Option<PathBuf> {
    program
        .ancestors()
        .filter(|path| path.file_name().is_some_and(|name| name == "node_modules"))
        .last()
        .map(Path::to_owned)
}

/// The interpreter that a script names in its first line, if it does so by an absolute path.
#[allow(clippy::disallowed_methods, reason = "looks at a program of the user's own, not in a workspace")]
fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut start = [0; 256];
    let count = std::io::Read::read(&mut std::fs::File::open(program).ok()?, &mut start).ok()?;
    let line = start[..count].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Some(PathBuf::from(word)).filter(|path| path.is_absolute() && !path.starts_with("/usr"))
}

impl WorkspaceLocation {
    /// The log of a language server of this workspace.
    pub fn language_server_log(&self, server: &str) -> Result<PathBuf, WorkspaceError> {
        self.language_server_file(server, "log")
    }

    /// The file whose time says when a person last asked for a server to start anew.
    pub fn language_server_restart(&self, server: &str) -> Result<PathBuf, WorkspaceError> {
        self.language_server_file(server, "restart")
    }

    fn language_server_file(&self, server: &str, ending: &str) -> Result<PathBuf, WorkspaceError> {
        if server.is_empty() || server.contains('/') {
            return Err(ToolError::new(ErrorCode::InvalidArgs, "A server's name has no `/`.").into());
        }
        Ok(self.config.language_servers().join(self.cache_key()?).join(format!("{server}.{ending}")))
    }
}
