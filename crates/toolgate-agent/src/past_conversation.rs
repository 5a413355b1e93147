//! An earlier conversation, rebuilt from the record of its run, so that work goes on after an answer, a limit, a crash
//! or an interrupt.
//!
//! The messages are those that the model was shown, with secrets replaced. A call that started and has no end on record
//! may have happened: the model is told so, and nothing repeats the call by itself.

use std::collections::{HashMap, HashSet};

use toolgate_contract::{Artifacts, Event, EventPayload, FinishReason, ModelCall, Reply};
use toolgate_dialects::{AskedCall, DialectSet, DialectState, ShownResult, ToolCall, ToolCallKind, asked_id, step_id};
use toolgate_redact::Redactor;

use crate::conversation::{Conversation, mask};
use crate::model::{ConversationEntry, ModelAnswer, Observation};
use crate::observation::observation;

/// A conversation that can be continued.
#[derive(Debug, Clone, PartialEq)]
pub struct PastConversation {
    /// The last agent that took part in it.
    pub agent: String,
    /// The model that it was with.
    pub model: String,
    /// What the model was shown.
    pub entries: Vec<ConversationEntry>,
    /// How many answers the model gave, those that are no longer in the entries included.
    pub answers: u64,
    /// How the last work ended; none if its process was killed.
    pub finish: Option<FinishReason>,
    /// What was said in dialects, if the model was spoken to in one.
    pub dialects: Option<DialectState>,
}

/// Why a conversation can't be continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// There was no agent.
    #[error("No agent worked in this run, so there is no conversation to continue.")]
    NoAgent,
    /// The record lacks what the model asked for.
    #[error("The run was recorded by an older version, which didn't record what the model asked for. Start a new run.")]
    OlderRecord,
}

impl PastConversation {
    /// The conversation of an agent that has ended.
    pub(crate) fn of(agent: &str, model: &str, conversation: Conversation, dialects: Option<DialectState>) -> Self {
        let answers = conversation.answers();
        let entries = conversation.into_entries();
        Self { agent: agent.to_owned(), model: model.to_owned(), entries, answers, finish: None, dialects }
    }

    /// Rebuilds the conversation of a run's main agent from the run's events. Images are read from `artifacts`, and shown
    /// unless the redactor finds a secret in one.
    pub fn rebuild(
        events: impl IntoIterator<Item = Event>,
        artifacts: &dyn Artifacts,
        redactor: &Redactor,
    ) -> Result<Self, ResumeError> {
        let mut builder = ConversationBuilder::new(artifacts, redactor);
        events.into_iter().for_each(|event| builder.take(event));
        builder.finish()
    }

    /// Removes what only the model of the earlier conversation can read, if another one goes on.
    pub(crate) fn for_model(mut self, model: &str) -> Self {
        if self.model != model {
            for entry in &mut self.entries {
                if let ConversationEntry::Answered(answer) = entry {
                    answer.raw.clear();
                }
            }
        }
        self
    }

    /// What the model has to know about how the work before its next task ended.
    pub(crate) fn note(&self) -> Option<String> {
        match self.finish {
            Some(FinishReason::Answered) => None,
            Some(FinishReason::Cancelled) => Some(
                "[Before this message, the person interrupted your work. Calls that were running were stopped.]".into(),
            ),
            Some(finish) => Some(format!("[Before this message, your work ended early: {finish}.]")),
            None => Some(
                "[Before this message, the program was stopped while you worked. Processes that you had started have \
                 ended. Check the current state before you repeat anything.]"
                    .into(),
            ),
        }
    }
}

/// Rebuilds a conversation, event by event.
struct ConversationBuilder<'a> {
    artifacts: &'a dyn Artifacts,
    redactor: &'a Redactor,
    past: Option<PastConversation>,
    /// The directory of the workspace, and the session of the run.
    workspace: String,
    session: String,
    /// The last answer whose calls have no results in the conversation yet.
    open: Vec<ModelCall>,
    /// Calls of the main agent that started.
    started: HashMap<String, StartedCall>,
    /// Calls that some answer asked for.
    asked: HashSet<String>,
    is_older_record: bool,
}

/// A call that started: its native tool, how it ended, and what it was about to change.
#[derive(Default)]
struct StartedCall {
    tool: String,
    reply: Option<Reply>,
    changing: Vec<String>,
}

