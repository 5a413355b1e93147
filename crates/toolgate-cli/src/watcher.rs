//! Follows a workspace, or one run in it, on the whole terminal, and answers what waits: `toolgate watch` and `run --live`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use crossterm::event::{Event as KeyEvent, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use parking_lot::Mutex;
use toolgate_contract::{BoxFuture, Clock, Question, QuestionOutcome, SystemClock};
use toolgate_journal::{ApprovalQueue, Follower, QueueEntry, QueuedAnswer, StateDirectory, run_directories};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, QuestionAnswerer, QueueItem};
use toolgate_workspace::{LiveListener, WorkspaceLocation};

use crate::terminal::{
    BEGIN_UPDATE, DIM, END_UPDATE, LiveScreen, TaskProgress, TypedAnswer, WatchScreen, abort_line, colored, paint,
    prompt_line, question_lines, read_answer, request_lines,
};
use crate::workspace::person_name;

/// How often the record and the queue are read.
const PAUSE: Duration = Duration::from_millis(120);

/// How long a request has to be shown before it can be approved.
const STILL: Duration = Duration::from_millis(500);

/// How many of the newest runs are followed.
const FOLLOWED_RUNS: usize = 50;

/// The alternate screen in raw mode; dropping this restores the terminal.
pub(crate) struct WholeTerminal;

impl WholeTerminal {
    pub(crate) fn enter() -> Result<Self> {
        enable_raw_mode()?;
        let entered = Self;
        execute!(std::io::stderr(), EnterAlternateScreen, cursor::Hide)?;
        Ok(entered)
    }
}

