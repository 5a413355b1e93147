//! The gate: everything that stands between a call and the world, wired once and shared by all sessions.

mod agent_notes;
mod call_processes;
mod call_walk;
mod change_applier;
mod change_log;
mod cleared;
mod egress;
mod event_writer;
mod in_place_command;
mod person_channel;
mod recover;
mod revert;
mod settle;
mod settling_launcher;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use toolgate_contract::{
    Access, Call, CancellationToken, Clock, Declaration, Denial, Differ, Effect, Files, HiddenPathScanner, HiddenPaths,
    LocatedEffect, ProcessLauncher, QuarantinedPath, Rehearsals, Reply, Right, StagedChanges, ToolError, Verdict, Web,
    WorkspacePath,
};
use toolgate_journal::{BlobStore, RunOptions, SigningKey, StateDirectory};
use toolgate_policy::{Ceiling, Policy, PolicyRequest, RootAccess, Settings};

use self::agent_notes::AgentNotes;
use self::call_walk::CallWalk;
pub(crate) use self::change_log::ChangeLog;
pub use self::cleared::Cleared;
pub use self::egress::CallEgress;
pub(crate) use self::event_writer::EventWriter;
use self::settle::as_git_paths;
pub(crate) use self::settle::{ChangeSelection, ChangeSelector};
use crate::approval::UserRules;
use crate::commit::Commit;
use crate::locks::PathLocks;
use crate::processes::ProcessRegistries;
use crate::read_tracker::ReadTracker;
use crate::redact::Redactor;
use crate::registry::{Registry, RegistryError};
use crate::replay::Replay;
use crate::session::Session;
use crate::skills::SkillDirectory;
use crate::step_timings::StepTimings;
use crate::trim::TrimLimits;

/// The one way to a tool.
pub struct Gate {
    registry: Registry,
    policy: Arc<Policy>,
    settings: Arc<Settings>,
    files: Arc<dyn Files>,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
    hidden_paths: Arc<dyn HiddenPaths>,
    scanner: Arc<HiddenPathScanner>,
    selector: Arc<ChangeSelector>,
    rulebook: Option<Arc<dyn UserRules>>,
    replay: Replay,
    processes: Option<Arc<dyn ProcessLauncher>>,
    web: Option<Arc<dyn Web>>,
    registries: Arc<ProcessRegistries>,
    change_log: Option<Arc<ChangeLog>>,
    differ: Option<Arc<dyn Differ>>,
    note_store: Option<Arc<AgentNotes>>,
    skill_directories: Arc<[SkillDirectory]>,
    versions: Arc<ReadTracker>,
    locks: PathLocks,
}

/// How a call would be judged, without running it.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What it would touch and where that leads.
    pub effects: Vec<LocatedEffect>,
    /// What policy says.
    pub verdict: Verdict,
}

impl Gate {
    /// A gate for these tools, under this policy, on these files.
    pub fn new(
        registry: Registry,
        policy: Policy,
        settings: Settings,
        files: Arc<dyn Files>,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let policy = Arc::new(policy);
        let hidden_paths: Arc<dyn HiddenPaths> = Arc::new(GateHiddenPaths(Arc::clone(&policy)));
        let (quarantine, judged) = (settings.quarantine, Arc::clone(&files));
        let selector = Arc::new(ChangeSelector { files: judged, hidden_paths: Arc::clone(&hidden_paths), quarantine });
        Self {
            registry,
            policy,
            settings: Arc::new(settings),
            files,
            redactor: Arc::new(redactor),
            clock,
            hidden_paths,
            scanner: Arc::default(),
            selector,
            rulebook: None,
            replay: Replay::default(),
            processes: None,
            web: None,
            registries: Arc::default(),
            change_log: None,
            differ: None,
            note_store: None,
            skill_directories: Arc::default(),
            versions: Arc::default(),
            locks: PathLocks::default(),
        }
    }

    /// Lets people say "always": their answer is written down here.
    #[must_use]
    pub fn with_rulebook(mut self, rulebook: Arc<dyn UserRules>) -> Self {
        self.rulebook = Some(rulebook);
        self
    }

    /// Lets tools change files: each change goes through this workspace's record, so that it can be taken back. The key seals
    /// what commands begin with that work straight on the workspace.
    #[must_use]
    pub fn with_changes(mut self, state: StateDirectory, contents: Arc<BlobStore>, key: Option<SigningKey>) -> Self {
        self.change_log = Some(Arc::new(ChangeLog::new(state, contents, key)));
        self
    }

    /// Lets the agent keep books of its own in this workspace's state: things to do, a plan, a memory.
    #[must_use]
    pub fn with_notes(mut self, state: StateDirectory, options: RunOptions) -> Self {
        self.note_store = Some(Arc::new(AgentNotes::new(state, options)));
        self
    }

    /// Lets the agent load skills from these directories; of two skills with one name the first counts.
    #[must_use]
    pub fn with_skills(mut self, skill_directories: Vec<SkillDirectory>) -> Self {
        self.skill_directories = skill_directories.into();
        self
    }

    /// Lets tools run commands, each of them confined. Without this, a call that has to be confined is refused.
    #[must_use]
    pub fn with_processes(mut self, processes: Arc<dyn ProcessLauncher>) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Shows what rehearsed commands would change.
    #[must_use]
    pub fn with_differ(mut self, differ: Arc<dyn Differ>) -> Self {
        self.differ = Some(differ);
        self
    }

