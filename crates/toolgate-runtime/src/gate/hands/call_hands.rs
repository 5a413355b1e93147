//! The hands of one call: they refuse what wasn't declared, and count what the tool does.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_contract::{
    Access, Agents, AllowedTools, ArtifactRef, Artifacts, BlockingWork, BoxFuture, CancellationToken, Changes,
    CodeAnswer, CodeQuestion, Effect, EgressPolicy, ErrorCode, Files, Guarantee, Hands, HiddenPaths, LocatedEffect,
    Message, NoteKind, NoteUpdate, Notes, Person, Preview, ProcessTable, Question, QuestionOutcome, ResourceRequest,
    SearchAnswer, SearchIndex, SearchQuestion, ServerCall, ServerDescription, ServerReply, SkillCandidate, Skills,
    ToolError, Web, WebRequest, WebResponse, WorkspacePath,
};

use super::effect_index::EffectIndex;
use super::tally::{FurtherEffects, Tally};
use super::unfinished::UnfinishedWork;
use crate::gate::language_calls::LanguageCalls;
use crate::gate::server_calls::ServerCalls;
use crate::hidden_hard_links::HiddenHardLinks;
use crate::hidden_path_scanner::HiddenPathScanner;

/// The services behind the hands.
#[derive(Clone)]
pub(super) struct ToolServices {
    /// Files beneath the roots.
    pub(super) files: Arc<dyn Files>,
    /// Changes to files, and their versions.
    pub(super) changes: Arc<dyn Changes>,
    /// Stored output.
    pub(super) artifacts: Arc<dyn Artifacts>,
    /// The person at the front end.
    pub(super) person: Arc<dyn Person>,
    /// The agent's notes.
    pub(super) notes: Arc<dyn Notes>,
    /// Skills.
    pub(super) skills: Arc<dyn Skills>,
    /// The paths that policy hides.
    pub(super) hidden_paths: Arc<dyn HiddenPaths>,
    /// Finds them in the workspace.
    pub(super) scanner: Arc<HiddenPathScanner>,
    /// The session's processes.
    pub(super) processes: Arc<dyn ProcessTable>,
    /// Other MCP servers.
    pub(super) servers: Arc<ServerCalls>,
    /// Language servers.
    pub(super) languages: Arc<LanguageCalls>,
    /// HTTP access; none if nothing can be fetched.
    pub(super) web: Option<Arc<dyn Web>>,
    /// The search index; none if nothing is indexed here.
    pub(super) search: Option<Arc<dyn SearchIndex>>,
    /// The egress policy; none if nothing may be reached.
    pub(super) egress: Option<Arc<dyn EgressPolicy>>,
    /// Agents that the call may start; none if no agent is running.
    pub(super) agents: Option<Arc<dyn Agents>>,
    /// Whether the caller ends with its call, so that nobody would return for a process that continues.
    pub(super) waits: bool,
    /// Whether policy reads the call's commands as ones that change nothing.
    pub(super) only_reads: bool,
    /// The call that these services are for.
    pub(super) tool_call_id: String,
    /// Cancels the call.
    pub(super) cancel: CancellationToken,
}

/// The hands of one cleared call. Clones share the tally, so that work can move to another thread.
#[derive(Clone)]
pub(in crate::gate) struct CallHands {
    pub(super) granted: Arc<[LocatedEffect]>,
    index: Arc<EffectIndex>,
    /// The hidden files with several names, found when a file with several names is first opened.
    hard_links: Arc<OnceLock<Result<HiddenHardLinks, ToolError>>>,
    pub(super) services: ToolServices,
    pub(super) tally: Arc<Mutex<Tally>>,
    pub(super) unfinished: UnfinishedWork,
}

impl CallHands {
    /// Hands with the effects `granted`, through these services.
    pub(super) fn new(granted: impl Into<Arc<[LocatedEffect]>>, services: ToolServices) -> Self {
        let granted: Arc<[LocatedEffect]> = granted.into();
        Self {
            index: Arc::new(EffectIndex::of(&granted)),
            hard_links: Arc::default(),
            granted,
            services,
            tally: Arc::default(),
            unfinished: UnfinishedWork::default(),
        }
    }

    /// The tally so far.
    pub(in crate::gate) fn tally(&self) -> Tally {
        self.tally.lock().clone()
    }

