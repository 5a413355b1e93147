//! Puts the parts together: a place to work in, a desk with the gate on it, and a stay for each run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use toolgate_changes::{ChangeLog, ChangeOptions, Undo, WorkspaceChanges};
use toolgate_config::{ConfigPaths, OverlayMode, RootConfig, Settings};
use toolgate_console::LiveEvents;
use toolgate_contract::{AnyTool, Clock, Files, HiddenPaths, RootAccess, RunFacts, SystemClock};
use toolgate_journal::{
    ApprovalQueue, Indexer, JournalError, Run, RunOptions, RunRecorder, SigningKey, StateDirectory,
    load_or_create_signing_key,
};
use toolgate_policy::{CompiledConfig, PathContext, compile};
use toolgate_redact::{Redactor, secrets_of_environment};
use toolgate_runtime::{AgentNotes, Gate, GateParts, Registry, Replay, Session, quoted};
use toolgate_sandbox::process::{Profile, SandboxOptions};
use toolgate_sandbox::{Roots, SandboxedProcesses, StoredOverlays};
use toolgate_tools::text::UnifiedDiffer;
use toolgate_web::WebClient;

use crate::attach::{AttachSocket, create_private_directory};
use crate::config::{PolicyFlags, UserRulesFile};
use crate::stores::{self, Stores};
use crate::terminal::{YELLOW, paint, plain};

/// Where the program works and by which rules.
pub(crate) struct WorkspaceLocation {
    /// The workspace's directory, absolute, with no links in it.
    pub(crate) workspace: PathBuf,
    /// Where configuration comes from.
    pub(crate) sources: ConfigPaths,
    flags: PolicyFlags,
    /// The workspace whose trust counts: its own, or that of the one it is a copy of.
    trusted_as: PathBuf,
}

impl WorkspaceLocation {
    /// The directory that was named, or the current one.
    #[allow(clippy::disallowed_methods, reason = "finds the workspace, before there is any gate")]
    pub(crate) fn find(workspace: Option<PathBuf>, sources: ConfigPaths, flags: PolicyFlags) -> Result<Self> {
        let named = match workspace {
            Some(directory) => directory,
            None => std::env::current_dir().context("the current directory can't be found")?,
        };
        let workspace = std::fs::canonicalize(&named)
            .with_context(|| format!("the workspace {} can't be opened", named.display()))?;
        Ok(Self { trusted_as: workspace.clone(), workspace, sources, flags })
    }

    /// Reads every layer of configuration.
    pub(crate) fn load(&self) -> Result<CompiledConfig> {
        self.load_with(&self.flags)
    }

    fn load_with(&self, flags: &PolicyFlags) -> Result<CompiledConfig> {
        Ok(compile(self.sources.layers(&self.workspace, &self.trusted_as, &flags.to_toml()?)?)?)
    }

    /// A copy of this workspace, by the same rules.
    pub(crate) fn copied_to(&self, directory: &Path) -> Result<Self> {
        let copy = Self::find(Some(directory.to_owned()), self.sources.clone(), self.flags.clone())?;
        Ok(Self { trusted_as: self.trusted_as.clone(), ..copy })
    }

    /// Whether the user trusts the workspace as its own file is now.
    pub(crate) fn is_trusted(&self) -> Result<bool> {
        Ok(self.sources.trusts(&self.workspace, &self.trusted_as)?)
    }

