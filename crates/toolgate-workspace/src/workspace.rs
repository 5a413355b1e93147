//! Everything that a call needs, wired in one place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolgate_changes::{ChangeLog, ChangeOptions, Undo, WorkspaceChanges};
use toolgate_config::{OverlayMode, Preset, Settings};
use toolgate_contract::{AnyTool, Clock, Files, HiddenPaths, ProcessLauncher, RootAccess, RunFacts};
use toolgate_journal::{GrantStore, Indexer, JournalError, RunOptions, StateDirectory};
use toolgate_policy::{CompiledConfig, PathContext, Policy};
use toolgate_redact::{Redactor, secrets_of_environment};
use toolgate_runtime::{AgentNotes, ApprovalQueueClient, ContentHiddenPaths, Gate, GateParts, Registry, Replay};
use toolgate_sandbox::{Roots, StoredOverlays};
use toolgate_search::{IndexLimits, WeightsReader, WorkspaceIndex};
use toolgate_tools::text::UnifiedDiffer;
use toolgate_web::{FetchLimits, WebClient};

use crate::configured_tools::add_configured_tools;
use crate::error::WorkspaceError;
use crate::language_servers::language_servers;
use crate::live_events::LiveEvents;
use crate::live_sockets::LiveSockets;
use crate::location::WorkspaceLocation;
use crate::mcp_servers::{ApprovalWatch, ApprovedTools, add_mcp_servers, server_secrets};
use crate::options::{WarningSink, WorkspaceOptions};
use crate::sandbox_profile::{root_directories, sandboxed_processes};
use crate::skill_directories::skill_directories;
use crate::stores::Stores;

/// What the preset `full` means, for the person who starts something with it.
pub const FULL_WARNING: &str = "The preset `full` is in force: nobody is asked before files are deleted, hosts are \
                                reached or history is rewritten, and calls may run commands without a sandbox. Only \
                                denies still hold.";

/// Everything that a call needs, opened once: the gate, the record, and the approval queue of one workspace.
pub struct Workspace {
    /// The workspace's directory.
    pub directory: PathBuf,
    /// The gate that every call goes through.
    pub gate: Arc<Gate>,
    /// The source of times and ids.
    pub clock: Arc<dyn Clock>,
    /// The workspace's record.
    pub state: StateDirectory,
    /// Where approval requests wait for others to answer; none without a key to tell an answer from a forgery.
    pub approvals: Option<ApprovalQueueClient>,
    /// The grants that apply in the workspace; none without a key to tell them from forged ones.
    pub grants: Option<Arc<GrantStore>>,
    /// Where rows and tasks are kept.
    pub stores: Stores,
    /// The live events of all sessions, for those who follow a run.
    pub live: LiveEvents,
    /// Sends live events to the other programs that follow the workspace.
    pub followers: Arc<LiveSockets>,
    /// The owner's name, for the record.
    pub owner: String,
    /// The dialects of MCP clients, by the name that each announces.
    pub client_dialects: BTreeMap<String, String>,
    pub(crate) facts: RunFacts,
    pub(crate) run_options: RunOptions,
    pub(crate) warn: WarningSink,
    approvals_of_tools: ApprovalWatch,
}

impl Workspace {
    /// Reads the configuration, and opens files, record and gate. What a killed program left is settled first.
    pub fn open(location: &WorkspaceLocation, options: WorkspaceOptions) -> Result<Self, WorkspaceError> {
        let CompiledConfig { policy, settings, warnings, .. } = location.load()?;
        warnings.iter().for_each(|warning| (options.warn)(warning));
        if policy.preset() == Preset::Full {
            (options.warn)(FULL_WARNING);
        }
        let facts = run_facts(location, &policy);
        let (state, stores) = (location.state()?, Stores::of(location, &settings));
        let run_options = RunOptions {
            durability: settings.durability,
            key: location.signing_key(),
            clock: Arc::clone(&options.clock),
            indexer: options.indexed.then(|| indexer(&state, &stores)).flatten(),
            list_heads: location.run_list_heads(),
        };
        let approvals = approval_queue(location, &settings, &options.clock);
        let grants = location.grants(settings.durability).ok().flatten().map(Arc::new);
        let client_dialects = settings.client_dialects.clone();
        let followers = location.live_sockets(&state, options.clock.id().simple().to_string())?;
        let (parts, approved) = gate_parts(location, &options, policy, settings, &run_options)?;
        let gate = Gate::new(parts);
        gate.changes().recover(&run_options)?.iter().for_each(|warning| (options.warn)(warning));
        Ok(Self {
            directory: location.directory.clone(),
            gate: Arc::new(gate),
            clock: options.clock,
            state,
            approvals,
            grants,
            stores,
            live: LiveEvents::default(),
            followers: Arc::new(followers),
            owner: options.owner,
            client_dialects,
            facts,
            run_options,
            approvals_of_tools: ApprovalWatch::new(location, &options.warn, approved),
            warn: options.warn,
        })
    }

