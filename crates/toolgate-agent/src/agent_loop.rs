//! The loop (C-39): model → calls → replies → model, until the final answer. [`AgentLoop::turn`] and [`AgentLoop::round`] are
//! the table of contents.

mod ask_model;
mod perform_calls;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_contract::{CancellationToken, Declaration, Event, EventPayload, FinishReason, Reply, TokenUsage};
use toolgate_runtime::Session;

use crate::agent::TaskContext;
use crate::conversation::Conversation;
use crate::definition::AgentDefinition;
use crate::limits::EarlyStop;
use crate::loop_detector::LoopDetector;
use crate::message_queue::MessageQueue;
use crate::model::{ConversationEntry, ModelAnswer};
use crate::observation::observation;
use crate::outcome::AgentOutcome;
use crate::prompt;
use crate::subagents::Subagents;
use crate::text_sink::AgentIdentity;

/// From here on the model is told that it goes in circles.
const WORTH_A_WORD: u32 = 3;

/// Calls that one turn may hold.
const MOST_CALLS: usize = 64;

/// One agent at work.
pub(crate) struct AgentLoop {
    context: Arc<TaskContext>,
    post: AgentRole,
    id: String,
    session: Session,
    cancel: CancellationToken,
    staff: Arc<Subagents>,
    inbox: Arc<MessageQueue>,
    system: String,
    tools: Vec<Declaration>,
    conversation: Conversation,
    progress: LoopDetector,
    began: Instant,
    turn: u64,
    tokens: TokenUsage,
    /// Answers in a row that couldn't be understood.
    misunderstood: u32,
}

/// What an agent was set to work as.
pub(crate) struct AgentRole {
    pub(crate) kind: AgentDefinition,
    /// The call that set it to work.
    pub(crate) parent: Option<String>,
    /// How many stand above it.
    pub(crate) depth: u32,
}

/// What a model's answer comes to.
enum ParsedAnswer {
    Final(String),
    Calls(ModelAnswer),
    Fault(ModelAnswer, String),
}