    /// The same, where the person lets these hosts pass.
    pub(crate) fn load_allowing<'a>(&self, hosts: impl Iterator<Item = &'a str>) -> Result<CompiledConfig> {
        let mut flags = self.flags.clone();
        flags.allow.extend(hosts.map(|host| format!("host={host}")));
        self.load_with(&flags)
    }

    /// The workspace's record.
    pub(crate) fn state(&self) -> Result<StateDirectory> {
        StateDirectory::open(&self.workspace).context("the workspace's record can't be opened")
    }

    /// Where rows and tasks are kept.
    pub(crate) fn stores(&self) -> Result<Stores> {
        Ok(Stores::of(self, &self.load()?.settings))
    }

    /// The key that seals journals; without a place to keep it there is none, and `doctor` says so.
    pub(crate) fn seal_key(&self) -> Option<SigningKey> {
        load_or_create_signing_key(&self.sources.seal_key()).ok()
    }

    /// The desk on which asks wait for an answer. Without a key nobody could tell an answer from a forgery.
    pub(crate) fn approvals(&self) -> Result<ApprovalQueue> {
        let key = load_or_create_signing_key(&self.sources.seal_key())
            .with_context(|| format!("the seal's key {} can't be used", self.sources.seal_key().display()))?;
        Ok(self.state()?.queue(key)?)
    }

    /// The program as the person types it where they are, to come to this workspace again.
    #[allow(clippy::disallowed_methods, reason = "compares the workspace with the directory that the person is in")]
    pub(crate) fn typed(&self) -> String {
        let here = std::env::current_dir().and_then(std::fs::canonicalize);
        match here.is_ok_and(|here| here == self.workspace) {
            true => program_name(),
            false => format!("{} -w {}", program_name(), quoted(&self.workspace.display().to_string())),
        }
    }

    /// How a call is repeated from a shell, here and by the same rules.
    fn replay(&self) -> Replay {
        let mut program = vec![program_name(), "--workspace".into(), self.workspace.display().to_string()];
        program.extend(self.flags.words());
        Replay { program }
    }
}

/// Everything a call needs, opened once.
pub(crate) struct Workspace {
    pub(crate) gate: Arc<Gate>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) state: StateDirectory,
    /// Where asks wait for others to answer; none without a key to tell an answer from a forgery.
    pub(crate) approvals: Option<toolgate_runtime::ApprovalQueueClient>,
    pub(crate) stores: Stores,
    /// What passes in the sessions of a server, for those who listen over HTTP.
    pub(crate) live: LiveEvents,
    facts: RunFacts,
    options: RunOptions,
    attach_sockets: PathBuf,
}

/// The front end that makes one call and ends with it.
pub(crate) const CLI: &str = "cli";

/// Which run and session a client's calls belong to.
pub(crate) struct RunChoice {
    /// An earlier run to go on with; a new one otherwise.
    pub(crate) run: Option<String>,
    /// The session.
    pub(crate) session: String,
    /// Who brings the calls.
    pub(crate) front_end: &'static str,
}

/// A client's stay: its session and the run that is recorded.
pub(crate) struct RecordedSession {
    pub(crate) session: Session,
    pub(crate) run: Arc<Run>,
}

impl Workspace {
    /// Reads configuration and opens files, record and gate.
    pub(crate) fn open(place: &WorkspaceLocation) -> Result<Self> {
        Self::open_with(place, Vec::new(), Vec::new())
    }