impl<'a> ConversationBuilder<'a> {
    fn new(artifacts: &'a dyn Artifacts, redactor: &'a Redactor) -> Self {
        Self {
            artifacts,
            redactor,
            past: None,
            workspace: String::new(),
            session: String::new(),
            open: Vec::new(),
            started: HashMap::new(),
            asked: HashSet::new(),
            is_older_record: false,
        }
    }

    fn take(&mut self, event: Event) {
        if let (EventPayload::AgentStarted { parent: None, .. }, Some(trace)) = (&event.payload, &event.trace_id) {
            self.begin(trace, &event.payload);
            return;
        }
        if let EventPayload::RunStarted(facts) = &event.payload {
            self.workspace.clone_from(&facts.workspace);
            self.session.clone_from(&facts.session);
        }
        let is_of_main = self.past.as_ref().is_some_and(|past| event.trace_id.as_ref() == Some(&past.agent));
        match event.tool_call_id {
            _ if !is_of_main => {}
            Some(call) => self.take_call(call, event.payload),
            None => self.take_entry(event.payload),
        }
    }

    fn begin(&mut self, trace: &str, started: &EventPayload) {
        let EventPayload::AgentStarted { model, objective, continues, dialect, .. } = started else { return };
        self.close_calls();
        let before = self.past.take().filter(|past| continues.as_ref() == Some(&past.agent));
        let before = before.map(|past| past.for_model(model));
        let (mut entries, answers, earlier) =
            before.map(|past| (past.entries, past.answers, past.dialects)).unwrap_or_default();
        entries.push(ConversationEntry::Told(objective.clone()));
        let (agent, model) = (trace.to_owned(), model.clone());
        let set = dialect.as_ref().and_then(|names| names.parse::<DialectSet>().ok());
        let dialects = set.map(|set| match earlier {
            Some(earlier) if *earlier.set() == set => earlier,
            _ => {
                let mut new = DialectState::new(set, self.workspace.clone());
                new.set_session(&self.session);
                new
            }
        });
        self.past = Some(PastConversation { agent, model, entries, answers, finish: None, dialects });
    }

    fn take_call(&mut self, call: String, payload: EventPayload) {
        self.is_older_record |= !self.asked.contains(&call) && !self.asked.contains(asked_id(&call));
        match payload {
            EventPayload::CallStarted { tool, .. } => self.started.entry(call).or_default().tool = tool,
            EventPayload::CallCompleted(ending) => {
                let reply = ending.into_reply(call.clone(), None);
                self.started.entry(call).or_default().reply = Some(reply);
            }
            EventPayload::CallFailed { error, ending, .. } => {
                let reply = ending.into_reply(call.clone(), Some(error));
                self.started.entry(call).or_default().reply = Some(reply);
            }
            EventPayload::FilesChanging { changes, .. } => {
                let paths = changes.into_iter().map(|change| change.path);
                self.started.entry(call).or_default().changing.extend(paths);
            }
            _ => {}
        }
        // In a dialect, another native call may follow.
        if self.past.as_ref().is_none_or(|past| past.dialects.is_none())
            && self
                .open
                .iter()
                .all(|asked| self.started.get(&asked.tool_call_id).is_some_and(|call| call.reply.is_some()))
        {
            self.close_calls();
        }
    }

