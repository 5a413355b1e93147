//! The gate: everything between a call and the machine, wired once and shared by all sessions.

mod agent_notes;
mod approval_options;
mod call_processes;
mod call_record;
mod command_settlement;
mod egress;
mod entrusting;
mod event_writer;
mod hands;
mod language_calls;
mod outgoing;
mod path;
mod person_channel;
mod refusals;
mod server_calls;
mod server_launch;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use toolgate_changes::WorkspaceChanges;
use toolgate_config::Settings;
use toolgate_contract::{
    Call, CancellationToken, Clock, CodeIntelligence, Declaration, Effect, Files, HiddenPaths, LocatedEffect, MCP_READ,
    MCP_RESOURCES, Permission, ProcessLauncher, Reply, Right, SearchIndex, SkillCandidate, Skills, TOOLS_FIND,
    TOOLS_USE, ToolError, Verdict, Web,
};
use toolgate_policy::{Ceiling, Policy, PolicyRequest};
use toolgate_redact::Redactor;

pub use self::agent_notes::AgentNotes;
pub(crate) use self::approval_options::what_is_granted;
use self::call_record::CallRecord;
pub(crate) use self::command_settlement::CommandSettlement;
pub use self::egress::CallEgress;
pub use self::entrusting::ClientEnding;
pub(crate) use self::event_writer::EventWriter;
pub(crate) use self::outgoing::FlowLabels;
pub use self::path::Cleared;
pub use self::server_calls::ToolServers;
use crate::hidden_path_scanner::HiddenPathScanner;
use crate::locks::PathLocks;
use crate::processes::ProcessRegistries;
use crate::registry::{RegisteredTool, Registry};
use crate::registry_history::RegistryHistory;
use crate::replay::Replay;
use crate::server_lists::{ServerListChange, ServerLists};
use crate::servers::RunningLanguageServers;
use crate::session::Session;
use crate::skills::{SkillDirectory, SkillLoader};
use crate::step_timings::StepTimings;
use crate::trim::TrimLimits;
use crate::workspace_facts::{ContentHiddenPaths, SessionFacts};

/// Tools that people use and models aren't told of: to apply a rehearsal is a person's decision.
const FOR_PEOPLE: &[&str] = &["commit"];

/// The parts of a gate. Calls that need an optional part that is missing are refused.
pub struct GateParts {
    /// The tools.
    pub registry: Registry,
    /// Judges calls.
    pub policy: Arc<Policy>,
    /// The settings of configuration other than rules.
    pub settings: Arc<Settings>,
    /// The workspace's files and those of the other roots.
    pub files: Arc<dyn Files>,
    /// Replaces secrets.
    pub redactor: Arc<Redactor>,
    /// The source of times and ids.
    pub clock: Arc<dyn Clock>,
    /// What changes go through.
    pub changes: Arc<WorkspaceChanges>,
    /// Runs commands, each of them confined.
    pub processes: Option<Arc<dyn ProcessLauncher>>,
    /// Other MCP servers.
    pub servers: Arc<ToolServers>,
    /// Answers questions about code.
    pub code: Option<Arc<dyn CodeIntelligence>>,
    /// Fetches over HTTP.
    pub web: Option<Arc<dyn Web>>,
    /// Ranks places for a question.
    pub search: Option<Arc<dyn SearchIndex>>,
    /// Stores the agent's own notes.
    pub notes: Option<Arc<AgentNotes>>,
    /// The directories of skills; of two skills with the same name the first counts.
    pub skill_directories: Arc<[SkillDirectory]>,
    /// How a refused call can be repeated from a shell.
    pub replay: Replay,
}

/// The only way to a tool.
pub struct Gate {
    /// Its parts; what was in `registry` is in `tools`.
    parts: GateParts,
    tools: Arc<RegistryHistory>,
    /// What other servers list now.
    lists: Arc<ServerLists>,
    scanner: Arc<HiddenPathScanner>,
    registries: Arc<ProcessRegistries>,
    locks: Arc<PathLocks>,
    /// Language servers, shared by all sessions: policy is the same for all of them.
    languages: Arc<RunningLanguageServers>,
}