    /// Lets these rehearsals be committed, shown and changed by what the gate was given before.
    pub fn with_rehearsals(mut self, rehearsals: Arc<dyn Rehearsals>) -> Result<Self, RegistryError> {
        let (selector, change_log) = (Arc::clone(&self.selector), self.change_log.clone());
        self.registry.add(Commit { rehearsals, selector, change_log, differ: self.differ.clone() }.tool())?;
        Ok(self)
    }

    /// Lets tools fetch over HTTP.
    #[must_use]
    pub fn with_web(mut self, web: Arc<dyn Web>) -> Self {
        self.web = Some(web);
        self
    }

    /// The processes of all sessions, for a person who wants to take hold of one.
    pub fn registries(&self) -> Arc<ProcessRegistries> {
        Arc::clone(&self.registries)
    }

    /// Puts back what a process that was killed left half changed, and on record what commands changed that died with it. A
    /// front end calls this once, before its first call, and shows the warnings.
    pub fn recover(&self, options: &RunOptions) -> Result<Vec<String>, ToolError> {
        match &self.change_log {
            Some(change_log) => change_log.recover(&self.selector, options),
            None => Ok(Vec::new()),
        }
    }

    /// What a commit would keep aside of changes that are kept apart, and why.
    pub fn would_quarantine(&self, staged: &dyn StagedChanges) -> Result<Vec<QuarantinedPath>, ToolError> {
        self.selector.would_quarantine(staged)
    }

    /// How a refused call can be repeated from a shell.
    #[must_use]
    pub fn with_replay(mut self, replay: Replay) -> Self {
        self.replay = replay;
        self
    }

    /// Carries out a call, or says why not. Every call takes this path; there is no other.
    pub async fn perform(&self, call: Call, session: &Session, cancel: CancellationToken) -> Reply {
        self.perform_timed(call, session, cancel).await.0
    }

    /// The same, and where the time went.
    pub async fn perform_timed(
        &self,
        call: Call,
        session: &Session,
        cancel: CancellationToken,
    ) -> (Reply, StepTimings) {
        let mut walk = CallWalk::begin(self, session, call, cancel);
        let outcome = walk.go().await;
        walk.answer(outcome)
    }

    /// Refuses a call that couldn't even be read, and records it like every other.
    pub fn refuse(&self, call: Call, session: &Session, why: ToolError) -> Reply {
        CallWalk::begin(self, session, call, CancellationToken::new()).answer(Err(why)).0
    }

    /// How a call would be judged. Nothing runs and nothing is recorded.
    pub fn judge(&self, call: &Call, ceilings: &[Ceiling]) -> Result<Judgement, ToolError> {
        let tool = self.registry.find(&call.name)?;
        let effects = self.locate(tool.prepare(call)?.effects())?;
        let judged = self.as_judged(&effects);
        let verdict =
            self.policy.judge(&PolicyRequest { tool: tool.declaration(), effects: &judged, ceilings, bounds: None });
        Ok(Judgement { effects, verdict })
    }

    /// How effects that were recorded earlier would be judged now. None if there is no such tool any more.
    pub fn judge_again(&self, tool: &str, effects: Vec<Effect>) -> Option<Result<Verdict, ToolError>> {
        let tool = self.registry.find(tool).ok()?.declaration();
        let (mut stated, mut wider) = (Vec::new(), Vec::new());
        for effect in effects {
            match self.locate(vec![effect.clone()]) {
                Ok(located) => stated.extend(located),
                // What a call got beyond what its tool states lies nowhere in the workspace.
                Err(_) if Right::of(&effect).is_some() => wider.push(effect),
                Err(error) => return Some(Err(error)),
            }
        }
        let judged = self.as_judged(&stated);
        let question = PolicyRequest { tool, effects: &judged, ceilings: &[], bounds: None };
        Some(Ok(self.policy.judge_wider(&question, &wider)))
    }

    /// What policy is asked about: the effects, and what they are to git.
    fn as_judged<'e>(&self, effects: &'e [LocatedEffect]) -> Cow<'e, [LocatedEffect]> {
        match as_git_paths(effects, self.files.as_ref()) {
            more if more.is_empty() => effects.into(),
            more => [effects, &more].concat().into(),
        }
    }

    /// The tools that a session may use at all, by name.
    pub fn offered<'a>(&'a self, ceilings: &'a [Ceiling]) -> impl Iterator<Item = &'a Declaration> {
        self.registry.declarations().filter(move |tool| self.policy.offers(tool, ceilings))
    }

    /// All tools, whether policy offers them or not.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.registry.declarations()
    }

    /// What replaces secrets, for front ends that show more than replies.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Tells the time and makes ids, as the record does.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn locate(&self, effects: Vec<Effect>) -> Result<Vec<LocatedEffect>, ToolError> {
        self.files.locate(effects)
    }

    /// The workspace, and the other roots that configuration lets tools change.
    fn changeable_roots(&self) -> Vec<usize> {
        let others = self.settings.roots.iter().enumerate().filter(|(_, root)| root.access == RootAccess::Write);
        [0].into_iter().chain(others.map(|(index, _)| index + 1)).collect()
    }

    fn limits(&self, tool: &str, longest: Option<Duration>) -> (TrimLimits, Duration) {
        let limits = self.settings.limits_of(tool, longest);
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let output =
            TrimLimits { lines: size(limits.lines), bytes: size(limits.bytes), line_chars: size(limits.line_chars) };
        (output, Duration::from_secs(limits.timeout_seconds))
    }
}

/// What policy hides, as the hands see it.
struct GateHiddenPaths(Arc<Policy>);

impl HiddenPaths for GateHiddenPaths {
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool {
        self.0.hides(access, place)
    }

    fn denial(&self, place: &WorkspacePath, shown: &str) -> Denial {
        self.0.denial_of(place, shown)
    }
}
