//! The only access that a cleared tool has to the system: exactly its declared effects, nothing ambient. The gate makes
//! [`Hands`] for one call; a tool that uses something it didn't declare gets an error here.

mod processes;

use parking_lot::Mutex;
use std::fs::File;
use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

use crate::effect_index::EffectIndex;
use crate::{
    Access, Agents, AllowedTools, ArtifactRef, Artifacts, Change, ChangeSource, Changes, Denial, DeniedAccess,
    DirectoryEntry, Effect, EgressPolicy, Enforced, ErrorCode, FileContent, FileEdit, FileState, Files, Guarantee,
    HiddenPaths, LocatedEffect, Message, NoteKind, Notes, OmittedText, OpenFile, Person, ProcessTable, Question,
    QuestionAnswer, SeenVersion, SkillCandidate, Skills, ToolError, VisitedEntry, VisitorFactory, WalkOptions,
    WalkStep, Web, WebRequest, WebResponse, WorkspacePath,
};

/// What the hands counted while the tool worked. The tool can't forget to report it, because it doesn't report it.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Paths that were created, changed or deleted.
    pub files_changed: Vec<String>,
    /// Commands that ran.
    pub commands_run: Vec<String>,
    /// Output that was stored.
    pub refs: Vec<ArtifactRef>,
    /// Requests the next page.
    pub next_cursor: Option<String>,
    /// The exit code of the command that ran.
    pub exit_code: Option<i64>,
    /// Texts of the payload that are already stored completely, by the JSON pointer of their field.
    pub stored: Vec<(String, OmittedText)>,
    /// Whether a secret was redacted before the payload was made.
    pub redacted: bool,
    /// Which guarantees held.
    pub enforced: Enforced,
    /// What the sandbox denied.
    pub denials: Vec<Denial>,
    /// Those of them that the reply tells of, with what to do next.
    pub denied: Vec<DeniedAccess>,
}

/// The services behind the hands.
#[derive(Clone)]
pub struct ToolServices {
    /// Files beneath the roots.
    pub files: Arc<dyn Files>,
    /// Changes to files, and their versions.
    pub changes: Arc<dyn Changes>,
    /// Stored output.
    pub artifacts: Arc<dyn Artifacts>,
    /// The person at the front end.
    pub person: Arc<dyn Person>,
    /// The agent's notes.
    pub notes: Arc<dyn Notes>,
    /// Skills.
    pub skills: Arc<dyn Skills>,
    /// The paths that policy hides.
    pub hidden_paths: Arc<dyn HiddenPaths>,
    /// The session's processes.
    pub processes: Arc<dyn ProcessTable>,
    /// HTTP access; none if nothing can be fetched.
    pub web: Option<Arc<dyn Web>>,
    /// The egress policy; none if nothing may be reached.
    pub egress: Option<Arc<dyn EgressPolicy>>,
    /// Agents that the call may start; none if no agent is running.
    pub agents: Option<Arc<dyn Agents>>,
    /// Whether the caller ends with its call, so that nobody would return for a process that continues.
    pub waits: bool,
    /// The call that these services are for.
    pub tool_call_id: String,
    /// Cancels the call.
    pub cancel: CancellationToken,
}

/// The hands of one cleared call. Clones share the tally, so that work can move to another thread.
#[derive(Clone)]
pub struct Hands {
    granted: Arc<[LocatedEffect]>,
    reach: Arc<EffectIndex>,
    means: ToolServices,
    tally: Arc<Mutex<Tally>>,
}

impl Hands {
    /// Hands with the effects `granted`, through these services.
    pub fn new(granted: impl Into<Arc<[LocatedEffect]>>, means: ToolServices) -> Self {
        let granted: Arc<[LocatedEffect]> = granted.into();
        Self { reach: Arc::new(EffectIndex::of(&granted)), granted, means, tally: Arc::default() }
    }