/// How a call would be judged, without running it.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What it would touch, with the paths resolved.
    pub effects: Vec<LocatedEffect>,
    /// What policy says.
    pub verdict: Verdict,
}

impl Gate {
    /// A gate made of these parts.
    pub fn new(mut parts: GateParts) -> Self {
        let languages = Arc::new(RunningLanguageServers::new("language server"));
        let tools = Arc::new(RegistryHistory::new(std::mem::take(&mut parts.registry)));
        let lists = ServerLists::new(Arc::clone(&tools));
        let (scanner, registries, locks) = (Arc::default(), Arc::default(), Arc::default());
        Self { parts, tools, lists, scanner, registries, locks, languages }
    }

    /// Its parts, to make another gate of them.
    pub fn into_parts(self) -> GateParts {
        GateParts { registry: self.tools.current().clone(), ..self.parts }
    }

    /// Changes the tools: calls that begin from now on find the changed ones.
    pub fn change_tools(&self, change: impl FnOnce(&mut Registry)) {
        self.tools.change(change);
    }

    /// Hears when lists change because of other servers.
    pub fn server_list_changes(&self) -> broadcast::Receiver<ServerListChange> {
        self.lists.subscribe()
    }

    /// Performs a call, or returns why it was refused. Every call takes this path; there is no other.
    pub async fn perform(&self, call: Call, session: &Session, cancel: CancellationToken) -> Reply {
        self.perform_timed(call, session, cancel).await.0
    }

    /// Performs a call, and returns how long each step took.
    pub async fn perform_timed(
        &self,
        call: Call,
        session: &Session,
        cancel: CancellationToken,
    ) -> (Reply, StepTimings) {
        let own = cancel.child_token();
        let performing = path::perform(CallRecord::new(self, session, self.unwrapped(call), own.clone()));
        tokio::pin!(performing);
        tokio::select! {
            biased;
            done = &mut performing => return done,
            () = session.aborted() => own.cancel(),
        }
        // What the call had begun is settled and recorded before it ends.
        performing.await
    }

    /// The call that one of `tools_use` stands for, if that is a tool of another server.
    fn unwrapped(&self, call: Call) -> Call {
        if call.name != TOOLS_USE {
            return call;
        }
        let inner = call.clone().unwrapped();
        let is_of_server = |tool: &Declaration| tool.required_permissions.contains(&Permission::McpCall);
        match self.find(&inner.name, None) {
            Ok(tool) if !is_of_server(tool.declaration()) => call,
            _ => inner,
        }
    }

    /// The tool of this name: everybody's, or one that the session's own client registered.
    fn find(&self, name: &str, session: Option<&Session>) -> Result<Arc<RegisteredTool>, ToolError> {
        let own = session.and_then(|session| session.client_tools.find(name));
        own.map_or_else(|| self.tools.current().find(name).map_err(|error| self.of_unapproved_server(name, error)), Ok)
    }

