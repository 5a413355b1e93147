//! The server for a file: the first installed one that understands it, for the project that the file is in, started when it
//! is first asked.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use toolgate_contract::{
    ApplyMode, Blob, BoxFuture, ErrorCode, Files, LaunchSpec, NetworkAccess, ServerHost, ServerLifetime, ServerStatus,
    StartDirectory, Streams, ToolError, WorkspacePath, quoted,
};

use crate::catalog::{Catalog, InstalledServer, ServerEntry, merged};
use crate::connection::{Connection, ConnectionState, NewConnection};
use crate::diagnostics_marks::DiagnosticsMarks;
use crate::documents::Fault;
use crate::source_text::SourceText;

/// How often a question starts a server anew whose configuration changes meanwhile.
const MOST_RESTARTS: u32 = 3;

/// Seconds without a question after which a server is stopped.
const USUAL_IDLE_SECONDS: u64 = 600;

/// What this machine has for servers.
pub trait ServerMachine: Send + Sync {
    /// Where a program is.
    fn find_program(&self, name: &str) -> Option<PathBuf>;
    /// The directories to show so that the program runs, where they aren't shown anyway.
    fn installation(&self, program: &Path) -> Vec<PathBuf>;
    /// The directories of the toolchains of which this program may be one.
    fn toolchains(&self, program: &Path) -> Vec<PathBuf>;
    /// Where a file really is, without links; none if there is no such file.
    fn real_file(&self, path: &Path) -> Option<PathBuf>;
    /// A server's own directory for this workspace. It exists.
    fn home(&self, server: &str) -> Result<PathBuf, ToolError>;
    /// A variable of the person's own, or its usual value.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// Directories of this machine that a server may read, because a variable that it inherits leads there.
    fn shown_for(&self, variable: &str) -> Vec<PathBuf>;
    /// When a person last asked for a server to start anew.
    fn restart_asked(&self, server: &str) -> Option<SystemTime>;
    /// Keeps what a server says about itself.
    fn log(&self, server: &str, piece: &[u8]);
}

/// Answers questions about code with the language servers of this machine.
pub struct LanguageServers {
    pub(crate) catalog: Catalog,
    pub(crate) machine: Arc<dyn ServerMachine>,
    /// The directories of all roots; the workspace comes first.
    directories: Arc<[PathBuf]>,
    /// Whether the person trusts the workspace: then servers may run the project's own code.
    pub(crate) is_trusted: bool,
    /// How long a question waits for a server that is still indexing.
    pub(crate) wait: Duration,
    /// Servers that are installed and couldn't be started, and when that was.
    unusable: Mutex<HashMap<String, SystemTime>>,
    /// What was found wrong in earlier answers.
    pub(crate) marks: Mutex<DiagnosticsMarks>,
}

/// A server for a file.
#[derive(Clone)]
pub(crate) struct ServerChoice {
    pub(crate) entry: Arc<ServerEntry>,
    pub(crate) root: WorkspacePath,
    program: PathBuf,
}

/// A server that knows a project as it is now. Nobody else asks it meanwhile.
pub(crate) struct SyncedServer {
    pub(crate) connection: Arc<Connection>,
    pub(crate) state: OwnedMutexGuard<ConnectionState>,
    /// The file that the question is about.
    pub(crate) uri: String,
    pub(crate) source: Arc<SourceText>,
}

impl ServerChoice {
    /// What the running server is known by.
    pub(crate) fn key(&self) -> String {
        let (name, WorkspacePath { root, path }) = (&self.entry.name, &self.root);
        match (root, path.is_empty()) {
            (0, true) => name.clone(),
            (0, false) => format!("{name} in {path}"),
            _ => format!("{name} in root {root}: {path}"),
        }
    }
}

impl LanguageServers {
    /// The servers of this catalog.
    pub fn new(
        catalog: Catalog,
        machine: Arc<dyn ServerMachine>,
        directories: Vec<PathBuf>,
        is_trusted: bool,
        wait: Duration,
    ) -> Self {
        let (unusable, marks) = (Mutex::default(), Mutex::default());
        Self { catalog, machine, directories: directories.into(), is_trusted, wait, unusable, marks }
    }