    /// Opens the file at a declared path.
    pub fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.open_at(&self.declared(Access::Read, path)?)
    }

    /// Opens a file at or beneath a declared path.
    pub fn open_at(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError> {
        self.reach(Access::Read, place)?;
        self.means.files.open(place)
    }

    /// The resolved path of a path that was declared for reading.
    pub fn place(&self, path: &str) -> Result<WorkspacePath, ToolError> {
        self.declared(Access::Read, path)
    }

    /// A path as the caller would write it.
    pub fn shown(&self, place: &WorkspacePath) -> String {
        self.means.files.shown(place)
    }

    /// The content of a file with at most `most` bytes, or of a link, at or beneath a declared path; none if nothing
    /// exists there.
    pub fn content_at(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError> {
        self.reach(Access::Read, place)?;
        self.means.files.content(place, most)
    }

    /// Lists a directory at or beneath a declared path, without what policy hides.
    pub fn entries_at(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError> {
        self.reach(Access::Read, place)?;
        let mut entries = self.means.files.entries(place)?;
        entries.retain(|entry| !self.means.hidden_paths.hides(Access::Read, &entry.place));
        Ok(entries)
    }

    /// Visits everything beneath a declared path, on several threads. Hidden entries are neither visited nor entered.
    /// Returns how many directories couldn't be read.
    pub fn walk<'v>(
        &self,
        path: &str,
        options: &WalkOptions,
        visitors: &'v VisitorFactory<'v>,
    ) -> Result<u64, ToolError> {
        let start = self.declared(Access::Read, path)?;
        self.reach(Access::Read, &start)?;
        let guarded = || -> crate::Visitor<'_> {
            let mut visit = visitors();
            Box::new(move |walked: &VisitedEntry<'_>| {
                if self.is_cancelled() {
                    WalkStep::Stop
                } else if self.means.hidden_paths.hides(Access::Read, walked.place) {
                    WalkStep::Past
                } else {
                    visit(walked)
                }
            })
        };
        let unreadable = self.means.files.walk(&start, options, &guarded)?;
        if self.is_cancelled() { Err(ToolError::cancelled()) } else { Ok(unreadable) }
    }

    /// Runs long work on a thread that may block. When the call is cancelled, the work continues until it checks
    /// [`Hands::is_cancelled`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let hands = self.clone();
        match tokio::task::spawn_blocking(move || work(&hands)).await {
            Ok(outcome) => outcome,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ToolError::cancelled()),
            },
        }
    }

    /// The resolved path of a path that was declared for writing or deleting.
    pub fn target(&self, access: Access, path: &str) -> Result<WorkspacePath, ToolError> {
        self.declared(access, path)
    }

    /// Makes one change, completely or not at all. The old content is kept for undo.
    pub fn change(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError> {
        for edit in &edits {
            let access = if edit.after.is_some() { Access::Write } else { Access::Delete };
            self.reach(access, &edit.place)?;
        }
        let changes = self.means.changes.make(edits)?;
        self.note(|tally| tally.files_changed.extend(changes.iter().map(|change| change.path.clone())));
        Ok(changes)
    }

    /// Makes one change, completely or not at all, whose new content comes from a source. It can include directories
    /// and links.
    pub fn arrange(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError> {
        for change in &changes {
            let access = if change.after.is_some() { Access::Write } else { Access::Delete };
            self.reach(access, &change.place)?;
        }
        let paths: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
        self.means.changes.arrange(changes, source)?;
        self.note(|tally| tally.files_changed.extend(paths));
        Ok(())
    }

    /// The run that the call belongs to.
    pub fn run(&self) -> &str {
        self.means.changes.run()
    }

    /// The id of the call.
    pub fn call(&self) -> &str {
        &self.means.tool_call_id
    }

    /// The state of a path at or beneath a declared one; none if nothing exists there.
    pub fn state_at(&self, place: &WorkspacePath) -> Result<Option<FileState>, ToolError> {
        self.reach(Access::Read, place)?;
        Ok(self.means.files.node(place, true)?.map(|node| node.state))
    }

    /// Whether policy hides anything in a directory.
    pub fn hides_something(&self, directory: &WorkspacePath) -> Result<bool, ToolError> {
        self.reach(Access::Read, directory)?;
        let entries = self.means.files.entries(directory)?;
        Ok(entries.iter().any(|entry| self.means.hidden_paths.hides(Access::Delete, &entry.place)))
    }

    /// Removes a directory at or beneath a path that was declared for deleting, with the empty directories in it.
    pub fn remove_empty_directories(&self, directory: &WorkspacePath) -> Result<(), ToolError> {
        self.reach(Access::Delete, directory)?;
        self.means.files.remove_empty_directories(directory)
    }

    /// Records that the session has seen this content at a path it may read.
    pub fn saw(&self, place: &WorkspacePath, sha256: &str) {
        self.means.changes.saw(place, sha256);
    }

    /// The version that the session last saw at a path.
    pub fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion> {
        self.means.changes.seen(place)
    }

    /// The call that wrote the content with this hash at a path, if it was a call.
    pub fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String> {
        self.means.changes.author(place, sha256)
    }

    /// Shows the person a message. Returns whether a person was there to see it.
    pub fn say(&self, message: &Message) -> Result<bool, ToolError> {
        self.need(|effect| matches!(effect, Effect::Speak), "speak to the person")?;
        Ok(self.means.person.say(message))
    }

    /// Asks the person, and waits for the answer; none if nobody is there.
    pub async fn ask(&self, question: &Question) -> Result<Option<QuestionAnswer>, ToolError> {
        self.need(|effect| matches!(effect, Effect::Speak), "speak to the person")?;
        self.means.person.ask(question).await
    }

    /// The agent's notes of one kind.
    pub fn notes<T: DeserializeOwned + Default>(&self, book: NoteKind) -> Result<T, ToolError> {
        self.need(
            |effect| matches!(effect, Effect::Note { book: declared, .. } if *declared == book),
            "read these notes",
        )?;
        self.means.notes.read(book)?.map_or_else(|| Ok(T::default()), |notes| parse_notes(book, notes))
    }

    /// Rewrites the agent's notes of one kind atomically.
    pub fn rewrite<T: DeserializeOwned + Default + Serialize, R>(
        &self,
        book: NoteKind,
        mut change: impl FnMut(&mut T) -> Result<R, ToolError>,
    ) -> Result<R, ToolError> {
        let wanted = Effect::Note { book, access: Access::Write };
        self.need(|effect| *effect == wanted, "write these notes")?;
        let mut outcome = None;
        self.means.notes.rewrite(book, &mut |before| {
            let mut notes = before.map_or_else(|| Ok(T::default()), |notes| parse_notes(book, notes))?;
            outcome = Some(change(&mut notes)?);
            serde_json::to_value(&notes).map_err(|fault| ToolError::internal(fault.to_string()))
        })?;
        outcome.ok_or_else(|| ToolError::internal("The notes were stored without being rewritten."))
    }

    /// The directories that may be skills.
    pub fn skills(&self) -> Result<Vec<SkillCandidate>, ToolError> {
        self.need(|effect| matches!(effect, Effect::Skill { .. }), "list skills")?;
        self.means.skills.directories()
    }

    /// Limits the session to a skill's tools, or pre-approves them, as configured.
    pub fn activate(&self, skill: &SkillCandidate, tools: Vec<String>) -> Result<AllowedTools, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::Skill { name: Some(name) } if *name == skill.name);
        self.need(is_it, "load that skill")?;
        Ok(self.means.skills.activate(skill, tools))
    }

    /// Opens stored output.
    pub fn recall(&self, id: &str) -> Result<(ArtifactRef, File), ToolError> {
        self.need(|effect| matches!(effect, Effect::Recall { artifact } if artifact == id), "recall that artifact")?;
        self.means.artifacts.open(id)
    }

    /// Stores something that doesn't fit in a JSON reply, such as an image.
    pub fn keep(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError> {
        let stored = self.means.artifacts.store(bytes, mime)?;
        self.note(|tally| tally.refs.push(stored.clone()));
        Ok(stored)
    }

    /// Reports that there is more, and the cursor that requests it.
    pub fn more(&self, cursor: impl Into<String>) {
        self.note(|tally| tally.next_cursor = Some(cursor.into()));
    }

    /// Fetches from a declared host; the egress policy judges redirects.
    pub async fn fetch(&self, request: WebRequest, host: &str, port: u16) -> Result<WebResponse, ToolError> {
        let declared =
            |effect: &Effect| matches!(effect, Effect::Connect { host: h, port: p } if h == host && *p == port);
        self.need(declared, "connect there")?;
        let (Some(web), Some(egress)) = (&self.means.web, &self.means.egress) else {
            return Err(ToolError::new(ErrorCode::NetworkDenied, "The network isn't available here."));
        };
        web.fetch(request, egress.as_ref()).await
    }

    /// Other agents, for a call that declared this agent; and the id of the call, which is their parent.
    pub fn agents(&self, agent: &str) -> Result<(&dyn Agents, &str), ToolError> {
        self.need(|effect| matches!(effect, Effect::Delegate { agent: declared } if declared == agent), "delegate")?;
        let agents = self.means.agents.as_deref().ok_or_else(|| {
            ToolError::new(ErrorCode::ToolNotAllowed, "No agent is running here that could start others.")
                .with_hint("Do the work yourself, or start it with `toolgate run`.")
        })?;
        Ok((agents, &self.means.tool_call_id))
    }

    /// Cancelled when the call ends, for everything that must not outlive it.
    pub fn cancelled(&self) -> CancellationToken {
        self.means.cancel.clone()
    }

    /// Reports the exit code of a command.
    pub fn ended(&self, exit_code: i64) {
        self.note(|tally| tally.exit_code = Some(exit_code));
    }

    /// Whether the call was cancelled; long loops check this.
    pub fn is_cancelled(&self) -> bool {
        self.means.cancel.is_cancelled()
    }

    /// The tally so far.
    pub fn tally(&self) -> Tally {
        self.tally.lock().clone()
    }

    fn note(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }

    /// The resolved path of a path exactly as declared.
    fn declared(&self, access: Access, path: &str) -> Result<WorkspacePath, ToolError> {
        self.reach.declared(access, path).cloned().ok_or_else(|| undeclared(&format!("{access:?} `{path}`")))
    }

    /// Denies a path that no declared effect covers, or that policy hides unless it is restored.
    fn reach(&self, access: Access, place: &WorkspacePath) -> Result<(), ToolError> {
        let is_restored = self.reach.restores(access, place);
        if !is_restored && !self.reach.covers(access, place) {
            return Err(undeclared(&format!("{access:?} `{}`", place.path)));
        }
        if !is_restored && self.means.hidden_paths.hides(access, place) {
            return Err(ToolError::new(
                ErrorCode::SensitivePath,
                format!("`{}` is hidden from tools by policy.", place.path),
            ));
        }
        self.note(|tally| {
            tally.enforced.0.insert(Guarantee::Paths, self.means.files.holding());
        });
        Ok(())
    }

    fn need(&self, wanted: impl Fn(&Effect) -> bool, what: &str) -> Result<(), ToolError> {
        match self.granted.iter().any(|located| wanted(&located.effect)) {
            true => Ok(()),
            false => Err(undeclared(what)),
        }
    }
}

/// The error for a tool that uses something it didn't declare: a fault of the tool, and nothing was touched.
fn undeclared(what: &str) -> ToolError {
    ToolError::internal(format!("The tool tried to {} without declaring it.", what.to_lowercase()))
}

/// Notes in the format of their tool.
fn parse_notes<T: DeserializeOwned>(book: NoteKind, notes: serde_json::Value) -> Result<T, ToolError> {
    serde_json::from_value(notes).map_err(|fault| {
        ToolError::new(ErrorCode::IoError, format!("The stored content of {book} can't be parsed: {fault}."))
            .with_hint("Ask the person to remove its file from the workspace's `.toolgate` directory.")
    })
}
