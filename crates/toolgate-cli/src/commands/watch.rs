//! `toolgate watch`: follows a workspace on the whole terminal, and answers what waits.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use crossterm::event::{Event as KeyEvent, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size};
use crossterm::{cursor, execute, queue};
use toolgate_contract::{Clock, SystemClock};
use toolgate_journal::{ApprovalQueue, Follower, QueueEntry, QueuedAnswer, StateDirectory, list_runs};
use toolgate_runtime::QueueItem;

use super::Invocation;
use crate::exit::Exit;
use crate::terminal::{DIM, TypedAnswer, WatchScreen, paint, prompt_line, question_lines, read_answer, request_lines};
use crate::workspace::person_name;

/// Follow this workspace on the terminal: calls at work, what waits for your answer, to-do lists, output and events.
///
/// It shows what every front end does here: agents, MCP clients, the HTTP server and other terminals. Requests are answered
/// with the letters that they offer; the answer counts once the request has been shown for half a second. Tab goes to
/// the next request, `q` quits.
///
/// Examples:
///   toolgate watch
///   toolgate -w ~/project watch
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WatchArgs;

/// How often the record and the queue are read.
const PAUSE: Duration = Duration::from_millis(120);

/// How long a request has to be shown before it can be approved.
const STILL: Duration = Duration::from_millis(500);

/// How many of the newest runs are followed.
const FOLLOWED_RUNS: usize = 50;

impl WatchArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            bail!("`toolgate watch` needs a terminal; `toolgate runs tail --follow` prints events to a pipe")
        }
        let (state, queue) = (invocation.location.state()?, invocation.location.approvals()?);
        let _screen = WholeTerminal::enter()?;
        let mut watcher = Watcher::new(state, queue);
        while watcher.step()? {}
        Ok(Exit::Ok)
    }
}

/// The alternate screen in raw mode; dropping this restores the terminal.
struct WholeTerminal;

impl WholeTerminal {
    fn enter() -> Result<Self> {
        enable_raw_mode()?;
        let entered = Self;
        execute!(std::io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(entered)
    }
}

impl Drop for WholeTerminal {
    fn drop(&mut self) {
        let _ = execute!(std::io::stdout(), cursor::Show, LeaveAlternateScreen);
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

/// Everything that is followed, and the request that is looked at.
struct Watcher {
    state: StateDirectory,
    queue: ApprovalQueue,
    runs: BTreeMap<String, Follower>,
    screen: WatchScreen,
    asks: Vec<QueueEntry>,
    /// The request that is shown, and since when.
    current: Option<(String, Instant)>,
    typed: Option<TypedText>,
    note: String,
    is_first_look: bool,
}

impl Watcher {
    fn new(state: StateDirectory, queue: ApprovalQueue) -> Self {
        Self {
            state,
            queue,
            runs: BTreeMap::new(),
            screen: WatchScreen::default(),
            asks: Vec::new(),
            current: None,
            typed: None,
            note: String::new(),
            is_first_look: true,
        }
    }

    /// Reads, draws, and takes one key; false when it is time to leave.
    fn step(&mut self) -> Result<bool> {
        self.read_runs()?;
        self.asks = self.queue.asks(SystemClock.now())?;
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
        let mut names = list_runs(self.state.path())?;
        for run in names.split_off(names.len().saturating_sub(FOLLOWED_RUNS)) {
            if !self.runs.contains_key(&run) {
                // Of what was there before, only the last run is told again.
                let directory = self.state.run_dir(&run)?;
                let follower = match self.is_first_look {
                    true => Follower::at_end(&directory),
                    false => Follower::open(&directory, 0),
                };
                self.runs.extend(follower.ok().map(|follower| (run, follower)));
            }
        }
        self.is_first_look = false;
        for follower in self.runs.values_mut() {
            for recorded in follower.more()? {
                self.screen.take(&recorded.event);
            }
        }
        Ok(())
    }

    fn ask(&self) -> Option<(&QueueEntry, QueueItem)> {
        let (id, _) = self.current.as_ref()?;
        let ask = self.asks.iter().find(|ask| ask.id == *id)?;
        Some((ask, serde_json::from_value(ask.request.clone()).ok()?))
    }

    fn draw(&self) -> Result<()> {
        // A terminal that doesn't know its size says 0.
        let (width, height) = size().ok().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or((80, 24));
        let waiting = match self.ask() {
            Some((_, QueueItem::Approval(request))) => request_lines(&request),
            Some((_, QueueItem::Question(question))) => question_lines(&question.question),
            None => Vec::new(),
        };
        let waiting: Vec<String> = waiting.into_iter().filter(|line| !line.is_empty()).collect();
        let footer = match &self.typed {
            Some(TypedText::Reason(text)) => prompt_line("why not? (Enter sends, Esc goes back)", text),
            Some(TypedText::Answer(text)) => prompt_line("your answer:", text),
            None if self.asks.len() > 1 => {
                paint(DIM, format!("{} wait · Tab next · q quit  {}", self.asks.len(), self.note))
            }
            None => paint(DIM, format!("q quit  {}", self.note)),
        };
        let lines = self.screen.lines(&waiting, &footer, width.into(), height.into(), SystemClock.now());
        let mut out = std::io::stdout().lock();
        queue!(out, cursor::MoveTo(0, 0))?;
        write!(out, "{}\u{1b}[K\u{1b}[J", lines.join("\u{1b}[K\r\n"))?;
        out.flush()?;
        Ok(())
    }

    fn take(&mut self, event: KeyEvent) -> Result<bool> {
        let KeyEvent::Key(key) = event else { return Ok(true) };
        if key.kind == KeyEventKind::Release {
            return Ok(true);
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Ok(false);
        }
        if self.typed.is_some() || matches!(self.ask(), Some((_, QueueItem::Question(_)))) && key.code != KeyCode::Esc {
            self.edit(key.code)?;
            return Ok(true);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(false),
            KeyCode::Tab if self.asks.len() > 1 => self.show_next(),
            KeyCode::Char(letter) => self.answer(letter)?,
            _ => {}
        }
        Ok(true)
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