    /// The same workspace, whose gate has some parts of the caller's own.
    ///
    /// # Panics
    ///
    /// If somebody else holds the gate already.
    #[must_use]
    pub fn with_parts(mut self, change: impl FnOnce(&mut GateParts)) -> Self {
        let mut parts = Arc::into_inner(self.gate).expect("nobody else has the gate yet").into_parts();
        change(&mut parts);
        self.gate = Arc::new(Gate::new(parts));
        self
    }

    /// What everybody who uses the workspace has to know of its policy, if there is something.
    pub fn warning(&self) -> Option<&'static str> {
        (self.gate.policy().preset() == Preset::Full).then_some(FULL_WARNING)
    }

    /// Takes over what a person approved or took back of other servers' tools since it was last read. Returns whether the tools changed.
    pub fn refresh_server_tools(&self) -> Result<bool, WorkspaceError> {
        self.approvals_of_tools.refresh(&self.gate)
    }

    /// Waits until the index has what was recorded. The journals have it already, so a failure loses nothing.
    pub fn finish(&self) {
        if let Some(indexer) = &self.run_options.indexer {
            let _ = indexer.flush();
        }
    }
}

impl WorkspaceLocation {
    /// The sockets by which programs follow what commands write in this workspace.
    pub fn live_sockets(&self, state: &StateDirectory, name: String) -> Result<LiveSockets, WorkspaceError> {
        let directory = self.config.attach_sockets().join("live").join(state.workspace_key()?);
        Ok(LiveSockets::new(directory, name))
    }

    /// The workspace's directory and the other roots, opened.
    pub fn roots(&self, settings: &Settings) -> Result<Roots, WorkspaceError> {
        let mut roots = Roots::open(&self.directory)?;
        for root in &settings.roots {
            roots.add(Path::new(&root.path), root.access)?;
        }
        Ok(roots)
    }

    /// The workspace's search index. Nothing of it is read before it is needed.
    pub fn search_index(&self, settings: &Settings) -> Result<WorkspaceIndex, WorkspaceError> {
        let wait = Duration::from_secs(settings.search_index_seconds);
        let limits = IndexLimits { wait, max_bytes: settings.search_max_bytes };
        let weights = settings.search_weights.as_deref().map(weights_reader);
        Ok(WorkspaceIndex::new(self.state()?, self.signing_key(), limits).with_weights(weights))
    }

    /// The secrets in this environment and in the configuration.
    pub fn secrets(&self, settings: &Settings, environment: &BTreeMap<OsString, OsString>) -> Vec<(String, String)> {
        let names: Vec<String> = settings.secret_names.iter().cloned().collect();
        // A variable that isn't text can't be a secret that a text shows.
        let text = |value: &OsString| value.to_str().map(str::to_owned);
        let variables = environment.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let mut secrets = secrets_of_environment(variables, &names);
        secrets.extend(Stores::of(self, settings).secrets());
        secrets.extend(server_secrets(self, settings, environment));
        secrets
    }
}

/// Reads the weights for `search` in the directory that the user's configuration names.
#[allow(clippy::disallowed_methods, reason = "a directory that the user's own configuration names")]
fn weights_reader(directory: &str) -> WeightsReader {
    let directory = PathBuf::from(directory);
    Box::new(move |name, largest| {
        let path = directory.join(name);
        if !directory.is_absolute() {
            return Err(format!("`{}` isn't an absolute path", directory.display()));
        }
        let failed = |error: std::io::Error| format!("`{}` can't be read: {error}", path.display());
        let mut bytes = Vec::new();
        std::fs::File::open(&path).map_err(failed)?.take(largest + 1).read_to_end(&mut bytes).map_err(failed)?;
        match bytes.len() as u64 > largest {
            true => Err(format!("`{}` has more than {} MiB", path.display(), largest >> 20)),
            false => Ok(bytes),
        }
    })
}