    /// All known servers, and where each is installed.
    pub fn installed(&self) -> Vec<InstalledServer> {
        let describe = |entry: &ServerEntry| InstalledServer {
            name: entry.name.clone(),
            languages: entry.languages(),
            program: self.program_of(entry),
            install: entry.install.clone(),
        };
        self.catalog.servers.iter().map(describe).collect()
    }

    /// Which of these files no installed server understands: for each language, the command that installs its first choice.
    pub fn missing_for<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
        let mut missing = BTreeMap::new();
        let mut covered: HashSet<&str> = HashSet::new();
        for path in paths {
            let suited: Vec<&ServerEntry> = self.catalog.servers.iter().filter(|entry| entry.takes(path)).collect();
            let Some(first) = suited.first() else { continue };
            let language = first.language_of(path);
            if missing.contains_key(language) || !covered.insert(language) {
                continue;
            }
            if suited.iter().all(|entry| self.program_of(entry).is_none()) {
                missing.insert(language.to_owned(), first.install.clone());
            }
        }
        missing
    }

    /// Name patterns of the files that some server understands and no installed one does.
    pub fn uncovered_patterns(&self) -> Vec<String> {
        let all = self.catalog.servers.iter().flat_map(|entry| entry.files.keys());
        let endings: BTreeSet<&String> = all.filter(|ending| !ending.starts_with('.')).collect();
        let names = endings.into_iter().map(|ending| format!("*.{ending}"));
        names.filter(|name| !self.missing_for([name.as_str()]).is_empty()).collect()
    }

    fn program_of(&self, entry: &ServerEntry) -> Option<PathBuf> {
        entry.command.first().and_then(|program| self.machine.find_program(program))
    }

    /// The server for a file.
    pub(crate) fn choose(&self, files: &dyn Files, place: &WorkspacePath) -> Result<ServerChoice, ToolError> {
        let suited: Vec<&ServerEntry> = self.catalog.servers.iter().filter(|entry| entry.takes(&place.path)).collect();
        let unusable = self.unusable();
        for entry in &suited {
            if unusable.contains(&entry.name) {
                continue;
            }
            if let Some(program) = self.program_of(entry) {
                let root = project_root(files, entry, place);
                return Ok(ServerChoice { entry: Arc::new((*entry).clone()), root, program });
            }
        }
        Err(missing(&files.shown(place), &suited, &unusable))
    }

    /// The running server of a choice; started if it doesn't run.
    pub(crate) async fn connect(
        &self,
        choice: &ServerChoice,
        host: &dyn ServerHost,
    ) -> Result<Arc<Connection>, ToolError> {
        let idle = Duration::from_secs(choice.entry.idle_seconds.unwrap_or(USUAL_IDLE_SECONDS));
        let home = self.machine.home(&choice.entry.name)?;
        let spec = self.launch_spec(choice, &home);
        let (new, key) = (self.new_connection(choice, &home), choice.key());
        let connect = Box::new(move |child| -> BoxFuture<'_, Result<Arc<dyn ServerLifetime>, ToolError>> {
            Box::pin(async move { Ok(Arc::new(Connection::open(new, child).await?) as Arc<dyn ServerLifetime>) })
        });
        if let Some(asked) = self.machine.restart_asked(&choice.entry.name) {
            let running = host.warm(&key).await.and_then(|running| concrete(running).ok());
            if running.is_some_and(|running| asked > running.started_at) {
                host.stop(&key).await;
            }
        }
        let running = host.server(&key, idle, spec, connect).await;
        concrete(running.map_err(|error| with_status(error, &choice.entry.name))?)
    }

    /// The server for a file, started. One that can't be started makes room for the next.
    pub(crate) async fn connect_for(
        &self,
        place: &WorkspacePath,
        host: &dyn ServerHost,
    ) -> Result<Arc<Connection>, ToolError> {
        loop {
            let files = host.files();
            let choice = self.choose(files.as_ref(), place)?;
            match self.connect(&choice, host).await {
                Err(error) if error.code == ErrorCode::ServerError && self.has_another(&choice, place) => {
                    self.unusable.lock().insert(choice.entry.name.clone(), SystemTime::now());
                }
                done => return done,
            }
        }
    }

    /// The server for a file, told of everything that changed, with the file open. One that a change configures otherwise is
    /// started anew first.
    pub(crate) async fn synced(&self, place: &WorkspacePath, host: &dyn ServerHost) -> Result<SyncedServer, ToolError> {
        let mut restarts = 0;
        loop {
            let connection = self.connect_for(place, host).await?;
            let mut state = Arc::clone(&connection.state).lock_owned().await;
            match connection.sync(&mut state, host, place).await {
                Ok((uri, source)) => return Ok(SyncedServer { connection, state, uri, source }),
                Err(Fault::Reconfigured) if restarts < MOST_RESTARTS => {
                    restarts += 1;
                    drop(state);
                    connection.peer.kill();
                    host.stop(&self.choose(host.files().as_ref(), place)?.key()).await;
                }
                Err(fault) => return Err(connection.failed(fault)),
            }
        }
    }

    /// The servers that couldn't be started, unless a person asked since then to start them anew.
    fn unusable(&self) -> HashSet<String> {
        let mut unusable = self.unusable.lock();
        unusable.retain(|name, failed| self.machine.restart_asked(name).is_none_or(|asked| asked <= *failed));
        unusable.keys().cloned().collect()
    }

    fn has_another(&self, failed: &ServerChoice, place: &WorkspacePath) -> bool {
        let unusable = self.unusable();
        let is_other = |entry: &&ServerEntry| {
            entry.takes(&place.path) && entry.name != failed.entry.name && !unusable.contains(&entry.name)
        };
        self.catalog.servers.iter().filter(is_other).any(|entry| self.program_of(entry).is_some())
    }

    fn new_connection(&self, choice: &ServerChoice, home: &Path) -> NewConnection {
        let ServerEntry { name, settings, options, trusted, untrusted, .. } = &*choice.entry;
        let (machine, name) = (Arc::clone(&self.machine), name.clone());
        let (settings, options) = match self.is_trusted {
            true => (merged(settings, &trusted.settings), merged(options, &trusted.options)),
            false => (merged(settings, &untrusted.settings), options.clone()),
        };
        let in_home = |value: Value| replaced_home(value, home);
        NewConnection {
            entry: Arc::clone(&choice.entry),
            root: choice.root.clone(),
            directories: Arc::clone(&self.directories),
            settings: in_home(settings),
            options: in_home(options),
            log: Arc::new(move |piece: &[u8]| machine.log(&name, piece)),
        }
    }

    fn launch_spec(&self, choice: &ServerChoice, home: &Path) -> LaunchSpec {
        let entry = &choice.entry;
        let spec = self.program_spec(&choice.program, &entry.command[1..], home, &entry.environment, &entry.inherits);
        let memory = entry.memory_bytes.or(spec.memory_bytes);
        LaunchSpec {
            streams: Streams::Input,
            directory: StartDirectory::Workspace(choice.root.clone()),
            memory_bytes: memory,
            replaced: self.other_contents(choice),
            ..spec
        }
    }

    /// The files that the server sees with another content: those of toolchains, and those of an untrusted workspace that would make
    /// it run the workspace's own programs.
    fn other_contents(&self, choice: &ServerChoice) -> Vec<(PathBuf, Blob)> {
        let ServerChoice { entry, root, program } = choice;
        let toolchains = if entry.toolchain_files.is_empty() { Vec::new() } else { self.machine.toolchains(program) };
        let base = self.directories.get(root.root).filter(|_| !self.is_trusted);
        let above: Vec<WorkspacePath> = root.ancestors().chain([root.clone()]).collect();
        let project = base.into_iter().flat_map(|base| above.iter().map(|one| one.beneath(base))).collect();
        let inside = |directories: Vec<PathBuf>, files: &BTreeMap<String, String>| {
            let all = directories.iter().flat_map(|directory| files.iter().map(move |file| (directory.clone(), file)));
            let real = all.filter_map(|(directory, (path, content))| {
                Some((self.machine.real_file(&directory.join(path))?, Blob::from(content.clone().into_bytes())))
            });
            real.collect::<Vec<_>>()
        };
        [inside(toolchains, &entry.toolchain_files), inside(project, &entry.untrusted.files)].concat()
    }

    /// How a program of the person's own is started that only reads the workspace.
    pub(crate) fn program_spec(
        &self,
        program: &Path,
        arguments: &[String],
        home: &Path,
        environment: &BTreeMap<String, String>,
        inherits: &[String],
    ) -> LaunchSpec {
        let own = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(in_home(value, home))));
        let inherited = inherits.iter().filter_map(|name| Some((OsString::from(name), self.machine.variable(name)?)));
        let home_variable = (OsString::from("HOME"), home.as_os_str().to_owned());
        let shown = inherits.iter().flat_map(|name| self.machine.shown_for(name));
        let words = [program.display().to_string()].into_iter().chain(arguments.iter().cloned());
        LaunchSpec {
            command: words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" "),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: [home_variable].into_iter().chain(inherited).chain(own).collect(),
            without_caches: true,
            writable: vec![home.to_owned()],
            read_only: self.machine.installation(program).into_iter().chain(shown).collect(),
            network: NetworkAccess::Off,
            apply_mode: ApplyMode::None,
            only_reads: true,
            ..LaunchSpec::program(program)
        }
    }
}

