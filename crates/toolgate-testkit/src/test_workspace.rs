//! A completely wired workspace in a temporary directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_config::{ConfigPaths, FlagLayer};
use toolgate_contract::{
    AnyTool, ApprovalScope, Call, CancellationToken, Clock, Event, EventPayload, Files, Reply, SkillOwner,
    WorkspacePath,
};
use toolgate_journal::{Run, RunRecorder, read_events};
use toolgate_runtime::{ApprovalAnswer, ApprovalQueueClient, EventSink, GateParts, Session, SkillDirectory};
use toolgate_sandbox::process::{SandboxOptions, Tier, zygote_before_main};
use toolgate_workspace::{RunChoice, Workspace, WorkspaceLocation, WorkspaceOptions, sandboxed_processes};

use crate::{FrozenClock, ScriptedApprover};

/// A temporary workspace, opened as every front end opens one, and a run that records.
pub struct TestWorkspace {
    directory: Arc<TempDir>,
    /// The user's configuration and state, which no workspace holds.
    home: Arc<TempDir>,
    location: WorkspaceLocation,
    /// The clock of this workspace.
    pub clock: Arc<FrozenClock>,
    /// The run that calls are recorded in.
    pub run: Arc<Run>,
    workspace: Arc<Workspace>,
}

impl Deref for TestWorkspace {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl TestWorkspace {
    /// A workspace with these tools, under this user configuration (TOML).
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, config: &str) -> Self {
        Self::new_in(&std::env::temp_dir(), tools, config)
    }

    /// Like [`Self::new`], in a temporary directory inside `directory`.
    pub fn new_in(directory: &Path, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, config: &str) -> Self {
        let directory = Arc::new(tempfile::tempdir_in(directory).expect("a temporary directory"));
        let home = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        Self::opened(directory, home, "run_test", tools, config)
    }

    /// The same workspace and user, opened once more as another program would, under this configuration and in a run of
    /// its own.
    pub fn reopened(&self, run: &str, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, config: &str) -> Self {
        Self::opened(Arc::clone(&self.directory), Arc::clone(&self.home), run, tools, config)
    }

    fn opened(
        directory: Arc<TempDir>,
        home: Arc<TempDir>,
        run: &str,
        tools: impl IntoIterator<Item = Arc<dyn AnyTool>>,
        config: &str,
    ) -> Self {
        let clock = Arc::new(FrozenClock::default());
        let location = location(directory.path(), home.path(), config);
        let workspace = Workspace::open(&location, options(tools, &clock)).expect("a test's workspace opens");
        let workspace = workspace_for_tests(workspace, directory.path());
        let choice = RunChoice { run: None, session: "test".into(), front_end: "test" };
        let run = workspace.begin_as(run, &choice).expect("a run begins").run;
        Self { directory, home, location, clock, run, workspace: Arc::new(workspace) }
    }

    /// Where the workspace is, and by which rules.
    pub fn location(&self) -> &WorkspaceLocation {
        &self.location
    }