    /// The same, with tools and secrets that only one front end brings.
    pub(crate) fn open_with(
        place: &WorkspaceLocation,
        tools: Vec<Arc<dyn AnyTool>>,
        more: Vec<(String, String)>,
    ) -> Result<Self> {
        let compiled = place.load()?;
        for warning in &compiled.warnings {
            warn(warning);
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let facts = RunFacts {
            workspace: place.workspace.display().to_string(),
            session: String::new(),
            preset: compiled.policy.preset().to_string(),
            front_end: String::new(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let (state, stores) = (place.state()?, Stores::of(place, &compiled.settings));
        let options = RunOptions {
            durability: compiled.settings.durability,
            key: place.seal_key(),
            clock: Arc::clone(&clock),
            indexer: indexer(&state, &stores),
        };
        let approvals = approvals(place, &compiled.settings, &clock);
        let secrets = own_secrets(&compiled.settings).into_iter().chain(more);
        let files: Arc<dyn Files> = Arc::new(roots(place, &compiled.settings)?);
        let policy = Arc::new(compiled.policy.with_paths(ground(place, &compiled.settings)));
        let contents = Arc::new(state.contents(options.durability)?.with_quota(compiled.settings.undo_quota_bytes));
        let undo = Undo::tool(state.path(), Arc::clone(&contents), place.seal_key());
        let log = ChangeLog::new(place.state()?, contents, place.seal_key());
        let hidden_paths = Arc::clone(&policy) as Arc<dyn HiddenPaths>;
        let shown = change_options(&compiled.settings);
        let changes = WorkspaceChanges::new(Arc::clone(&files), hidden_paths, Arc::clone(&clock), Some(log), shown);
        let changes = Arc::new(changes);
        let roots = directories(place, &compiled.settings.roots);
        let commit = changes.commit_tool(Arc::new(StoredOverlays { parent: state.layers_dir(), roots }));
        let fetched = toolgate_web::FetchLimits { body_bytes: compiled.settings.fetch_bytes, ..Default::default() };
        let gate = Gate::new(GateParts {
            registry: Registry::of(toolgate_tools::all().into_iter().chain(tools).chain([undo, commit]))?,
            policy,
            redactor: Arc::new(Redactor::new(secrets)),
            clock: Arc::clone(&clock),
            changes,
            processes: Some(Arc::new(confined(place, &compiled.settings).with_layers(state.layers_dir()))),
            web: Some(Arc::new(WebClient::new(fetched))),
            notes: Some(Arc::new(AgentNotes::new(place.state()?, options.clone()))),
            skill_directories: crate::skill_directories::skill_directories(place, &files)?.into(),
            user_rules: Some(Arc::new(UserRulesFile { file: place.sources.user.clone() })),
            replay: place.replay(),
            settings: Arc::new(compiled.settings),
            files,
        });
        gate.changes().recover(&options)?.iter().for_each(|warning| warn(warning));
        let (live, attach_sockets) = (LiveEvents::default(), place.sources.attach_sockets());
        Ok(Self { gate: Arc::new(gate), clock, facts, state, stores, options, approvals, live, attach_sockets })
    }

    /// Begins a run, or goes on with one.
    pub(crate) fn begin(&self, choice: &RunChoice) -> Result<RecordedSession> {
        match &choice.run {
            Some(run) => self.recorded(self.state.open_run(run, &self.options)?, choice),
            None => self.begin_as(&format!("run_{}", self.clock.id().simple()), choice),
        }
    }

    /// Begins a run under this id.
    pub(crate) fn begin_as(&self, run: &str, choice: &RunChoice) -> Result<RecordedSession> {
        let (session, front_end) = (choice.session.clone(), choice.front_end.into());
        let facts = RunFacts { session, front_end, ..self.facts.clone() };
        self.recorded(self.state.begin_run(run, facts, &self.options)?, choice)
    }

    fn recorded(&self, run: Run, choice: &RunChoice) -> Result<RecordedSession> {
        let run = Arc::new(run);
        let session_grants = self.state.session_grants(&choice.session, &self.options)?;
        let recorder = RunRecorder::new(Arc::clone(&run), session_grants);
        let (grants, warnings) = match self.options.key {
            Some(_) => recorder.known_grants()?,
            // Without a key nobody can tell our grants from those that came with a repository: none count.
            None => (Vec::new(), vec!["There is no seal's key, so earlier approvals don't count.".to_owned()]),
        };
        warnings.iter().for_each(|warning| warn(warning));
        let artifacts = Arc::clone(&run.artifacts);
        let mut session = Session::new(&choice.session, &run.id, Arc::new(recorder), artifacts).with_grants(grants);
        session.queue.clone_from(&self.approvals);
        Ok(RecordedSession { session, run })
    }

    /// Lets the user attach to the processes of all sessions while this work goes on. Nothing else depends on it, so it is
    /// no fault where no socket can be made.
    pub(crate) async fn with_door<T>(&self, work: impl Future<Output = T>) -> T {
        let door = AttachSocket::open(&self.attach_sockets, self.gate.registries());
        let done = work.await;
        if let Ok(door) = door {
            door.close().await;
        }
        done
    }

    /// Waits until the store has what was recorded. The files have it already, so a failure loses nothing.
    pub(crate) fn finish(&self) {
        if let Some(indexer) = &self.options.indexer {
            let _ = indexer.flush();
        }
    }
}

/// What configuration says about changes, and how they are shown.
fn change_options(settings: &Settings) -> ChangeOptions {
    let others = settings.roots.iter().enumerate().filter(|(_, root)| root.access == RootAccess::Write);
    ChangeOptions {
        overlay: settings.overlay == OverlayMode::On,
        quarantine: settings.quarantine,
        roots: [0].into_iter().chain(others.map(|(index, _)| index + 1)).collect(),
        differ: Some(Arc::new(UnifiedDiffer)),
    }
}

/// The queue, and how long it is waited at where nobody else can be asked.
fn approvals(
    place: &WorkspaceLocation,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Option<toolgate_runtime::ApprovalQueueClient> {
    let approvals = Arc::new(place.approvals().ok()?);
    let wait = Duration::from_secs(settings.approval_wait_seconds);
    Some(toolgate_runtime::ApprovalQueueClient { approvals, wait, clock: Arc::clone(clock) })
}

/// The store is a view: when it can't be opened, calls go on and `runs reindex` mends it later.
fn indexer(state: &StateDirectory, stores: &Stores) -> Option<Arc<Indexer>> {
    let stores = stores.clone();
    let open = move || stores.store().map_err(|fault| JournalError::Store(fault.into()));
    Indexer::start(state.path(), open).ok().map(Arc::new)
}

/// The secrets in the program's own environment and configuration.
pub(crate) fn own_secrets(settings: &Settings) -> Vec<(String, String)> {
    let names: Vec<String> = settings.secret_names.iter().cloned().collect();
    // A variable that isn't text can't be a secret that a text shows.
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut secrets = secrets_of_environment(variables, &names);
    secrets.extend(stores::secrets(&settings.store));
    secrets
}

/// How commands run: in a sandbox, where they change nothing but what tools may change.
pub(crate) fn confined(place: &WorkspaceLocation, settings: &Settings) -> SandboxedProcesses {
    let options = SandboxOptions { warm: 0, ..SandboxOptions::default() };
    SandboxedProcesses::new(profile(place, &settings.roots), options).at_least(settings.weakest_sandbox)
}

/// The directories that places are in; the workspace comes first.
pub(crate) fn directories(place: &WorkspaceLocation, roots: &[RootConfig]) -> Vec<PathBuf> {
    [place.workspace.clone()].into_iter().chain(roots.iter().map(|root| PathBuf::from(&root.path))).collect()
}

/// What a command in this workspace is confined to.
pub(crate) fn profile(place: &WorkspaceLocation, roots: &[RootConfig]) -> Profile {
    let mut profile = Profile::for_workspace(&place.workspace, std::env::home_dir().as_deref());
    for root in roots {
        let places = if root.access == RootAccess::Write { &mut profile.writable } else { &mut profile.shown };
        places.push(PathBuf::from(&root.path));
    }
    profile.roots = directories(place, roots);
    profile.environment = environment();
    // A command that came to a door could type into another one. The directory has to exist to be hidden.
    let attach_sockets = place.sources.attach_sockets();
    if create_private_directory(&attach_sockets).is_ok() {
        profile.masked.push(attach_sockets);
    }
    profile
}

/// Variables of ours that a command may see. None of them is a secret, and none decides what runs.
const PASSED_ON: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "RUSTUP_HOME",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// What makes programs neither ask, page nor colour.
const SET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    // A directory that merely looks like a repository brings no configuration of its own.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("SHELL", "/bin/bash"),
    ("TERM", "dumb"),
];

fn environment() -> BTreeMap<OsString, OsString> {
    let own = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| PASSED_ON.contains(&name) || name.starts_with("LC_")));
    own.chain(SET.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The directories that commands stand on, by name.
fn ground(place: &WorkspaceLocation, settings: &Settings) -> PathContext {
    let workspace = place.workspace.display().to_string();
    let home = std::env::home_dir().map_or_else(|| "/root".to_owned(), |home| home.display().to_string());
    let others = settings.roots.iter().map(|root| root.path.clone());
    PathContext::new([workspace].into_iter().chain(others), &home)
}

pub(crate) fn roots(place: &WorkspaceLocation, settings: &Settings) -> Result<Roots> {
    let mut roots = Roots::open(&place.workspace)?;
    for root in &settings.roots {
        roots.add(Path::new(&root.path), root.access)?;
    }
    Ok(roots)
}

pub(crate) fn warn(warning: &str) {
    anstream::eprintln!("{} {}", paint(YELLOW.bold(), "warning:"), plain(warning));
}

/// Who is at the keyboard, for the record.
pub(crate) fn person_name() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "user".into())
}

/// The program as it can be started again: by name when it was found by name, else by its full path.
pub(crate) fn program_name() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match (called.contains('/'), std::env::current_exe()) {
        (true, Ok(path)) => path.display().to_string(),
        _ => "toolgate".into(),
    }
}
