//! The agent loop: model → calls → replies → model, until the final answer. Start with [`AgentLoop::turn`] and
//! [`AgentLoop::round`].

mod ask_model;
mod make_room;
mod perform_calls;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_contract::{
    Call, CancellationToken, Declaration, Event, EventPayload, FinishReason, MessageOrigin, ModelCall, TokenUsage,
    counted,
};
use toolgate_runtime::Session;
use toolgate_workspace::{DialectReply, DialectSession};

use crate::agent::TaskContext;
use crate::conversation::Conversation;
use crate::definition::AgentDefinition;
use crate::limits::EarlyStop;
use crate::loop_detector::LoopDetector;
use crate::message_queue::MessageQueue;
use crate::model::{ConversationEntry, ModelAnswer};
use crate::observation::observation;
use crate::outcome::AgentOutcome;
use crate::past_conversation::{PastConversation, shape_name};
use crate::prompt::{self, OtherAgents};
use crate::subagents::Subagents;
use crate::text_sink::AgentIdentity;

/// After this many repetitions the model is warned.
const WARN_AFTER: u32 = 3;

/// The largest number of calls in one turn.
const MAX_CALLS: usize = 64;

/// One running agent.
pub(crate) struct AgentLoop {
    context: Arc<TaskContext>,
    role: AgentRole,
    id: String,
    session: Session,
    cancel: CancellationToken,
    subagents: Arc<Subagents>,
    inbox: Arc<MessageQueue>,
    system: String,
    tools: Vec<Declaration>,
    dialects: DialectSession,
    conversation: Conversation,
    progress: LoopDetector,
    began: Instant,
    turn: u64,
    tokens: TokenUsage,
    /// Invalid answers in a row.
    invalid_answers: u32,
    /// The agent whose conversation this one continues.
    continues: Option<String>,
}

/// The kind and position of an agent.
pub(crate) struct AgentRole {
    pub(crate) kind: AgentDefinition,
    /// The call that started it.
    pub(crate) parent: Option<String>,
    /// Its nesting depth; 0 for the agent that a person started.
    pub(crate) depth: u32,
}

/// A parsed answer of the model.
enum ParsedAnswer {
    Final(ModelAnswer),
    Calls(ModelAnswer),
    Fault(ModelAnswer, String),
}

impl AgentLoop {
    pub(crate) fn new(
        context: Arc<TaskContext>,
        mut session: Session,
        role: AgentRole,
        cancel: CancellationToken,
    ) -> Self {
        let cancel = cancel.child_token();
        session.ceilings.extend(role.kind.ceiling());
        session.agents = None;
        let subagents = Arc::new(Subagents::new(Arc::clone(&context), session.clone(), role.depth, cancel.clone()));
        session.agents = Some(Arc::clone(&subagents) as _);
        let tools = context.dialects.set().declarations(context.gate.listed_for_models(&session.ceilings()));
        let starters = if role.depth < context.controls.depth { starters(&context, &tools) } else { Vec::new() };
        let system = prompt::instructions(
            &role.kind,
            role.parent.is_some(),
            &OtherAgents { kinds: &context.kinds, starters: &starters },
            context.workspace_instructions.as_deref(),
            &context.facts,
        );
        let fixed = system.len() + tools.iter().map(length).sum::<usize>();
        Self {
            id: format!("agent_{}", context.gate.clock().id().simple()),
            conversation: Conversation::new(context.controls.context, fixed),
            dialects: DialectSession::resume(context.dialects.clone()),
            context,
            role,
            session,
            cancel,
            subagents,
            inbox: Arc::default(),
            system,
            tools,
            progress: LoopDetector::default(),
            began: Instant::now(),
            turn: 0,
            tokens: TokenUsage::default(),
            invalid_answers: 0,
            continues: None,
        }
    }