impl Drop for WholeTerminal {
    fn drop(&mut self) {
        let _ = execute!(std::io::stderr(), cursor::Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// What the person types, where a letter isn't enough.
enum TypedText {
    /// Why a request is denied.
    Reason(String),
    /// The answer to a question.
    Answer(String),
}

/// A run of this program's own agent.
pub(crate) struct OwnRun {
    pub(crate) id: String,
    pub(crate) progress: TaskProgress,
    /// What the model is saying, until it has said it.
    pub(crate) saying: Arc<Mutex<String>>,
}

/// Everything that is followed, and the request that is looked at.
pub(crate) struct Watcher {
    state: StateDirectory,
    queue: ApprovalQueue,
    /// What commands write while they run; none where no socket can be made.
    live: Option<LiveListener>,
    /// The only run that is followed; none for all of the workspace.
    own: Option<(String, Arc<Mutex<String>>)>,
    runs: BTreeMap<String, Follower>,
    screen: WatchScreen,
    asks: Vec<QueueEntry>,
    /// The request that is shown, and since when.
    current: Option<(String, Instant)>,
    typed: Option<TypedText>,
    note: String,
    is_first_look: bool,
    /// The person has pressed Ctrl-C.
    is_stopping: bool,
}

impl Watcher {
    /// Follows all runs, from now on.
    pub(crate) fn of_workspace(location: &WorkspaceLocation) -> Result<Self> {
        let (state, queue) = (location.state()?, location.approvals()?);
        let live = location.live_sockets(&state, String::new())?.listen().ok();
        Ok(Self {
            state,
            queue,
            live,
            own: None,
            runs: BTreeMap::new(),
            screen: WatchScreen::of_workspace(location.directory.display().to_string()),
            asks: Vec::new(),
            current: None,
            typed: None,
            note: String::new(),
            is_first_look: true,
            is_stopping: false,
        })
    }

    /// Follows one run, from now on.
    pub(crate) fn of_run(location: &WorkspaceLocation, run: OwnRun) -> Result<Self> {
        let mut watcher = Self::of_workspace(location)?;
        let follower = Follower::at_end(&watcher.state.run_dir(&run.id)?)?;
        watcher.runs.insert(run.id.clone(), follower);
        watcher.screen = WatchScreen::of_task(run.progress);
        watcher.own = Some((run.id, run.saying));
        Ok(watcher)
    }

    /// Reads, draws, and takes one key; false when it is time to leave.
    pub(crate) fn step(&mut self) -> Result<bool> {
        self.read_runs()?;
        self.asks = self.queue.asks(SystemClock.now())?;
        if let Some((run, saying)) = &self.own {
            self.asks.retain(|ask| ask.run == *run);
            self.screen.set_saying(&saying.lock());
        }
        let shown = self.current.as_ref().map(|(id, _)| id.clone());
        if !self.asks.iter().any(|ask| Some(&ask.id) == shown.as_ref()) {
            self.current = self.asks.first().map(|ask| (ask.id.clone(), Instant::now()));
            self.typed = None;
        }
        self.draw()?;
        match poll(PAUSE)? {
            true => self.take(read()?),
            false => Ok(true),
        }
    }

    fn read_runs(&mut self) -> Result<()> {
        // Taken before the record is read, so that the call that wrote it is known.
        let output: Vec<_> = self.live.iter().flat_map(LiveListener::since).collect();
        if self.own.is_none() {
            self.find_runs()?;
        }
        for follower in self.runs.values_mut() {
            for recorded in follower.more()? {
                self.screen.take(&recorded.event);
            }
        }
        let of_followed = output.iter().filter(|sent| self.runs.contains_key(&sent.event.run));
        of_followed.for_each(|sent| self.screen.take_live(&sent.event));
        Ok(())
    }

    fn find_runs(&mut self) -> Result<()> {
        let mut names = run_directories(self.state.path())?;
        for run in names.split_off(names.len().saturating_sub(FOLLOWED_RUNS)) {
            if !self.runs.contains_key(&run) {
                let directory = self.state.run_dir(&run)?;
                let is_at_work = !self.is_first_look || self.state.is_run_open(&run);
                let follower = if is_at_work { Follower::open(&directory, 0) } else { Follower::at_end(&directory) };
                let Ok(mut follower) = follower else { continue };
                if self.is_first_look {
                    self.read_earlier(&mut follower)?;
                }
                self.runs.insert(run, follower);
            }
        }
        if std::mem::take(&mut self.is_first_look) {
            self.screen.clear_output();
        }
        self.forget_lost_calls();
        Ok(())
    }

    /// What is at work already when somebody begins to look.
    fn read_earlier(&mut self, follower: &mut Follower) -> Result<()> {
        loop {
            let earlier = follower.more()?;
            if earlier.is_empty() {
                return Ok(());
            }
            earlier.iter().for_each(|recorded| self.screen.take_earlier(&recorded.event));
        }
    }

    /// A program that died has no event that says so.
    fn forget_lost_calls(&mut self) {
        for run in self.screen.runs_at_work() {
            if !self.state.is_run_open(&run) {
                self.screen.forget_run(&run);
            }
        }
    }

    fn ask(&self) -> Option<(&QueueEntry, QueueItem)> {
        let (id, _) = self.current.as_ref()?;
        let ask = self.asks.iter().find(|ask| ask.id == *id)?;
        Some((ask, serde_json::from_value(ask.request.clone()).ok()?))
    }

    fn draw(&self) -> Result<()> {
        let waiting = match self.ask() {
            Some((_, QueueItem::Approval(request))) => [request_lines(&request), vec![abort_line()]].concat(),
            Some((_, QueueItem::Question(question))) => question_lines(&question.question),
            None => Vec::new(),
        };
        let size = (LiveScreen::width(), LiveScreen::height());
        let lines = self.screen.lines(&waiting, &self.footer(), size, SystemClock.now());
        let lines: Vec<String> = lines.iter().map(|line| colored(line)).collect();
        let mut out = std::io::stderr().lock();
        write!(out, "{BEGIN_UPDATE}\u{1b}[H{}\u{1b}[K\u{1b}[J{END_UPDATE}", lines.join("\u{1b}[K\r\n"))?;
        out.flush()?;
        Ok(())
    }

    fn footer(&self) -> String {
        let leave = if self.own.is_some() { "Ctrl-C stops the task" } else { "q quit" };
        match &self.typed {
            Some(TypedText::Reason(text)) => prompt_line("why not? (Enter sends, Esc goes back)", text),
            Some(TypedText::Answer(text)) => prompt_line("your answer:", text),
            None if self.asks.len() > 1 => {
                paint(DIM, format!("{} wait · Tab next · {leave}  {}", self.asks.len(), self.note))
            }
            None => paint(DIM, format!("{leave}  {}", self.note)),
        }
    }

    fn take(&mut self, event: KeyEvent) -> Result<bool> {
        let KeyEvent::Key(key) = event else { return Ok(true) };
        if key.kind == KeyEventKind::Release {
            return Ok(true);
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Ok(self.stop());
        }
        if self.typed.is_some() || matches!(self.ask(), Some((_, QueueItem::Question(_)))) && key.code != KeyCode::Esc {
            self.edit(key.code)?;
            return Ok(true);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc if self.own.is_none() => return Ok(false),
            KeyCode::Tab if self.asks.len() > 1 => self.show_next(),
            KeyCode::Char(letter) => self.answer(letter)?,
            _ => {}
        }
        Ok(true)
    }

    /// Ctrl-C: a task is told to stop, and the screen stays until it has; otherwise, and the second time, it is left.
    fn stop(&mut self) -> bool {
        if self.own.is_none() || self.is_stopping {
            return false;
        }
        self.is_stopping = true;
        self.note = "stopping; Ctrl-C again stops at once".into();
        interrupt();
        true
    }

    fn show_next(&mut self) {
        let at = self.asks.iter().position(|ask| self.current.as_ref().is_some_and(|(id, _)| *id == ask.id));
        let next = at.map_or(0, |at| (at + 1) % self.asks.len());
        self.current = Some((self.asks[next].id.clone(), Instant::now()));
    }

    /// Adds to what is typed, or sends it.
    fn edit(&mut self, key: KeyCode) -> Result<()> {
        let is_question = matches!(self.ask(), Some((_, QueueItem::Question(_))));
        let mut typed = self.typed.take().unwrap_or(TypedText::Answer(String::new()));
        let (TypedText::Reason(text) | TypedText::Answer(text)) = &mut typed;
        match key {
            KeyCode::Esc => return Ok(()),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Enter => return if is_question { self.say(typed) } else { self.deny(typed) },
            _ => {}
        }
        self.typed = Some(typed);
        Ok(())
    }

    fn say(&mut self, typed: TypedText) -> Result<()> {
        let (TypedText::Answer(text) | TypedText::Reason(text)) = typed;
        let Some((ask, QueueItem::Question(question))) = self.ask() else { return Ok(()) };
        let (id, by) = (ask.id.clone(), person_name());
        match question.question.answer(&text, &by) {
            Some(answered) => {
                self.send(&id, &QueuedAnswer::Said { words: answered.answer, choice: answered.choice, by })
            }
            None => {
                self.note = "that is none of the choices".into();
                Ok(())
            }
        }
    }

    fn deny(&mut self, typed: TypedText) -> Result<()> {
        let (TypedText::Answer(text) | TypedText::Reason(text)) = typed;
        let Some(id) = self.ask().map(|(ask, _)| ask.id.clone()) else { return Ok(()) };
        let reason = Some(text.trim().to_owned()).filter(|reason| !reason.is_empty());
        self.send(&id, &QueuedAnswer::Denied { by: person_name(), reason })
    }

    /// Answers the request that is shown with one of its letters.
    fn answer(&mut self, letter: char) -> Result<()> {
        let Some((ask, QueueItem::Approval(request))) = self.ask() else { return Ok(()) };
        let is_still = self.current.as_ref().is_some_and(|(_, since)| since.elapsed() >= STILL);
        let id = ask.id.clone();
        match read_answer(&letter.to_string(), &request) {
            Some(TypedAnswer::Yes(_)) if !is_still => {
                self.note = "it had just appeared; press the key again".into();
                Ok(())
            }
            Some(TypedAnswer::Yes(scope)) => self.send(&id, &QueuedAnswer::Granted { scope, by: person_name() }),
            Some(TypedAnswer::No) => {
                self.typed = Some(TypedText::Reason(String::new()));
                Ok(())
            }
            Some(TypedAnswer::Abort) => self.send(&id, &QueuedAnswer::Aborted { by: person_name(), reason: None }),
            None => Ok(()),
        }
    }

    fn send(&mut self, id: &str, answer: &QueuedAnswer) -> Result<()> {
        self.note = match self.queue.answer(id, answer, SystemClock.now()) {
            Ok(()) => "answered".into(),
            Err(error) => error.to_string(),
        };
        self.current = None;
        Ok(())
    }
}

/// The signal that Ctrl-C would have been, if the terminal weren't in raw mode.
fn interrupt() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}

/// The whole terminal for one run, drawn by a thread of its own until this is dropped.
pub(crate) struct RunScreen {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunScreen {
    /// Whether there is a terminal that shows it and takes keys.
    pub(crate) fn is_possible() -> bool {
        LiveScreen::is_possible() && enable_raw_mode().and_then(|()| disable_raw_mode()).is_ok()
    }

    pub(crate) fn begin(mut watcher: Watcher) -> Result<Self> {
        let terminal = WholeTerminal::enter()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut goes_on = true;
            while goes_on && !over.load(Ordering::Relaxed) {
                // What can't be drawn or read is no reason to stop the task; others can answer what waits.
                let Ok(next) = watcher.step() else { break };
                goes_on = next;
            }
            drop(terminal);
            if !goes_on {
                interrupt();
            }
        });
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for RunScreen {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Leaves every request to the approval queue, where the person at the screen answers it.
pub(crate) struct AnsweredOnScreen;

impl Approver for AnsweredOnScreen {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

impl QuestionAnswerer for AnsweredOnScreen {
    fn answer<'a>(&'a self, _call: &'a str, _question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(std::future::pending())
    }
}