impl AgentLoop {
    pub(crate) fn new(
        context: Arc<TaskContext>,
        mut session: Session,
        post: AgentRole,
        cancel: CancellationToken,
    ) -> Self {
        let cancel = cancel.child_token();
        session.ceilings.extend(post.kind.ceiling());
        session.agents = None;
        let staff = Arc::new(Subagents::new(Arc::clone(&context), session.clone(), post.depth, cancel.clone()));
        session.agents = Some(Arc::clone(&staff) as _);
        let tools: Vec<Declaration> = context.gate.offered(&session.ceilings()).cloned().collect();
        let is_sent = post.parent.is_some();
        let can_send = post.depth < context.controls.depth && tools.iter().any(|tool| tool.name == "task");
        let others = if can_send { context.kinds.as_slice() } else { &[] };
        let system = prompt::instructions(&post.kind, is_sent, others, context.workspace_says.as_deref());
        let fixed = system.len() + tools.iter().map(length).sum::<usize>();
        Self {
            id: format!("agent_{}", context.gate.clock().id().simple()),
            conversation: Conversation::new(context.controls.context, fixed),
            context,
            post,
            session,
            cancel,
            staff,
            inbox: Arc::default(),
            system,
            tools,
            progress: LoopDetector::default(),
            began: Instant::now(),
            turn: 0,
            tokens: TokenUsage::default(),
            misunderstood: 0,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where this agent is told something more.
    pub(crate) fn inbox(&self) -> Arc<MessageQueue> {
        Arc::clone(&self.inbox)
    }

    /// Works until the end, whichever it is, and takes care that nobody it sent goes on without it.
    pub(crate) async fn work(mut self, task: &str) -> AgentOutcome {
        let ended = self.run_turns(task).await;
        self.staff.stop_all().await;
        self.end(ended)
    }

    async fn run_turns(&mut self, task: &str) -> Result<String, EarlyStop> {
        self.begin(task)?;
        loop {
            if let Some(answer) = self.turn().await? {
                return Ok(answer);
            }
        }
    }

    /// One turn, from its first event to its last. Gives the final answer, once there is one.
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
        self.read_messages();
        self.make_room()?;
        let answer = self.ask().await?;
        self.tokens += answer.tokens;
        self.context.budget.spend(answer.tokens);
        self.record_words(&answer)?;
        match parse_answer(answer) {
            ParsedAnswer::Final(text) => return Ok(Some(text)),
            ParsedAnswer::Fault(answer, reason) => self.report_invalid_answer(answer, reason)?,
            ParsedAnswer::Calls(answer) => {
                self.misunderstood = 0;
                let replies = self.perform(&answer).await;
                self.record_results(answer, &replies)?;
            }
        }
        Ok(None)
    }

    fn begin(&mut self, task: &str) -> Result<(), EarlyStop> {
        self.conversation.push(ConversationEntry::Told(task.to_owned()));
        self.record(EventPayload::AgentStarted {
            agent: self.post.kind.name.clone(),
            model: self.context.model.name().to_owned(),
            objective: self.clean(task),
            parent: self.post.parent.clone(),
        })
    }

    /// Turns, time, tokens, and whether somebody stopped it.
    fn check_task_limits(&self) -> Result<(), EarlyStop> {
        if self.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let most = self.context.controls.turns;
        if self.turn >= most {
            let why = format!("All {most} turns are used. Raise --max-turns to let it go on.");
            return Err(EarlyStop::new(FinishReason::TurnLimit, why));
        }
        self.context.budget.check()
    }

    fn read_messages(&mut self) {
        for message in self.inbox.take() {
            self.conversation.push(ConversationEntry::Told(message));
        }
        if self.turn > 1 && self.turn == self.context.controls.turns {
            let last = "This is your last turn. Give your final answer now, with what you have.";
            self.conversation.push(ConversationEntry::Told(last.into()));
        }
    }

    /// Old results go out when the model can't take them all.
    fn make_room(&mut self) -> Result<(), EarlyStop> {
        let masked = self.conversation.make_room(self.session.artifacts.as_ref());
        let masked = masked.map_err(|error| EarlyStop::new(FinishReason::Unrecorded, error.message))?;
        if masked.results > 0 {
            self.record(EventPayload::ContextMasked { results: masked.results, bytes: masked.bytes })?;
        }
        match self.conversation.is_too_long() {
            false => Ok(()),
            true => Err(EarlyStop::new(
                FinishReason::ContextLimit,
                "What the model has to know no longer fits. Split the task, or raise --context-tokens.",
            )),
        }
    }

    fn record_words(&self, answer: &ModelAnswer) -> Result<(), EarlyStop> {
        match answer.text.trim() {
            "" => Ok(()),
            words => self.record(EventPayload::ModelSaid { text: self.clean(words) }),
        }
    }

    /// Tells the model what is wrong with its answer. Several in a row end the work.
    fn report_invalid_answer(&mut self, answer: ModelAnswer, reason: String) -> Result<(), EarlyStop> {
        self.record(EventPayload::ModelMisunderstood { reason: self.clean(&reason) })?;
        self.misunderstood += 1;
        if self.misunderstood >= self.context.controls.invalid_answers {
            let why = format!("{} answers in a row couldn't be understood. The last: {reason}", self.misunderstood);
            return Err(EarlyStop::new(FinishReason::InvalidAnswers, self.clean(&why)));
        }
        self.conversation.push(ConversationEntry::Answered(answer));
        self.conversation.push(ConversationEntry::Told(reason));
        Ok(())
    }

    /// Keeps what the calls brought, and ends the work when it goes in circles.
    fn record_results(&mut self, answer: ModelAnswer, replies: &[Reply]) -> Result<(), EarlyStop> {
        let times = self.progress.turn(&answer.calls, replies);
        let artifacts = self.session.artifacts.as_ref();
        let observed = answer.calls.iter().zip(replies);
        let observed = observed.map(|(call, reply)| observation(call, reply, artifacts)).collect();
        let names: Vec<&str> = answer.calls.iter().map(|call| call.name.as_str()).collect();
        let names = names.join(", ");
        self.conversation.push(ConversationEntry::Answered(answer));
        self.conversation.push(ConversationEntry::Observed(observed));
        if times >= self.context.controls.repetitions {
            let why = format!("The same calls ({names}) brought the same results {times} times.");
            return Err(EarlyStop::new(FinishReason::NoProgress, why));
        }
        if times >= WORTH_A_WORD {
            let word = format!("These calls brought the same results {times} times. Try another way, or finish.");
            self.conversation.push(ConversationEntry::Told(word));
        }
        Ok(())
    }

    /// Records the end. If even that fails, the outcome says so.
    fn end(mut self, ended: Result<String, EarlyStop>) -> AgentOutcome {
        self.session.turn = None;
        let (mut finish, mut summary) = match ended {
            Ok(answer) => (FinishReason::Answered, self.clean(&answer)),
            Err(stopped) => (stopped.finish, stopped.why),
        };
        let (turns, tokens, duration) = (self.turn, self.tokens, self.began.elapsed());
        let duration_ms = milliseconds(duration);
        let ended = EventPayload::AgentEnded { finish, summary: summary.clone(), turns, tokens, duration_ms };
        if let (Err(unrecorded), true) = (self.record(ended), finish == FinishReason::Answered) {
            (finish, summary) = (unrecorded.finish, unrecorded.why);
        }
        AgentOutcome { id: self.id, finish, summary, turns, tokens, duration }
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
            EarlyStop::new(
                FinishReason::Unrecorded,
                format!("What happens can't be recorded any more: {}", error.message),
            )
        };
        self.session.record(&[event]).map_err(unrecorded)
    }

    fn clean(&self, text: &str) -> String {
        self.context.gate.redactor().text(text).into_owned()
    }

    fn speaker(&self) -> AgentIdentity<'_> {
        AgentIdentity { id: &self.id, agent: &self.post.kind.name, is_first: self.post.parent.is_none() }
    }
}

/// What an answer comes to. Neither words nor calls is a fault, and so are words that were cut off.
fn parse_answer(mut answer: ModelAnswer) -> ParsedAnswer {
    if let Some(reason) = answer.fault.take() {
        return ParsedAnswer::Fault(answer, reason);
    }
    if answer.calls.len() > MOST_CALLS {
        let reason = format!("You asked for {} calls at once; {MOST_CALLS} are the most.", answer.calls.len());
        // A call that stays in the conversation wants a reply.
        return ParsedAnswer::Fault(ModelAnswer { calls: Vec::new(), raw: Vec::new(), ..answer }, reason);
    }
    if !answer.calls.is_empty() {
        return ParsedAnswer::Calls(answer);
    }
    let reason = match (answer.cut, answer.text.trim().is_empty()) {
        (true, _) => "Your answer was cut off, because it was too long. Be shorter.",
        (false, true) => "Your answer was empty: no words and no calls. Call a tool, or give your final answer.",
        (false, false) => return ParsedAnswer::Final(answer.text),
    };
    ParsedAnswer::Fault(answer, reason.into())
}

fn cancelled() -> EarlyStop {
    EarlyStop::new(FinishReason::Cancelled, "Somebody stopped it.")
}

fn length(tool: &Declaration) -> usize {
    tool.name.len() + tool.description.len() + tool.args_schema.as_value().to_string().len()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
