//! The loop (C-39): model → calls → replies → model, until the final answer. [`Worker::turn`] and [`Worker::round`] are
//! the table of contents.

mod asking;
mod performing;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_contract::{CancellationToken, Declaration, Event, Finish, Happening, Reply, Tokens};
use toolgate_runtime::Session;

use crate::agent::House;
use crate::controls::Stopped;
use crate::conversation::Conversation;
use crate::definition::Definition;
use crate::inbox::Inbox;
use crate::listener::Speaker;
use crate::model::{Answer, Entry};
use crate::observation::observation;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::prompt;
use crate::staff::Staff;

/// From here on the model is told that it goes in circles.
const WORTH_A_WORD: u32 = 3;

/// Calls that one turn may hold.
const MOST_CALLS: usize = 64;

/// One agent at work.
pub(crate) struct Worker {
    house: Arc<House>,
    post: Post,
    id: String,
    session: Session,
    cancel: CancellationToken,
    staff: Arc<Staff>,
    inbox: Arc<Inbox>,
    system: String,
    tools: Vec<Declaration>,
    conversation: Conversation,
    progress: Progress,
    began: Instant,
    turn: u64,
    tokens: Tokens,
    /// Answers in a row that couldn't be understood.
    misunderstood: u32,
}

/// What an agent was set to work as.
pub(crate) struct Post {
    pub(crate) kind: Definition,
    /// The call that set it to work.
    pub(crate) parent: Option<String>,
    /// How many stand above it.
    pub(crate) depth: u32,
}

/// What a model's answer comes to.
enum Step {
    Final(String),
    Calls(Answer),
    Fault(Answer, String),
}