    /// Continues an earlier conversation, and reads messages from this queue.
    pub(crate) fn continuing(mut self, past: Option<PastConversation>, inbox: Arc<MessageQueue>) -> Self {
        self.inbox = inbox;
        if let Some(past) = past {
            self.continues = Some(past.agent.clone());
            let now = self.context.dialects.clone();
            if let Some(before) = past.dialects.clone().filter(|before| before.set() == now.set()) {
                self.dialects = DialectSession::resume(now.going_on_from(before));
            }
            self.conversation.restore(past);
        }
        self
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Messages to this agent while it works.
    pub(crate) fn inbox(&self) -> Arc<MessageQueue> {
        Arc::clone(&self.inbox)
    }

    /// Works until the end, and stops every subagent that is still running. `note` is told to the model after the task.
    pub(crate) async fn work(mut self, task: &str, note: Option<String>) -> (AgentOutcome, PastConversation) {
        let ended = self.run_turns(task, note).await;
        self.subagents.stop_all().await;
        self.end(ended)
    }

    async fn run_turns(&mut self, task: &str, note: Option<String>) -> Result<String, EarlyStop> {
        self.begin(task)?;
        if let Some(note) = note {
            self.tell(note, MessageOrigin::Runtime)?;
        }
        loop {
            match self.turn().await? {
                // A message that came with the answer is read before the work ends.
                Some(answer) if self.inbox.is_empty() => return Ok(answer),
                _ => {}
            }
        }
    }

    /// One turn, from its first event to its last. Returns the final answer, once there is one.
    async fn turn(&mut self) -> Result<Option<String>, EarlyStop> {
        self.check_task_limits()?;
        self.turn += 1;
        self.session.turn = Some(self.turn);
        self.record(EventPayload::TurnStarted)?;
        let (began, before) = (Instant::now(), self.tokens);
        let outcome = self.round().await;
        let tokens = TokenUsage { input: self.tokens.input - before.input, output: self.tokens.output - before.output };
        self.record(EventPayload::TurnEnded { tokens, duration_ms: milliseconds(began.elapsed()) })?;
        outcome
    }

    /// One round of model and tools.
    async fn round(&mut self) -> Result<Option<String>, EarlyStop> {
        self.read_messages()?;
        self.make_room().await?;
        let answer = self.ask().await?;
        self.tokens += answer.tokens;
        self.context.budget.spend(answer.tokens);
        match parse_answer(answer) {
            ParsedAnswer::Final(answer) => {
                self.record_answer(&answer, &[])?;
                let text = answer.text.clone();
                self.conversation.push(ConversationEntry::Answered(answer));
                return Ok(Some(text));
            }
            ParsedAnswer::Fault(answer, reason) => self.report_invalid_answer(answer, reason)?,
            ParsedAnswer::Calls(answer) => {
                self.invalid_answers = 0;
                let calls = self.prepare(&answer);
                self.record_answer(&answer, &calls)?;
                let replies = self.perform(&answer, calls).await;
                self.record_results(answer, &replies)?;
            }
        }
        Ok(None)
    }

    fn begin(&mut self, task: &str) -> Result<(), EarlyStop> {
        self.conversation.push(ConversationEntry::Told(task.to_owned()));
        self.record(EventPayload::AgentStarted {
            agent: self.role.kind.name.clone(),
            model: self.context.model.name().to_owned(),
            objective: self.redacted(task),
            parent: self.role.parent.clone(),
            continues: self.continues.clone(),
            dialect: self.dialects.names(),
        })
    }

    /// Checks turns, time, tokens and cancellation.
    fn check_task_limits(&self) -> Result<(), EarlyStop> {
        if let Some(by) = self.session.aborted_by() {
            return Err(EarlyStop::new(FinishReason::Cancelled, format!("{by} aborted the run.")));
        }
        if self.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let most = self.context.controls.turns;
        if self.turn >= most {
            let why = format!("{most} of {} used. Raise --max-turns to continue.", counted(most, "turn"));
            return Err(EarlyStop::new(FinishReason::TurnLimit, why));
        }
        self.context.budget.check()
    }

    fn read_messages(&mut self) -> Result<(), EarlyStop> {
        let by = if self.role.parent.is_some() { MessageOrigin::Agent } else { MessageOrigin::Person };
        for message in self.inbox.take() {
            self.tell(message, by)?;
        }
        if self.turn > 1 && self.turn == self.context.controls.turns {
            let last = "This is your last turn. Give your final answer now, with what you have.";
            self.tell(last.into(), MessageOrigin::Runtime)?;
        }
        Ok(())
    }

    /// Tells the model something, and records it.
    fn tell(&mut self, text: String, by: MessageOrigin) -> Result<(), EarlyStop> {
        self.record(EventPayload::ModelTold { text: self.redacted(&text), by })?;
        self.conversation.push(ConversationEntry::Told(text));
        Ok(())
    }

    /// Records an answer with the ids of its calls, before any of them starts.
    fn record_answer(&self, answer: &ModelAnswer, calls: &[Call]) -> Result<(), EarlyStop> {
        let redactor = self.context.gate.redactor();
        let calls = answer.calls.iter().zip(calls).map(|(asked, call)| {
            let mut args = call.args.clone();
            redactor.json(&mut args);
            let (id, tool_call_id) = (asked.id.clone(), call.tool_call_id.clone());
            ModelCall { id, tool_call_id, tool: asked.name.clone(), args, shape: shape_name(asked.shape) }
        });
        let mut raw = answer.raw.clone();
        // A provider refuses its own form when anything in it was replaced.
        if raw.iter_mut().fold(false, |any, item| any | redactor.json(item)) {
            raw.clear();
        }
        self.record(EventPayload::ModelSaid { text: self.redacted(&answer.text), calls: calls.collect(), raw })
    }

    /// Tells the model what is wrong with its answer. Several invalid answers in a row end the work.
    fn report_invalid_answer(&mut self, answer: ModelAnswer, reason: String) -> Result<(), EarlyStop> {
        self.record_answer(&answer, &[])?;
        self.record(EventPayload::ModelMisunderstood { reason: self.redacted(&reason) })?;
        self.conversation.push(ConversationEntry::Answered(answer));
        self.conversation.push(ConversationEntry::Told(reason.clone()));
        self.invalid_answers += 1;
        if self.invalid_answers >= self.context.controls.invalid_answers {
            let why = format!(
                "Could not be understood: {} in a row. The last: {reason}",
                counted(self.invalid_answers, "answer")
            );
            return Err(EarlyStop::new(FinishReason::InvalidAnswers, self.redacted(&why)));
        }
        Ok(())
    }

    /// Adds the results of the calls, and ends the work when the agent repeats itself.
    fn record_results(&mut self, answer: ModelAnswer, replies: &[DialectReply]) -> Result<(), EarlyStop> {
        let times = self.progress.turn(&answer.calls, replies.iter().map(|made| &made.reply));
        let (artifacts, redactor) = (self.session.artifacts.as_ref(), self.context.gate.redactor());
        let observed = answer.calls.iter().zip(replies);
        let observed = observed.map(|(call, made)| {
            let DialectReply { shown, reply } = made;
            observation(call, shown.as_ref(), reply, artifacts, redactor)
        });
        let observed = observed.collect();
        let names: Vec<&str> = answer.calls.iter().map(|call| call.name.as_str()).collect();
        let names = names.join(", ");
        self.conversation.push(ConversationEntry::Answered(answer));
        self.conversation.push(ConversationEntry::Observed(observed));
        if times >= self.context.controls.repetitions {
            let why = format!("The same calls ({names}) returned the same results {}.", counted(times, "time"));
            return Err(EarlyStop::new(FinishReason::NoProgress, why));
        }
        if times >= WARN_AFTER {
            let word = format!(
                "These calls returned the same results {}. Try another way, or finish.",
                counted(times, "time")
            );
            self.tell(word, MessageOrigin::Runtime)?;
        }
        Ok(())
    }

    /// Records the end. If that fails, the outcome says so.
    fn end(mut self, ended: Result<String, EarlyStop>) -> (AgentOutcome, PastConversation) {
        self.session.turn = None;
        let (mut finish, mut summary) = match ended {
            Ok(answer) => (FinishReason::Answered, self.redacted(&answer)),
            Err(stopped) => (stopped.finish, stopped.why),
        };
        let (turns, tokens, duration) = (self.turn, self.tokens, self.began.elapsed());
        let duration_ms = milliseconds(duration);
        let ended = EventPayload::AgentEnded { finish, summary: summary.clone(), turns, tokens, duration_ms };
        if let (Err(unrecorded), true) = (self.record(ended), finish == FinishReason::Answered) {
            (finish, summary) = (unrecorded.finish, unrecorded.why);
        }
        let dialects = self.dialects.names().map(|_| self.dialects.state());
        let past = PastConversation::of(&self.id, self.context.model.name(), self.conversation, dialects);
        (AgentOutcome { id: self.id, finish, summary, turns, tokens, duration }, past)
    }

    fn record(&self, payload: EventPayload) -> Result<(), EarlyStop> {
        let event = Event {
            time: self.context.gate.clock().now(),
            run: self.session.run.clone(),
            turn: self.session.turn,
            trace_id: Some(self.id.clone()),
            tool_call_id: None,
            payload,
        };
        let unrecorded = |error: toolgate_contract::ToolError| {
            EarlyStop::new(FinishReason::Unrecorded, format!("Events can't be recorded any more: {}", error.message))
        };
        self.session.record(&[event]).map_err(unrecorded)
    }

    fn redacted(&self, text: &str) -> String {
        self.context.gate.redactor().text(text).into_owned()
    }

    fn identity(&self) -> AgentIdentity<'_> {
        AgentIdentity { id: &self.id, agent: &self.role.kind.name, is_first: self.role.parent.is_none() }
    }
}