    /// The workspace, for a server.
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.workspace)
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
        let settings = self.location.load().expect("a test's configuration is right").settings;
        let layers = self.state.layers_dir();
        let confined = sandboxed_processes(&self.location, &settings, &environment(), options).with_layers(layers);
        let confined = confined.at_least(weakest);
        self.with_parts(|parts| parts.processes = Some(Arc::new(confined)))
    }

    /// Adds web access.
    #[must_use]
    pub fn with_web(self, web: Arc<dyn toolgate_contract::Web>) -> Self {
        self.with_parts(|parts| parts.web = Some(web))
    }

    /// Has `search` ask this index.
    #[must_use]
    pub fn with_search(self, index: Arc<dyn toolgate_contract::SearchIndex>) -> Self {
        self.with_parts(|parts| parts.search = Some(index))
    }

    fn with_parts(mut self, change: impl FnOnce(&mut GateParts)) -> Self {
        let workspace = Arc::into_inner(self.workspace).expect("nobody else has the workspace yet");
        self.workspace = Arc::new(workspace.with_parts(change));
        self
    }

    /// The same workspace, with an approval queue at which the calls of new sessions wait this long.
    #[must_use]
    pub fn with_approval_queue(mut self, wait: Duration) -> Self {
        let approvals = Arc::new(self.location.approvals().expect("the queue opens"));
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let workspace = Arc::get_mut(&mut self.workspace).expect("nobody else has the workspace yet");
        workspace.approvals = Some(ApprovalQueueClient { approvals, wait, clock });
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

    /// What a person does with git in the workspace, outside of the gate. No configuration of the machine counts.
    pub fn git(&self, args: &[&str]) -> String {
        let done = std::process::Command::new("git")
            .args(args)
            .current_dir(self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git can be started");
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("git writes text")
    }

    /// Makes the workspace a git repository, whose author has a name and which ignores these patterns.
    pub fn git_init(&self, ignored: &str) -> &Self {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["config", "user.name", "Ada"]);
        self.git(&["config", "user.email", "ada@example.org"]);
        self.file(".git/info/exclude", ignored)
    }

    /// A recorder for the run.
    pub fn recorder(&self) -> RunRecorder {
        self.recorder_of(&self.run, "test").expect("the session's directory opens")
    }

    /// A session that records into the run, with nobody to approve.
    pub fn session(&self) -> Session {
        self.session_in(Arc::clone(&self.run), "test").expect("grants can be read").session
    }

    /// A session in which every ask is answered yes.
    pub fn approving_session(&self) -> Session {
        let yes = (0..100).map(|_| ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() });
        self.session().approved_by(Arc::new(ScriptedApprover::with(yes)))
    }

    /// A call with fixed ids.
    pub fn call(&self, tool: &str, args: Value) -> Call {
        Call::new(tool, args, self.clock.as_ref())
    }

    /// Runs a script with the tool `shell`, and these further arguments. Policy can't read what a script is about to touch.
    pub async fn run_script(&self, script: &str, more: Value) -> Value {
        self.file("do.sh", script);
        let mut args = json!({ "command": "sh do.sh" });
        args.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let reply = self.perform("shell", args).await;
        reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
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

/// The workspace under this user configuration. Nothing of the machine's own configuration counts.
fn location(directory: &Path, home: &Path, config: &str) -> WorkspaceLocation {
    let paths = ConfigPaths {
        managed: home.join("managed.toml"),
        user: home.join("config.toml"),
        state: home.join("state"),
        runtime: None,
    };
    std::fs::write(&paths.user, config).expect("a file can be written");
    let found = WorkspaceLocation::find(directory, paths, FlagLayer::default());
    let mut location = found.expect("the workspace is found");
    location.home = None;
    location
}

/// Only these tools, a frozen clock, a known secret, and no sandbox until it is asked for.
fn options(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, clock: &Arc<FrozenClock>) -> WorkspaceOptions {
    WorkspaceOptions {
        tools: tools.into_iter().collect(),
        secrets: vec![("TEST_TOKEN".to_owned(), "correct-horse-battery".to_owned())],
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        environment: environment(),
        sandbox: None,
        indexed: false,
        owner: "ada".into(),
        ..WorkspaceOptions::new(Arc::new(|warning| eprintln!("warning: {warning}")))
    }
}

/// What commands of tests need of the environment.
fn environment() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().filter(|(name, _)| name == "PATH").collect()
}

/// Without an approval queue and web access until they are asked for, and with skills in the workspace.
fn workspace_for_tests(mut workspace: Workspace, directory: &Path) -> Workspace {
    workspace.approvals = None;
    workspace.with_parts(|parts| {
        parts.web = None;
        parts.skill_directories = Arc::new([
            skill_directory(SkillOwner::Project, ".agents/skills", &parts.files, directory),
            skill_directory(SkillOwner::User, "home/skills", &parts.files, directory),
        ]);
    })
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
