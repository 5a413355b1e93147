//! Reports to a person what an agent does, as it happens: line by line into a file, word by word on a terminal, or with
//! a live view below.

use parking_lot::{Mutex, MutexGuard};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use toolgate_agent::{AgentIdentity, AgentOutcome, TextSink};
use toolgate_contract::{BoxFuture, Event, FinishReason, Question, QuestionAnswer};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, EventSink, QuestionAnswerer};

use super::live_view::{LiveView, cut};
use super::transcript::Transcript;
use super::{DIM, GREEN, RED, grouped, paint, plain};

/// How the report is printed.
pub(crate) enum ReportStyle {
    /// Complete lines.
    Lines,
    /// The model's text as it arrives.
    Streaming,
    /// The model's text as it arrives, with a live view below.
    Live(Box<LiveView>),
}

/// Reports on standard error.
pub(crate) struct Reporter(Mutex<ReporterState>);

struct ReporterState {
    style: ReportStyle,
    transcript: Transcript,
    /// Whether the last text left the line unfinished.
    is_mid_line: bool,
    /// Lines of the live view on the screen.
    drawn: usize,
    /// A prompt has the terminal.
    is_paused: bool,
}

impl Reporter {
    pub(crate) fn new(style: ReportStyle) -> Self {
        let transcript = Transcript::default();
        Self(Mutex::new(ReporterState { style, transcript, is_mid_line: false, drawn: 0, is_paused: false }))
    }

    /// Keeps the clock of the live view running.
    pub(crate) fn tick(self: Arc<Self>) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                self.state().redraw();
            }
        })
    }

    /// Reports how the task ended.
    pub(crate) fn end(&self, outcome: &AgentOutcome, run: &str, cost: Option<String>) {
        let mut state = self.state();
        let (tokens, seconds) = (grouped(outcome.tokens.total()), outcome.duration.as_secs_f64());
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        let used = paint(DIM, format!("{} turns, {tokens} tokens{cost}, {seconds:.1} s · {run}", outcome.turns));
        let line = match outcome.finish {
            FinishReason::Answered => format!("{} {used}", paint(GREEN, "✓ answered")),
            finish => format!(
                "{} {}\n{used}\n{}",
                paint(RED, format!("✗ {finish}:")),
                plain(&outcome.summary),
                paint(DIM, "to go on: toolgate run --continue")
            ),
        };
        state.print(&[line]);
        state.erase();
        state.is_paused = true;
    }

    fn pause(&self, is_paused: bool) {
        let mut state = self.state();
        state.erase();
        state.end_line();
        state.is_paused = is_paused;
        state.redraw();
    }

    fn state(&self) -> MutexGuard<'_, ReporterState> {
        self.0.lock()
    }
}

impl ReporterState {
    fn print(&mut self, lines: &[String]) {
        self.erase();
        self.end_line();
        lines.iter().for_each(|line| anstream::eprintln!("{line}"));
        self.redraw();
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_mid_line) {
            anstream::eprintln!();
        }
    }

    fn say(&mut self, words: &str) {
        self.erase();
        anstream::eprint!("{}", plain(words));
        let _ = anstream::stderr().flush();
        self.is_mid_line = !words.ends_with('\n');
    }

    /// Erases the live view, so that other text can be printed.
    fn erase(&mut self) {
        match std::mem::take(&mut self.drawn) {
            0 => {}
            lines => anstream::eprint!("\u{1b}[{lines}A\u{1b}[J"),
        }
    }

    fn redraw(&mut self) {
        // A view in the middle of a sentence would break it.
        if self.is_paused || self.is_mid_line {
            return;
        }
        let ReportStyle::Live(view) = &self.style else { return };
        let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        let lines = view.lines(self.transcript.running());
        self.erase();
        lines.iter().for_each(|line| anstream::eprintln!("{}", cut(line, width.saturating_sub(1))));
        self.drawn = lines.len();
    }
}

impl EventSink for Reporter {
    fn event(&self, event: &Event) {
        let mut state = self.state();
        let were_heard = !matches!(state.style, ReportStyle::Lines);
        let lines = state.transcript.lines(event, were_heard);
        let is_for_the_board = match &mut state.style {
            ReportStyle::Live(view) => view.take(event),
            ReportStyle::Lines | ReportStyle::Streaming => false,
        };
        if is_for_the_board || lines.is_empty() {
            state.redraw();
        } else {
            state.print(&lines);
        }
    }
}

impl TextSink for Reporter {
    fn on_text(&self, agent: &AgentIdentity<'_>, words: &str) {
        let mut state = self.state();
        if agent.is_first && !matches!(state.style, ReportStyle::Lines) {
            state.say(words);
        }
    }
}

/// Asks one question at a time, with exclusive use of the terminal.
pub(crate) struct ExclusivePrompt<A> {
    inner: A,
    reporter: Arc<Reporter>,
    turn: tokio::sync::Mutex<()>,
}

impl<A> ExclusivePrompt<A> {
    pub(crate) fn new(inner: A, reporter: Arc<Reporter>) -> Self {
        Self { inner, reporter, turn: tokio::sync::Mutex::new(()) }
    }
}

impl<A: Approver> Approver for ExclusivePrompt<A> {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let _paused = PausedReporter::begin(&self.reporter);
            self.inner.ask(request).await
        })
    }
}

impl<R: QuestionAnswerer> QuestionAnswerer for ExclusivePrompt<R> {
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, Option<QuestionAnswer>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let _paused = PausedReporter::begin(&self.reporter);
            self.inner.answer(call, question).await
        })
    }
}

/// Pauses the reporter as long as this lives, whether the question is answered or the call is cancelled.
struct PausedReporter<'a>(&'a Reporter);

impl<'a> PausedReporter<'a> {
    fn begin(reporter: &'a Reporter) -> Self {
        reporter.pause(true);
        Self(reporter)
    }
}

impl Drop for PausedReporter<'_> {
    fn drop(&mut self) {
        self.0.pause(false);
    }
}

/// Prints every event as a line of JSON.
pub(crate) struct JsonReporter;

impl EventSink for JsonReporter {
    fn event(&self, event: &Event) {
        if let Ok(line) = serde_json::to_string(event) {
            anstream::println!("{line}");
        }
    }
}

impl TextSink for JsonReporter {
    fn on_text(&self, _speaker: &AgentIdentity<'_>, _words: &str) {}
}