    /// Says that a tool may be missing because nothing of its server is approved, or because the server can't be used here.
    fn of_unapproved_server(&self, name: &str, error: ToolError) -> ToolError {
        let is_its = |server: &&String| name.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with("__"));
        let Some(server) = self.parts.settings.mcp_servers.keys().find(is_its) else { return error };
        if self.tools.current().approved_definitions().any(|(_, approved)| approved.server == server) {
            return error;
        }
        error.with_hint(match self.has_server(server) {
            true => format!(
                "Nothing of the MCP server `{server}` is approved. Ask the person to run: toolgate mcp approve {server}"
            ),
            false => {
                format!(
                    "The MCP server `{server}` can't be used here. Ask the person to run: toolgate mcp approve {server}"
                )
            }
        })
    }

    /// Whether there is a tool of this name for every session.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.current().find(name).is_ok()
    }

    /// Whether there is another server of this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.parts.servers.contains_key(name)
    }

    /// Refuses a call that couldn't be parsed, and records it like every other.
    pub fn refuse(&self, call: Call, session: &Session, why: ToolError) -> Reply {
        path::refuse(CallRecord::new(self, session, call, CancellationToken::new()), why)
    }

    /// How a call would be judged. Nothing runs and nothing is recorded.
    pub fn judge(&self, call: &Call, ceilings: &[Ceiling]) -> Result<Judgement, ToolError> {
        let call = &self.unwrapped(call.clone());
        let tool = self.find(&call.name, None)?;
        let effects = self.parts.files.locate(tool.prepare(call)?.effects())?;
        let judged = self.parts.changes.judged_effects(&effects);
        let question = PolicyRequest { tool: tool.declaration(), effects: &judged, ceilings, bounds: None };
        let verdict = self.parts.policy.judge_with(&question, &[], &self.facts(None));
        Ok(Judgement { effects, verdict })
    }

    /// How effects that were recorded earlier would be judged now. None if there is no such tool any more.
    pub fn judge_again(&self, tool: &str, effects: Vec<Effect>) -> Option<Result<Verdict, ToolError>> {
        self.judge_again_by(&self.parts.policy, tool, effects)
    }

    /// How effects that were recorded earlier would be judged by another policy, such as a draft.
    pub fn judge_again_by(
        &self,
        policy: &Policy,
        tool: &str,
        effects: Vec<Effect>,
    ) -> Option<Result<Verdict, ToolError>> {
        let tool = self.find(tool, None).ok()?;
        let tool = tool.declaration();
        let (mut stated, mut wider) = (Vec::new(), Vec::new());
        for effect in effects {
            match self.parts.files.locate(vec![effect.clone()]) {
                Ok(located) => stated.extend(located),
                // A right beyond what the tool states may be a path outside of all roots, which can't be located.
                Err(_) if Right::of(&effect).is_some() => wider.push(effect),
                Err(error) => return Some(Err(error)),
            }
        }
        let judged = self.parts.changes.judged_effects(&stated);
        let question = PolicyRequest { tool, effects: &judged, ceilings: &[], bounds: None };
        Some(Ok(policy.judge_with(&question, &wider, &self.facts(None))))
    }

    /// What changes go through, for front ends that recover after a kill or preview a commit.
    pub fn changes(&self) -> &Arc<WorkspaceChanges> {
        &self.parts.changes
    }

    /// The processes of all sessions, for a person who wants to attach to one.
    pub fn registries(&self) -> Arc<ProcessRegistries> {
        Arc::clone(&self.registries)
    }

    /// The tools that a session may use at all, by name.
    pub fn offered<'a>(&'a self, ceilings: &'a [Ceiling]) -> impl Iterator<Item = &'a Declaration> {
        self.tools.current().declarations().filter(move |tool| self.parts.policy.offers(tool, ceilings))
    }

    /// The tools of `offered` without those whose servers define them differently now.
    fn offered_as_approved<'a>(&'a self, ceilings: &'a [Ceiling]) -> impl Iterator<Item = &'a Declaration> {
        let withheld = self.lists.withheld();
        self.offered(ceilings).filter(move |tool| !withheld.contains(&tool.name))
    }

    /// The tools that a model is told of: those that the session may use, without those that people use, unless a
    /// ceiling asks for one by name. Where other servers have many, it is told of two that find and use them instead.
    pub fn listed_for_models<'a>(&'a self, ceilings: &'a [Ceiling]) -> impl Iterator<Item = &'a Declaration> {
        self.listed(ceilings, self.parts.settings.mcp_listed_tools)
    }

    /// The tools that a client is told of which finds those for a task by itself, however many there are.
    pub fn listed_for_searching_clients<'a>(
        &'a self,
        ceilings: &'a [Ceiling],
    ) -> impl Iterator<Item = &'a Declaration> {
        self.listed(ceilings, u64::MAX)
    }

    fn listed<'a>(&'a self, ceilings: &'a [Ceiling], most: u64) -> impl Iterator<Item = &'a Declaration> {
        let is_named = |tool: &Declaration| ceilings.iter().any(|ceiling| ceiling.tools.contains(&tool.name));
        let reads_resources = |tool: &Declaration| matches!(tool.name.as_str(), MCP_RESOURCES | MCP_READ);
        let of_server = move |tool: &Declaration| {
            tool.required_permissions.contains(&Permission::McpCall) && !reads_resources(tool)
        };
        let is_finder = |tool: &Declaration| matches!(tool.name.as_str(), TOOLS_FIND | TOOLS_USE);
        let others = self.offered_as_approved(ceilings).filter(|tool| of_server(tool) && !is_finder(tool)).count();
        let has_many = others as u64 > most;
        self.offered_as_approved(ceilings).filter(move |tool| match is_finder(tool) {
            true => has_many,
            false if of_server(tool) => !has_many || is_named(tool),
            false => !FOR_PEOPLE.contains(&tool.name.as_str()) || is_named(tool),
        })
    }

    /// All tools, whether policy offers them or not.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tools.current().declarations()
    }

    /// The declaration of the tool of that name, whether policy offers it or not.
    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.tools.current().declaration(name)
    }

    /// The programs of the machine that tools need, each with the name of its tool.
    pub fn required_commands(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.tools.current().required_commands()
    }

    /// All directories that may be skills, each with the interpreters of its scripts.
    pub fn skills(&self) -> Result<Vec<(SkillCandidate, Vec<String>)>, ToolError> {
        let loader = SkillLoader {
            skill_directories: Arc::clone(&self.parts.skill_directories),
            hidden_paths: self.hidden_paths(),
            settings: Arc::clone(&self.parts.settings),
            active: Arc::default(),
            changes: Arc::clone(&self.parts.changes),
            run: String::new(),
            now: self.parts.clock.now(),
            until: None,
        };
        let with_interpreters = |skill: SkillCandidate| {
            let interpreters = loader.interpreters(&skill);
            (skill, interpreters)
        };
        Ok(loader.directories()?.into_iter().map(with_interpreters).collect())
    }

    /// The redactor, for front ends that show more than replies.
    pub fn redactor(&self) -> &Redactor {
        &self.parts.redactor
    }

    /// The source of times and ids that the record uses.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// The settings of configuration other than rules.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.parts.policy
    }

    /// Begins to look for paths that commands must not see, so that the first command needn't wait for that. Servers do so
    /// before anybody calls a tool.
    pub fn look_ahead(&self) {
        if self.parts.processes.is_some() {
            let (scanner, files, hidden) =
                (Arc::clone(&self.scanner), Arc::clone(&self.parts.files), self.hidden_paths());
            // The command itself looks again, and reports what went wrong.
            tokio::task::spawn_blocking(move || drop(scanner.restricted_paths(files.as_ref(), hidden.as_ref())));
        }
    }

    fn hidden_paths(&self) -> Arc<dyn HiddenPaths> {
        Arc::new(ContentHiddenPaths::new(Arc::clone(&self.parts.policy), Arc::clone(&self.parts.files)))
    }

    /// What policy needs to know beyond names.
    fn facts<'a>(&'a self, session: Option<&'a str>) -> SessionFacts<'a> {
        SessionFacts { files: self.parts.files.as_ref(), changes: self.parts.changes.as_ref(), session }
    }

    fn limits(&self, tool: &str, longest: Option<Duration>) -> (TrimLimits, Duration) {
        let limits = self.parts.settings.limits_of(tool, longest);
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let output =
            TrimLimits { lines: size(limits.lines), bytes: size(limits.bytes), line_chars: size(limits.line_chars) };
        (output, Duration::from_secs(limits.timeout_seconds))
    }
}