/// The error of a server that isn't tried again yet, as that of a server.
fn with_status(error: ToolError, server: &str) -> ToolError {
    if error.code != ErrorCode::ServerError || error.details.is_some() {
        return error;
    }
    error
        .with_hint("Use `grep` meanwhile. `toolgate lsp logs` has the server's own words.")
        .with_details(json!({ "server": server, "server_status": ServerStatus::Crashed }))
}

/// The connection behind what the host keeps.
pub(crate) fn concrete(running: Arc<dyn ServerLifetime>) -> Result<Arc<Connection>, ToolError> {
    let any: Arc<dyn Any + Send + Sync> = running;
    any.downcast::<Connection>().map_err(|_| ToolError::internal("Another kind of server runs under this key."))
}

/// The directory of the project that a file is in: the nearest or the outermost above it that has a marker; without one, the
/// root itself.
fn project_root(files: &dyn Files, entry: &ServerEntry, place: &WorkspacePath) -> WorkspacePath {
    let has_marker = |directory: &WorkspacePath| {
        entry.markers.iter().any(|marker| files.status(&directory.join(marker)).is_ok_and(|found| found.is_some()))
    };
    let mut above = place.ancestors();
    let found = if entry.outermost { above.find(has_marker) } else { above.rfind(has_marker) };
    found.unwrap_or(WorkspacePath { root: place.root, path: String::new() })
}