/// Parses an answer. An answer without text and calls is a fault, and so is text that was cut off.
fn parse_answer(mut answer: ModelAnswer) -> ParsedAnswer {
    if let Some(reason) = answer.fault.take() {
        return ParsedAnswer::Fault(answer, reason);
    }
    if answer.calls.len() > MAX_CALLS {
        let reason =
            format!("You asked for {} at once; {MAX_CALLS} are the most.", counted(answer.calls.len(), "call"));
        // A call that stays in the conversation would need a reply.
        return ParsedAnswer::Fault(ModelAnswer { calls: Vec::new(), raw: Vec::new(), ..answer }, reason);
    }
    if !answer.calls.is_empty() {
        return ParsedAnswer::Calls(answer);
    }
    let reason = match (answer.cut, answer.text.trim().is_empty()) {
        (true, _) => "Your answer was cut off, because it was too long. Be shorter.",
        (false, true) => "Your answer was empty: no words and no calls. Call a tool, or give your final answer.",
        (false, false) => return ParsedAnswer::Final(answer),
    };
    ParsedAnswer::Fault(answer, reason.into())
}

/// The tools that start other agents, among those that this agent has.
fn starters(context: &TaskContext, tools: &[Declaration]) -> Vec<String> {
    let dialects = context.dialects.set();
    let names = ["task", "agents"].into_iter().flat_map(|native| dialects.names_for(native));
    names.filter(|name| tools.iter().any(|tool| tool.name == *name)).map(str::to_owned).collect()
}

fn cancelled() -> EarlyStop {
    EarlyStop::new(FinishReason::Cancelled, "The task was cancelled.")
}

fn length(tool: &Declaration) -> usize {
    tool.name.len() + tool.description.len() + tool.args_schema.as_value().to_string().len()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
