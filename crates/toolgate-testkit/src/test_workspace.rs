//! A completely wired workspace in a temporary directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use toolgate_changes::{ChangeLog, ChangeOptions, Undo, WorkspaceChanges};
use toolgate_config::{Config, ConfigLayer, OverlayMode};
use toolgate_contract::{
    AnyTool, Call, CancellationToken, Clock, Durability, Event, EventPayload, Files, HiddenPaths, Layer, Reply,
    RunFacts, SkillOwner, WorkspacePath,
};
use toolgate_journal::{Run, RunOptions, RunRecorder, StateDirectory, load_or_create_signing_key, read_events};
use toolgate_policy::compile;
use toolgate_redact::Redactor;
use toolgate_runtime::{
    AgentNotes, ApprovalQueueClient, EventSink, Gate, GateParts, Registry, Replay, Session, SkillDirectory,
};
use toolgate_sandbox::process::{Profile, SandboxOptions, Tier, zygote_before_main};
use toolgate_sandbox::{Roots, SandboxedProcesses};

use crate::FrozenClock;

/// A temporary workspace, a gate on it, and a run that records.
pub struct TestWorkspace {
    directory: TempDir,
    /// The clock of this workspace.
    pub clock: Arc<FrozenClock>,
    /// The gate.
    pub gate: Arc<Gate>,
    /// The run that calls are recorded in.
    pub run: Arc<Run>,
    /// The approval queue at which sessions wait, if there is one.
    pub queue: Option<ApprovalQueueClient>,
    /// The workspace's record.
    pub state: StateDirectory,
    options: RunOptions,
}