    fn take_entry(&mut self, payload: EventPayload) {
        match payload {
            EventPayload::ModelSaid { text, calls, raw } => {
                self.close_calls();
                let asked = calls.iter().map(recorded_call).collect();
                self.asked.extend(calls.iter().map(|call| call.tool_call_id.clone()));
                self.push(ConversationEntry::Answered(ModelAnswer { text, calls: asked, raw, ..Default::default() }));
                self.open = calls;
            }
            EventPayload::ModelTold { text: told, .. } | EventPayload::ModelMisunderstood { reason: told } => {
                self.close_calls();
                self.push(ConversationEntry::Told(told));
            }
            EventPayload::ContextMasked { parts, .. } => {
                self.close_calls();
                let entries = self.past.as_mut().map(|past| &mut past.entries);
                let Some(entries) = entries else { return };
                parts.iter().for_each(|part| {
                    if let Some(entry) = entries.get_mut(part.entry) {
                        mask(entry, part);
                    }
                });
            }
            EventPayload::ContextSummarized { entries: replaced, text, .. } => {
                self.close_calls();
                if let Some(past) = &mut self.past {
                    let replaced = usize::try_from(replaced).unwrap_or(usize::MAX).min(past.entries.len());
                    past.entries.splice(..replaced, [ConversationEntry::Told(text)]);
                }
            }
            EventPayload::AgentEnded { finish, .. } => {
                self.close_calls();
                if let Some(past) = &mut self.past {
                    past.finish = Some(finish);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, entry: ConversationEntry) {
        if let Some(past) = &mut self.past {
            past.answers += u64::from(matches!(entry, ConversationEntry::Answered(_)));
            past.entries.push(entry);
        }
    }

    /// Adds the results of the last answer's calls, as far as they are known.
    fn close_calls(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let asked = std::mem::take(&mut self.open);
        let results = asked.iter().map(|call| self.result(call)).collect();
        self.push(ConversationEntry::Observed(results));
    }

    fn result(&mut self, asked: &ModelCall) -> Observation {
        let call = recorded_call(asked);
        if let Some((shown, reply)) = self.said_again(asked) {
            return observation(&call, Some(&shown), &reply, self.artifacts, self.redactor);
        }
        match self.started.remove(&asked.tool_call_id) {
            Some(StartedCall { reply: Some(reply), .. }) => {
                observation(&call, None, &reply, self.artifacts, self.redactor)
            }
            Some(StartedCall { reply: None, changing, .. }) => unfinished(call, &may_have_happened(&changing)),
            None => unfinished(call, NOT_STARTED),
        }
    }

    /// What the model was shown of a call in a dialect: the recorded replies, said again. None of a native call, and where a
    /// reply isn't on record or doesn't fit the arguments, in which secrets were replaced.
    fn said_again(&mut self, asked: &ModelCall) -> Option<(ShownResult, Reply)> {
        let state = self.past.as_mut()?.dialects.as_mut()?;
        let recorded = self.started.get(&asked.tool_call_id).map(|started| started.tool.clone()).unwrap_or_default();
        let asked_call = AskedCall { id: &asked.tool_call_id, tool: &asked.tool, args: &asked.args };
        let mut spoken = state.begin(asked_call, &|name| name == recorded)?;
        let mut step = 1;
        loop {
            let reply = self.started.get(&step_id(&asked.tool_call_id, step))?.reply.clone()?;
            if spoken.native().is_err() && reply.ok {
                return None;
            }
            if let Some(shown) = state.answer(&mut spoken, &reply) {
                return Some((shown, reply));
            }
            step += 1;
        }
    }

    fn finish(mut self) -> Result<PastConversation, ResumeError> {
        self.close_calls();
        match self.past {
            None => Err(ResumeError::NoAgent),
            Some(_) if self.is_older_record => Err(ResumeError::OlderRecord),
            Some(past) => Ok(past),
        }
    }
}

const NOT_STARTED: &str = "error[interrupted]: The program was stopped before this call started. Nothing happened.";

fn may_have_happened(changing: &[String]) -> String {
    let mut text = "error[interrupted]: The program was stopped while this call ran. It may have happened: entirely, \
                    partly or not at all.\nnext: Check what it left before you repeat it."
        .to_owned();
    if !changing.is_empty() {
        text.push_str(&format!("\nIt was about to change: {}", changing.join(", ")));
    }
    text
}

fn unfinished(call: ToolCall, text: &str) -> Observation {
    let ToolCall { id, name, shape, .. } = call;
    Observation { id, shape, name, text: text.to_owned(), ok: false, artifact: None, images: Vec::new() }
}

fn recorded_call(call: &ModelCall) -> ToolCall {
    let shape = match call.shape.as_deref() {
        Some("custom") => ToolCallKind::Custom,
        Some("local_shell") => ToolCallKind::LocalShell,
        _ => ToolCallKind::Function,
    };
    ToolCall { id: call.id.clone(), name: call.tool.clone(), args: Ok(call.args.clone()), shape }
}

/// The name of a kind of call in the record; none for a function.
pub(crate) fn shape_name(shape: ToolCallKind) -> Option<String> {
    match shape {
        ToolCallKind::Function => None,
        ToolCallKind::Custom => Some("custom".into()),
        ToolCallKind::LocalShell => Some("local_shell".into()),
    }
}