/// What every run in this workspace records of it.
fn run_facts(location: &WorkspaceLocation, policy: &Policy) -> RunFacts {
    RunFacts {
        workspace: location.directory.display().to_string(),
        session: String::new(),
        preset: policy.preset().to_string(),
        front_end: String::new(),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn gate_parts(
    location: &WorkspaceLocation,
    options: &WorkspaceOptions,
    policy: Policy,
    settings: Settings,
    run_options: &RunOptions,
) -> Result<(GateParts, ApprovedTools), WorkspaceError> {
    let files: Arc<dyn Files> = Arc::new(location.roots(&settings)?);
    let policy = Arc::new(policy.with_paths(path_context(location, &settings)));
    let secrets = location.secrets(&settings, &options.environment).into_iter().chain(options.secrets.clone());
    let (changes, undo, commit) = changes(location, &settings, &files, &policy, run_options)?;
    let fetch_limits = FetchLimits { body_bytes: settings.fetch_bytes, ..Default::default() };
    let mut registry = Registry::of(options.tools.iter().cloned().chain([undo, commit]))?;
    add_configured_tools(&mut registry, &settings, &options.warn);
    let (servers, approved) = add_mcp_servers(location, &settings, options, &mut registry)?;
    let parts = GateParts {
        registry,
        servers: Arc::new(servers),
        code: Some(Arc::new(language_servers(location, &settings, &options.environment)?)),
        policy,
        redactor: Arc::new(Redactor::new(secrets)),
        clock: Arc::clone(&options.clock),
        changes,
        processes: process_launcher(location, options, &settings)?,
        web: Some(Arc::new(WebClient::new(fetch_limits))),
        search: Some(Arc::new(location.search_index(&settings)?)),
        notes: Some(Arc::new(AgentNotes::new(location.state()?, run_options.clone()))),
        skill_directories: skill_directories(location, &files)?.into(),
        replay: replay(location, options),
        settings: Arc::new(settings),
        files,
    };
    Ok((parts, approved))
}

/// The tool `undo`.
type UndoTool = Arc<dyn AnyTool>;

/// The tool `commit`.
type CommitTool = Arc<dyn AnyTool>;

/// What stages, settles and undoes changes, with its tools: `undo` and `commit`.
fn changes(
    location: &WorkspaceLocation,
    settings: &Settings,
    files: &Arc<dyn Files>,
    policy: &Arc<Policy>,
    run_options: &RunOptions,
) -> Result<(Arc<WorkspaceChanges>, UndoTool, CommitTool), WorkspaceError> {
    let state = location.state()?;
    let contents = Arc::new(state.contents(run_options.durability)?.with_quota(settings.undo_quota_bytes));
    let roots = root_directories(location, &settings.roots);
    let undo = Undo::tool(state.path(), roots.clone(), Arc::clone(&contents), run_options.key.clone());
    let overlays = StoredOverlays { parent: state.layers_dir(), roots };
    let log = ChangeLog::new(state, contents, run_options.clone());
    let hidden_paths: Arc<dyn HiddenPaths> = Arc::new(ContentHiddenPaths::new(Arc::clone(policy), Arc::clone(files)));
    let clock = Arc::clone(&run_options.clock);
    let changes = WorkspaceChanges::new(
        Arc::clone(files),
        hidden_paths,
        clock,
        Some(log),
        change_options(settings, overlays.roots.clone()),
    );
    let changes = Arc::new(changes);
    let commit = changes.commit_tool(Arc::new(overlays));
    Ok((changes, undo, commit))
}

/// What configuration says about changes, and how they are shown.
fn change_options(settings: &Settings, directories: Vec<PathBuf>) -> ChangeOptions {
    let others = settings.roots.iter().enumerate().filter(|(_, root)| root.access == RootAccess::Write);
    ChangeOptions {
        overlay: settings.overlay == OverlayMode::On,
        quarantine: settings.quarantine,
        roots: [0].into_iter().chain(others.map(|(index, _)| index + 1)).collect(),
        directories,
        differ: Some(Arc::new(UnifiedDiffer)),
    }
}

fn process_launcher(
    location: &WorkspaceLocation,
    options: &WorkspaceOptions,
    settings: &Settings,
) -> Result<Option<Arc<dyn ProcessLauncher>>, WorkspaceError> {
    let Some(sandbox) = options.sandbox.clone() else { return Ok(None) };
    let processes = sandboxed_processes(location, settings, &options.environment, sandbox);
    Ok(Some(Arc::new(processes.with_layers(location.state()?.layers_dir()))))
}

/// The queue, and how long it is waited at where nobody else can be asked.
fn approval_queue(
    location: &WorkspaceLocation,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Option<ApprovalQueueClient> {
    let approvals = Arc::new(location.approvals().ok()?);
    let wait = Duration::from_secs(settings.approval_wait_seconds);
    Some(ApprovalQueueClient { approvals, wait, clock: Arc::clone(clock) })
}

/// The index is a view: if it can't be opened, calls go on, and `runs reindex` makes it later.
fn indexer(state: &StateDirectory, stores: &Stores) -> Option<Arc<Indexer>> {
    let stores = stores.clone();
    let open = move || stores.store().map_err(|error| JournalError::Store(error.into()));
    Indexer::start(state.path(), open).ok().map(Arc::new)
}

/// The directories by which commands' paths are read.
pub(crate) fn path_context(location: &WorkspaceLocation, settings: &Settings) -> PathContext {
    let workspace = location.directory.display().to_string();
    let home = location.home.as_ref().map_or_else(|| "/root".to_owned(), |home| home.display().to_string());
    let others = settings.roots.iter().map(|root| root.path.clone());
    PathContext::new([workspace].into_iter().chain(others), &home)
}

/// How a call is repeated from a shell, here and by the same rules.
fn replay(location: &WorkspaceLocation, options: &WorkspaceOptions) -> Replay {
    let workspace = ["--workspace".to_owned(), location.directory.display().to_string()];
    let words = location.flags.words().iter().cloned();
    Replay { program: [options.program.clone()].into_iter().chain(workspace).chain(words).collect() }
}