    /// Runs long work on a thread that may block. When the call is cancelled, the work continues until it checks
    /// [`Hands::is_cancelled`], and the call waits for that.
    pub(in crate::gate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let hands = self.clone();
        match self.unfinished.tasks.spawn_blocking(move || work(&hands)).await {
            Ok(outcome) => outcome,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ToolError::cancelled()),
            },
        }
    }

    /// Adds to the tally.
    pub(super) fn note(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }

    /// The resolved path of a path exactly as declared.
    pub(super) fn declared(&self, access: Access, path: &str) -> Result<WorkspacePath, ToolError> {
        self.index.declared(access, path).cloned().ok_or_else(|| undeclared(&format!("{access:?} `{path}`")))
    }

    /// Denies a path that no declared effect covers, or that policy hides unless it is restored.
    pub(super) fn reach(&self, access: Access, place: &WorkspacePath) -> Result<(), ToolError> {
        let is_restored = self.index.restores(access, place);
        if !is_restored && !self.index.covers(access, place) {
            return Err(undeclared(&format!("{access:?} `{}`", place.path)));
        }
        if !is_restored && self.services.hidden_paths.hides(access, place) {
            return Err(ToolError::new(
                ErrorCode::SensitivePath,
                format!("`{}` is hidden from tools by policy.", place.path),
            ));
        }
        self.note(|tally| {
            tally.enforced.0.insert(Guarantee::Paths, self.services.files.holding());
        });
        Ok(())
    }

    /// Refuses an open file that policy hides under another name.
    pub(super) fn refuse_hidden_link(&self, place: &WorkspacePath, file: &File) -> Result<(), ToolError> {
        let facts = file.metadata().map_err(|error| ToolError::io("A file can't be examined", &error))?;
        if facts.nlink() < 2 || self.index.restores(Access::Read, place) {
            return Ok(());
        }
        let (files, hidden_paths) = (self.services.files.as_ref(), self.services.hidden_paths.as_ref());
        let links = self.hard_links.get_or_init(|| self.services.scanner.hard_links(files, hidden_paths));
        let links = links.as_ref().map_err(Clone::clone)?;
        match links.hidden_name((facts.dev(), facts.ino())) {
            None => Ok(()),
            Some(hidden) => {
                let (shown, hidden) = (files.shown(place), files.shown(hidden));
                let message = format!("`{shown}` is a hard link to `{hidden}`, which is hidden from tools by policy.");
                Err(ToolError::new(ErrorCode::SensitivePath, message))
            }
        }
    }

    /// Denies what no granted effect is.
    pub(super) fn need(&self, wanted: impl Fn(&Effect) -> bool, what: &str) -> Result<(), ToolError> {
        match self.granted.iter().any(|located| wanted(&located.effect)) {
            true => Ok(()),
            false => Err(undeclared(what)),
        }
    }
}

impl Hands for CallHands {
    fn run(&self) -> &str {
        self.services.changes.run()
    }

    fn call(&self) -> &str {
        &self.services.tool_call_id
    }

    fn cancelled(&self) -> CancellationToken {
        self.services.cancel.clone()
    }

    fn is_cancelled(&self) -> bool {
        self.services.cancel.is_cancelled()
    }