impl Worker {
    pub(crate) fn new(house: Arc<House>, mut session: Session, post: Post, cancel: CancellationToken) -> Self {
        let cancel = cancel.child_token();
        session.ceilings.extend(post.kind.ceiling());
        session.agents = None;
        let staff = Arc::new(Staff::new(Arc::clone(&house), session.clone(), post.depth, cancel.clone()));
        session.agents = Some(Arc::clone(&staff) as _);
        let tools: Vec<Declaration> = house.gate.offered(&session.ceilings()).cloned().collect();
        let is_sent = post.parent.is_some();
        let can_send = post.depth < house.controls.depth && tools.iter().any(|tool| tool.name == "task");
        let others = if can_send { house.kinds.as_slice() } else { &[] };
        let system = prompt::instructions(&post.kind, is_sent, others, house.workspace_says.as_deref());
        let fixed = system.len() + tools.iter().map(length).sum::<usize>();
        Self {
            id: format!("agent_{}", house.gate.clock().id().simple()),
            conversation: Conversation::new(house.controls.context, fixed),
            house,
            post,
            session,
            cancel,
            staff,
            inbox: Arc::default(),
            system,
            tools,
            progress: Progress::default(),
            began: Instant::now(),
            turn: 0,
            tokens: Tokens::default(),
            misunderstood: 0,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where this agent is told something more.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Works until the end, whichever it is, and takes care that nobody it sent goes on without it.
    pub(crate) async fn work(mut self, task: &str) -> Outcome {
        let ended = self.until_answered(task).await;
        self.staff.dismiss().await;
        self.end(ended)
    }

    async fn until_answered(&mut self, task: &str) -> Result<String, Stopped> {
        self.begin(task)?;
        loop {
            if let Some(answer) = self.turn().await? {
                return Ok(answer);
            }
        }
    }

    /// One turn, from its first event to its last. Gives the final answer, once there is one.
    async fn turn(&mut self) -> Result<Option<String>, Stopped> {
        self.may_go_on()?;
        self.turn += 1;
        self.session.turn = Some(self.turn);
        self.record(Happening::TurnStarted)?;
        let (began, before) = (Instant::now(), self.tokens);
        let outcome = self.round().await;
        let tokens = Tokens { input: self.tokens.input - before.input, output: self.tokens.output - before.output };
        self.record(Happening::TurnEnded { tokens, duration_ms: milliseconds(began.elapsed()) })?;
        outcome
    }

    /// One round of model and tools.
    async fn round(&mut self) -> Result<Option<String>, Stopped> {
        self.read_messages();
        self.make_room()?;
        let answer = self.ask().await?;
        self.tokens += answer.tokens;
        self.house.budget.spend(answer.tokens);
        self.record_words(&answer)?;
        match understand(answer) {
            Step::Final(text) => return Ok(Some(text)),
            Step::Fault(answer, reason) => self.explain(answer, reason)?,
            Step::Calls(answer) => {
                self.misunderstood = 0;
                let replies = self.perform(&answer).await;
                self.watch_progress(answer, &replies)?;
            }
        }
        Ok(None)
    }

    fn begin(&mut self, task: &str) -> Result<(), Stopped> {
        self.conversation.push(Entry::Told(task.to_owned()));
        self.record(Happening::AgentStarted {
            agent: self.post.kind.name.clone(),
            model: self.house.model.name().to_owned(),
            objective: self.clean(task),
            parent: self.post.parent.clone(),
        })
    }

    /// Turns, time, tokens, and whether somebody stopped it.
    fn may_go_on(&self) -> Result<(), Stopped> {
        if self.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let most = self.house.controls.turns;
        if self.turn >= most {
            let why = format!("All {most} turns are used. Raise --max-turns to let it go on.");
            return Err(Stopped::new(Finish::TurnLimit, why));
        }
        self.house.budget.check()
    }

    fn read_messages(&mut self) {
        for message in self.inbox.take() {
            self.conversation.push(Entry::Told(message));
        }
        if self.turn > 1 && self.turn == self.house.controls.turns {
            let last = "This is your last turn. Give your final answer now, with what you have.";
            self.conversation.push(Entry::Told(last.into()));
        }
    }

    /// Old results go out when the model can't take them all.
    fn make_room(&mut self) -> Result<(), Stopped> {
        let masked = self.conversation.make_room(self.session.artifacts.as_ref());
        let masked = masked.map_err(|error| Stopped::new(Finish::Unrecorded, error.message))?;
        if masked.results > 0 {
            self.record(Happening::ContextMasked { results: masked.results, bytes: masked.bytes })?;
        }
        match self.conversation.is_too_long() {
            false => Ok(()),
            true => Err(Stopped::new(
                Finish::ContextLimit,
                "What the model has to know no longer fits. Split the task, or raise --context-tokens.",
            )),
        }
    }

    fn record_words(&self, answer: &Answer) -> Result<(), Stopped> {
        match answer.text.trim() {
            "" => Ok(()),
            words => self.record(Happening::ModelSaid { text: self.clean(words) }),
        }
    }

    /// Tells the model what is wrong with its answer. Several in a row end the work.
    fn explain(&mut self, answer: Answer, reason: String) -> Result<(), Stopped> {
        self.record(Happening::ModelMisunderstood { reason: self.clean(&reason) })?;
        self.misunderstood += 1;
        if self.misunderstood >= self.house.controls.invalid_answers {
            let why = format!("{} answers in a row couldn't be understood. The last: {reason}", self.misunderstood);
            return Err(Stopped::new(Finish::InvalidAnswers, self.clean(&why)));
        }
        self.conversation.push(Entry::Answered(answer));
        self.conversation.push(Entry::Told(reason));
        Ok(())
    }

    /// Keeps what the calls brought, and ends the work when it goes in circles.
    fn watch_progress(&mut self, answer: Answer, replies: &[Reply]) -> Result<(), Stopped> {
        let times = self.progress.turn(&answer.calls, replies);
        let artifacts = self.session.artifacts.as_ref();
        let observed = answer.calls.iter().zip(replies);
        let observed = observed.map(|(call, reply)| observation(call, reply, artifacts)).collect();
        let names: Vec<&str> = answer.calls.iter().map(|call| call.name.as_str()).collect();
        let names = names.join(", ");
        self.conversation.push(Entry::Answered(answer));
        self.conversation.push(Entry::Observed(observed));
        if times >= self.house.controls.repetitions {
            let why = format!("The same calls ({names}) brought the same results {times} times.");
            return Err(Stopped::new(Finish::NoProgress, why));
        }
        if times >= WORTH_A_WORD {
            let word = format!("These calls brought the same results {times} times. Try another way, or finish.");
            self.conversation.push(Entry::Told(word));
        }
        Ok(())
    }

    /// Records the end. If even that fails, the outcome says so.
    fn end(mut self, ended: Result<String, Stopped>) -> Outcome {
        self.session.turn = None;
        let (mut finish, mut summary) = match ended {
            Ok(answer) => (Finish::Answered, self.clean(&answer)),
            Err(stopped) => (stopped.finish, stopped.why),
        };
        let (turns, tokens, duration) = (self.turn, self.tokens, self.began.elapsed());
        let duration_ms = milliseconds(duration);
        let ended = Happening::AgentEnded { finish, summary: summary.clone(), turns, tokens, duration_ms };
        if let (Err(unrecorded), true) = (self.record(ended), finish == Finish::Answered) {
            (finish, summary) = (unrecorded.finish, unrecorded.why);
        }
        Outcome { id: self.id, finish, summary, turns, tokens, duration }
    }

    fn record(&self, happening: Happening) -> Result<(), Stopped> {
        let event = Event {
            time: self.house.gate.clock().now(),
            run: self.session.run.clone(),
            turn: self.session.turn,
            trace_id: Some(self.id.clone()),
            tool_call_id: None,
            happening,
        };
        let unrecorded = |error: toolgate_contract::ToolError| {
            Stopped::new(Finish::Unrecorded, format!("What happens can't be recorded any more: {}", error.message))
        };
        self.session.record(&[event]).map_err(unrecorded)
    }

    fn clean(&self, text: &str) -> String {
        self.house.gate.redactor().text(text).into_owned()
    }

    fn speaker(&self) -> Speaker<'_> {
        Speaker { id: &self.id, agent: &self.post.kind.name, is_first: self.post.parent.is_none() }
    }
}

/// What an answer comes to. Neither words nor calls is a fault, and so are words that were cut off.
fn understand(mut answer: Answer) -> Step {
    if let Some(reason) = answer.fault.take() {
        return Step::Fault(answer, reason);
    }
    if answer.calls.len() > MOST_CALLS {
        let reason = format!("You asked for {} calls at once; {MOST_CALLS} are the most.", answer.calls.len());
        // A call that stays in the conversation wants a reply.
        return Step::Fault(Answer { calls: Vec::new(), raw: Vec::new(), ..answer }, reason);
    }
    if !answer.calls.is_empty() {
        return Step::Calls(answer);
    }
    let reason = match (answer.cut, answer.text.trim().is_empty()) {
        (true, _) => "Your answer was cut off, because it was too long. Be shorter.",
        (false, true) => "Your answer was empty: no words and no calls. Call a tool, or give your final answer.",
        (false, false) => return Step::Final(answer.text),
    };
    Step::Fault(answer, reason.into())
}

fn cancelled() -> Stopped {
    Stopped::new(Finish::Cancelled, "Somebody stopped it.")
}

fn length(tool: &Declaration) -> usize {
    tool.name.len() + tool.description.len() + tool.args_schema.as_value().to_string().len()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