/// The error for a file that no installed server understands.
fn missing(shown: &str, suited: &[&ServerEntry], unusable: &HashSet<String>) -> ToolError {
    let Some(first) = suited.first() else {
        let message = format!("No language server is known for `{shown}`.");
        return ToolError::new(ErrorCode::ServerError, message)
            .with_hint("Use `grep`. A server can be added with `[lsp.servers.NAME]` in the configuration.")
            .with_details(json!({ "server_status": ServerStatus::Missing }));
    };
    let broken: Vec<&str> =
        suited.iter().map(|entry| entry.name.as_str()).filter(|name| unusable.contains(*name)).collect();
    let why = match broken[..] {
        [] => "is not installed".to_owned(),
        _ => format!("can't be started ({})", broken.join(", ")),
    };
    let message = format!("The language server for `{shown}` {why}. It is installed with: {}", first.install);
    ToolError::new(ErrorCode::ServerError, message)
        .with_hint("Use `grep` instead; the person can install it.")
        .with_details(json!({
            "server_status": ServerStatus::Missing,
            "install": suited.iter().map(|entry| (entry.name.clone(), Value::from(entry.install.clone()))).collect::<serde_json::Map<_, _>>(),
        }))
}

fn in_home(text: &str, home: &Path) -> String {
    text.replace("{home}", &home.display().to_string())
}

fn replaced_home(value: Value, home: &Path) -> Value {
    match value {
        Value::String(text) => Value::String(in_home(&text, home)),
        Value::Array(items) => items.into_iter().map(|item| replaced_home(item, home)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, field)| (name, replaced_home(field, home))).collect(),
        other => other,
    }
}