impl TestWorkspace {
    /// A workspace with these tools, under this user configuration (TOML).
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, config: &str) -> Self {
        Self::new_in(&std::env::temp_dir(), tools, config)
    }

    /// Like [`Self::new`], in a temporary directory inside `directory`.
    pub fn new_in(directory: &Path, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, config: &str) -> Self {
        let directory = tempfile::tempdir_in(directory).expect("a temporary directory");
        let clock = Arc::new(FrozenClock::default());
        let config = Config::parse(config, "test").expect("a test's configuration is right");
        let layer = ConfigLayer { layer: Layer::User, source: "test".into(), trusted: true, config };
        let compiled = compile(vec![layer]).expect("a test's rules are right");
        let files: Arc<dyn Files> = Arc::new(Roots::open(directory.path()).expect("the workspace opens"));
        let contents = Arc::new(open_state(directory.path()).contents(Durability::Os).expect("a store"));
        let undo = Undo::tool(open_state(directory.path()).path(), Arc::clone(&contents), None);
        let secret = ("TEST_TOKEN".to_owned(), "correct-horse-battery".to_owned());
        let policy = Arc::new(compiled.policy);
        let log = ChangeLog::new(open_state(directory.path()), contents, None);
        let options = ChangeOptions {
            overlay: compiled.settings.overlay == OverlayMode::On,
            quarantine: compiled.settings.quarantine,
            roots: vec![0],
            differ: None,
        };
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let hidden_paths = Arc::clone(&policy) as Arc<dyn HiddenPaths>;
        let changes = WorkspaceChanges::new(Arc::clone(&files), hidden_paths, Arc::clone(&time), Some(log), options);
        let gate = Gate::new(GateParts {
            registry: Registry::of(tools.into_iter().chain([undo])).expect("a test's tools have different names"),
            policy,
            settings: Arc::new(compiled.settings),
            redactor: Arc::new(Redactor::new([secret])),
            clock: time,
            changes: Arc::new(changes),
            processes: None,
            web: None,
            notes: Some(Arc::new(AgentNotes::new(open_state(directory.path()), RunOptions::default()))),
            skill_directories: Arc::new([
                skill_directory(SkillOwner::Project, ".agents/skills", &files, directory.path()),
                skill_directory(SkillOwner::User, "home/skills", &files, directory.path()),
            ]),
            user_rules: None,
            replay: Replay::default(),
            files,
        });
        let state = open_state(directory.path());
        let options = RunOptions { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..RunOptions::default() };
        let run = state.begin_run("run_test", facts(directory.path(), "test"), &options).expect("a run begins");
        Self { directory, clock, gate: Arc::new(gate), run: Arc::new(run), queue: None, state, options }
    }

    /// Adds a sandbox with the strongest confinement available.
    #[must_use]
    pub fn confined(self) -> Self {
        self.confined_with(SandboxOptions::default(), Tier::Bubblewrap)
    }

    /// Adds a sandbox with this tier and no stronger one.
    #[must_use]
    pub fn confined_by(self, tier: Tier) -> Self {
        self.confined_with(SandboxOptions { tier: Some(tier), ..SandboxOptions::default() }, Tier::Bubblewrap)
    }

    /// Adds a sandbox with this tier, which the configuration accepts as sufficient.
    #[must_use]
    pub fn confined_accepting(self, tier: Tier) -> Self {
        self.confined_with(SandboxOptions { tier: Some(tier), ..SandboxOptions::default() }, tier)
    }

    fn confined_with(self, options: SandboxOptions, weakest: Tier) -> Self {
        zygote_before_main();
        let profile = Profile::for_workspace(self.directory.path(), None);
        let confined = SandboxedProcesses::new(profile, options).with_layers(self.state.layers_dir()).at_least(weakest);
        self.with_parts(|parts| parts.processes = Some(Arc::new(confined)))
    }

    /// Adds web access.
    #[must_use]
    pub fn with_web(self, web: Arc<dyn toolgate_contract::Web>) -> Self {
        self.with_parts(|parts| parts.web = Some(web))
    }

    /// Rebuilds the gate with other parts.
    fn with_parts(mut self, change: impl FnOnce(&mut GateParts)) -> Self {
        let mut parts = Arc::into_inner(self.gate).expect("nobody else has the gate yet").into_parts();
        change(&mut parts);
        self.gate = Arc::new(Gate::new(parts));
        self
    }

    /// The same world, with an approval queue at which the calls of new sessions wait this long.
    #[must_use]
    pub fn with_approval_queue(mut self, wait: Duration) -> Self {
        let key = load_or_create_signing_key(&self.state.path().join("test.key")).expect("a key can be made");
        let approvals = Arc::new(self.state.queue(key).expect("the queue opens"));
        self.queue = Some(ApprovalQueueClient { approvals, wait, clock: Arc::clone(&self.clock) as Arc<dyn Clock> });
        self
    }

    /// The workspace's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file into the workspace.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory can be made");
        std::fs::write(path, content).expect("a file can be written");
        self
    }

    /// A recorder for the run.
    pub fn recorder(&self) -> RunRecorder {
        let grants = self.state.session_grants("test", &self.options).expect("the session's directory opens");
        RunRecorder::new(Arc::clone(&self.run), grants)
    }

    /// A session that records into the run, with nobody to approve.
    pub fn session(&self) -> Session {
        let recorder = self.recorder();
        let (grants, _) = recorder.known_grants().expect("grants can be read");
        Session::new("test", "run_test", Arc::new(recorder), Arc::clone(&self.run.artifacts) as _).with_grants(grants)
    }

    /// Begins a session with a run of its own, as a server does for each client. Nobody is there to ask but the approval
    /// queue.
    pub fn begin_session(&self, session: &str) -> (Session, Arc<Run>) {
        let run = format!("run_{}", self.clock.id().simple());
        let run = self.state.begin_run(&run, facts(self.path(), session), &self.options).expect("a run begins");
        let grants = self.state.session_grants(session, &self.options).expect("the session's directory opens");
        let run = Arc::new(run);
        let recorder = RunRecorder::new(Arc::clone(&run), grants);
        let mut session = Session::new(session, &run.id, Arc::new(recorder), Arc::clone(&run.artifacts) as _);
        session.queue.clone_from(&self.queue);
        (session, run)
    }

    /// A call with fixed ids.
    pub fn call(&self, tool: &str, args: Value) -> Call {
        Call::new(tool, args, self.clock.as_ref())
    }

    /// Makes a call in a new session.
    pub async fn perform(&self, tool: &str, args: Value) -> Reply {
        self.perform_in(&self.session(), tool, args).await
    }

    /// Makes a call in this session.
    pub async fn perform_in(&self, session: &Session, tool: &str, args: Value) -> Reply {
        self.gate.perform(self.call(tool, args), session, CancellationToken::new()).await
    }

    /// The events after the start of the run.
    pub fn events(&self) -> Vec<Event> {
        read_events(self.run.path())
            .expect("the journal opens")
            .map(|recorded| recorded.expect("a line can be read").event)
            .filter(|event| !matches!(event.payload, EventPayload::RunStarted(_)))
            .collect()
    }

    /// The kinds of these events, in order.
    pub fn trail(&self) -> Vec<String> {
        let kind = |event: &Event| serde_json::to_value(event).expect("an event is JSON")["kind"].clone();
        self.events().iter().map(|event| kind(event).as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Skills in a directory of the workspace; the test environment has no home directory.
fn skill_directory(owner: SkillOwner, path: &str, files: &Arc<dyn Files>, workspace: &Path) -> SkillDirectory {
    SkillDirectory {
        owner,
        files: Arc::clone(files),
        place: WorkspacePath::in_workspace(path),
        path: path.into(),
        directory: workspace.join(path),
        applies_hidden_paths: true,
    }
}

fn facts(workspace: &Path, session: &str) -> RunFacts {
    RunFacts {
        workspace: workspace.display().to_string(),
        session: session.into(),
        preset: "workspace".into(),
        front_end: "test".into(),
        version: "0".into(),
    }
}

fn open_state(workspace: &Path) -> StateDirectory {
    StateDirectory::open(workspace).expect("the record opens")
}

/// A sink that stores its events.
#[derive(Default)]
pub struct CollectingSink(pub Mutex<Vec<Event>>);

impl EventSink for CollectingSink {
    fn event(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }

    fn live(&self, event: &Event) {
        self.event(event);
    }
}