    fn run_blocking(&self, work: BlockingWork) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.blocking(move |hands| {
            work(hands);
            Ok(())
        }))
    }

    fn say(&self, message: &Message) -> Result<bool, ToolError> {
        self.need(|effect| matches!(effect, Effect::Speak), "speak to the person")?;
        Ok(self.services.person.say(message))
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<QuestionOutcome, ToolError>> {
        Box::pin(async move {
            self.need(|effect| matches!(effect, Effect::Speak), "speak to the person")?;
            self.services.person.ask(question).await
        })
    }

    fn stored_notes(&self, book: NoteKind) -> Result<Option<Value>, ToolError> {
        self.need(
            |effect| matches!(effect, Effect::Note { book: declared, .. } if *declared == book),
            "read these notes",
        )?;
        self.services.notes.read(book)
    }

    fn rewrite_stored(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        let wanted = Effect::Note { book, access: Access::Write };
        self.need(|effect| *effect == wanted, "write these notes")?;
        self.services.notes.rewrite(book, change)
    }

    fn skills(&self) -> Result<Vec<SkillCandidate>, ToolError> {
        self.need(|effect| matches!(effect, Effect::Skill { .. }), "list skills")?;
        self.services.skills.directories()
    }

    fn skill_file(&self, skill: &str, path: &str) -> Result<Vec<u8>, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::Skill { name: Some(name) } if name == skill);
        self.need(is_it, "read a file of that skill")?;
        self.services.skills.file(skill, path)
    }

    fn activate(&self, skill: &SkillCandidate, tools: Vec<String>) -> Result<AllowedTools, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::Skill { name: Some(name) } if *name == skill.name);
        self.need(is_it, "load that skill")?;
        self.services.skills.activate(skill, tools)
    }

    fn recall(&self, id: &str) -> Result<(ArtifactRef, File), ToolError> {
        self.need(|effect| matches!(effect, Effect::Recall { artifact } if artifact == id), "recall that artifact")?;
        self.services.artifacts.open(id)
    }

    fn keep(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError> {
        let stored = self.services.artifacts.store(bytes, mime)?;
        self.note(|tally| tally.refs.push(stored.clone()));
        Ok(stored)
    }

    fn more(&self, cursor: String) {
        self.note(|tally| tally.next_cursor = Some(cursor));
    }

    fn fetch<'a>(
        &'a self,
        request: WebRequest,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<WebResponse, ToolError>> {
        Box::pin(async move {
            let declared =
                |effect: &Effect| matches!(effect, Effect::Connect { host: h, port: p } if h == host && *p == port);
            self.need(declared, "connect there")?;
            let (Some(web), Some(egress)) = (&self.services.web, &self.services.egress) else {
                return Err(ToolError::new(ErrorCode::NetworkDenied, "The network isn't available here."));
            };
            web.fetch(request, egress.as_ref()).await
        })
    }

    fn search(&self, question: &SearchQuestion) -> Result<SearchAnswer, ToolError> {
        let index = self.services.search.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::ToolNotAllowed, "There is no search index here.")
                .with_hint("Use `grep` with words that the code would have.")
        })?;
        question.paths.iter().try_for_each(|path| self.declared(Access::Read, path).map(drop))?;
        index.search(question, self)
    }

    fn call_server<'a>(&'a self, server: &'a str, call: ServerCall) -> BoxFuture<'a, Result<ServerReply, ToolError>> {
        Box::pin(self.use_server(server, call))
    }

    fn server_resource<'a>(
        &'a self,
        server: &'a str,
        request: ResourceRequest,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(self.ask_resource(server, request))
    }

    fn describe_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<ServerDescription, ToolError>> {
        Box::pin(self.start_server(server))
    }

    fn ask_about_code(&self, question: CodeQuestion) -> BoxFuture<'_, Result<CodeAnswer, ToolError>> {
        Box::pin(self.ask_language_servers(question))
    }

    fn state_further(&self, effects: Vec<Effect>, preview: Preview) -> Result<(), ToolError> {
        let is_granted = |wanted: &Effect| self.granted.iter().any(|granted| granted.effect == *wanted);
        if effects.iter().all(is_granted) {
            return Ok(());
        }
        self.note(|tally| tally.further = Some(FurtherEffects { effects, preview }));
        let message = "What the call would change is something else by now. Nothing was changed.";
        Err(ToolError::new(ErrorCode::StaleFile, message).with_hint("Make the call once more."))
    }

    fn agents(&self, agent: &str) -> Result<(&dyn Agents, &str), ToolError> {
        self.need(|effect| matches!(effect, Effect::Delegate { agent: declared } if declared == agent), "delegate")?;
        let agents = self.services.agents.as_deref().ok_or_else(|| {
            ToolError::new(ErrorCode::ToolNotAllowed, "No agent is running here that could start others.")
                .with_hint("Do the work yourself, or start it with `toolgate run`.")
        })?;
        Ok((agents, &self.services.tool_call_id))
    }
}

/// The error for a tool that uses something it didn't declare: a fault of the tool, and nothing was touched.
fn undeclared(what: &str) -> ToolError {
    ToolError::internal(format!("The tool tried to {} without declaring it.", what.to_lowercase()))
}
