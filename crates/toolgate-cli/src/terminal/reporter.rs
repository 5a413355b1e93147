//! Reports to a person what an agent does, as it happens: line by line into a file, word by word on a simple terminal, or
//! above a live area that shows what runs. `run` and `chat` share it; under `run --live` the terminal shows the run itself, and
//! the report follows at the end.

use parking_lot::{Mutex, MutexGuard};

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use toolgate_agent::{AgentIdentity, AgentOutcome, TextSink};
use toolgate_contract::{BoxFuture, Event, EventPayload, FinishReason, Question, QuestionOutcome, TokenUsage, counted};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, EventSink, QuestionAnswerer};

use super::markdown::MarkdownRenderer;
use super::screen::{LiveArea, LiveScreen, rows};
use super::transcript::Transcript;
use super::{DIM, GREEN, RED, grouped_count, paint, plain};
use crate::output::{err, errln, outln};

/// How often the live area is drawn anew while something runs.
const FRAME: Duration = Duration::from_millis(100);

/// How the report is printed.
pub(crate) enum ReportStyle {
    /// Complete lines, for a file or a program.
    Lines,
    /// The model's text as it arrives, for a terminal whose cursor can't be moved.
    Streaming,
    /// Above a live area.
    Screen {
        /// Whether it is a conversation: then turns aren't counted for the person, and an input line is below.
        is_conversation: bool,
    },
    /// At the end, since until then something else has the terminal.
    AtTheEnd {
        /// The lines until now.
        lines: Vec<String>,
        /// What the model is saying, for whoever has the terminal.
        saying: Arc<Mutex<String>>,
    },
}

impl ReportStyle {
    /// The style for standard error.
    pub(crate) fn of_terminal(is_conversation: bool) -> Self {
        match std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            true if LiveScreen::is_possible() => Self::Screen { is_conversation },
            true => Self::Streaming,
            false => Self::Lines,
        }
    }
}

/// Reports on standard error.
pub(crate) struct Reporter(Mutex<ReporterState>);

struct ReporterState {
    style: ReportStyle,
    transcript: Transcript,
    screen: LiveScreen,
    markdown: MarkdownRenderer,
    /// The last line of the model's text, which has no end yet.
    unfinished: String,
    /// What is below everything else: the person's input.
    input: LiveArea,
    /// A prompt has the terminal.
    is_paused: bool,
    /// The tokens that all agents have used.
    tokens: TokenUsage,
}

impl Reporter {
    pub(crate) fn new(style: ReportStyle) -> Self {
        Self(Mutex::new(ReporterState {
            style,
            transcript: Transcript::default(),
            screen: LiveScreen::default(),
            markdown: MarkdownRenderer::default(),
            unfinished: String::new(),
            input: LiveArea::default(),
            is_paused: false,
            tokens: TokenUsage::default(),
        }))
    }

    /// Keeps the clocks of the live area running.
    pub(crate) fn tick(self: Arc<Self>) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(FRAME).await;
                let mut state = self.state();
                if !state.transcript.running().is_empty() {
                    state.update(&[]);
                }
            }
        })
    }

    /// Prints lines above the live area.
    pub(crate) fn print(&self, lines: &[String]) {
        let mut state = self.state();
        let lines: Vec<String> = lines.iter().flat_map(|line| line.split('\n').map(str::to_owned)).collect();
        state.print(&lines);
    }

    /// The tokens that all agents have used.
    pub(crate) fn tokens(&self) -> TokenUsage {
        self.state().tokens
    }

    /// Counts tokens that were used before.
    pub(crate) fn add_tokens(&self, tokens: TokenUsage) {
        self.state().tokens += tokens;
    }

    /// Shows this below everything else.
    pub(crate) fn set_input(&self, input: LiveArea) {
        let mut state = self.state();
        state.input = input;
        state.update(&[]);
    }

    /// Gives the terminal to this function, which prints as usual.
    pub(crate) fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        self.pause(true);
        let done = print();
        self.pause(false);
        done
    }

    /// Reports how the task ended.
    pub(crate) fn end(&self, outcome: &AgentOutcome, run: &str, cost: Option<String>) {
        let mut state = self.state();
        let tokens = grouped_count(outcome.tokens.total(), "token");
        let (turns, seconds) = (counted(outcome.turns, "turn"), outcome.duration.as_secs_f64());
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        let used = paint(DIM, format!("{turns}, {tokens}{cost}, {seconds:.1} s · {run}"));
        let lines = match outcome.finish {
            FinishReason::Answered => vec![format!("{} {used}", paint(GREEN, "✓ answered"))],
            finish => vec![
                format!("{} {}", paint(RED, format!("✗ {finish}:")), plain(&outcome.summary)),
                used,
                paint(DIM, "to go on: toolgate run --continue"),
            ],
        };
        state.print(&lines);
        if let ReportStyle::AtTheEnd { lines, .. } = &mut state.style {
            std::mem::take(lines).iter().for_each(|line| errln!("{line}"));
        }
        state.erase();
        state.is_paused = true;
    }

    fn pause(&self, is_paused: bool) {
        let mut state = self.state();
        state.print(&[]);
        state.is_paused = is_paused;
        match is_paused {
            true => state.erase(),
            false => state.update(&[]),
        }
    }

    fn state(&self) -> MutexGuard<'_, ReporterState> {
        self.0.lock()
    }
}

impl ReporterState {
    /// Prints lines, after the end of the model's text.
    fn print(&mut self, lines: &[String]) {
        match &mut self.style {
            ReportStyle::Screen { .. } => {
                let mut all = self.finished_text();
                all.extend_from_slice(lines);
                self.update(&all);
            }
            ReportStyle::AtTheEnd { lines: all, .. } => all.extend_from_slice(lines),
            ReportStyle::Lines | ReportStyle::Streaming => {
                if !std::mem::take(&mut self.unfinished).is_empty() {
                    errln!();
                }
                lines.iter().for_each(|line| errln!("{line}"));
            }
        }
    }

    /// The model wrote more text. On a screen its last line is in the live area until it is complete, so that what runs
    /// can be shown below it at any time.
    fn say(&mut self, words: &str) {
        match &self.style {
            ReportStyle::Lines => {}
            ReportStyle::AtTheEnd { saying, .. } => saying.lock().push_str(words),
            ReportStyle::Streaming => {
                err!("{}", plain(words));
                let _ = anstream::stderr().flush();
                self.unfinished = if words.ends_with('\n') { String::new() } else { "…".into() };
            }
            ReportStyle::Screen { .. } => {
                self.unfinished.push_str(words);
                let mut finished = Vec::new();
                while let Some(end) = self.unfinished.find('\n') {
                    let line: String = self.unfinished.drain(..=end).collect();
                    finished.extend(self.markdown.line(line.trim_end(), LiveScreen::width() - 1));
                }
                self.update(&finished);
            }
        }
    }

    /// The rows of the model's last line, which is complete now.
    fn finished_text(&mut self) -> Vec<String> {
        let line = std::mem::take(&mut self.unfinished);
        let width = LiveScreen::width() - 1;
        let mut rows = if line.is_empty() { Vec::new() } else { self.markdown.line(line.trim_end(), width) };
        rows.extend(self.markdown.end(width));
        rows
    }

    /// Prints lines above the live area and draws the area anew.
    fn update(&mut self, above: &[String]) {
        if !matches!(self.style, ReportStyle::Screen { .. }) {
            return;
        }
        let mut area = LiveArea::default();
        if !self.is_paused {
            let most = LiveScreen::height().saturating_sub(self.input.lines.len() + 6).max(2);
            let mut text = self.markdown.pending().to_vec();
            if !self.unfinished.is_empty() {
                text.extend(rows(&plain(&self.unfinished), LiveScreen::width() - 1));
            }
            area.lines.extend_from_slice(&text[text.len().saturating_sub(most)..]);
            area.lines.extend(self.transcript.running().lines(LiveScreen::width() - 1));
            area.cursor = self.input.cursor.map(|(line, column)| (area.lines.len() + line, column));
            area.lines.extend(self.input.lines.iter().cloned());
            if area.cursor.is_none() && !area.lines.is_empty() {
                // The cursor waits below.
                area.lines.push(String::new());
            }
        }
        self.screen.update(above, &area);
    }

    fn erase(&mut self) {
        self.screen.erase();
    }
}

impl EventSink for Reporter {
    fn event(&self, event: &Event) {
        let mut state = self.state();
        let were_heard = matches!(state.style, ReportStyle::Streaming | ReportStyle::Screen { .. });
        let is_screen = matches!(state.style, ReportStyle::Screen { .. });
        let width = if is_screen { LiveScreen::width() - 1 } else { usize::MAX };
        let mut lines = state.transcript.lines(event, were_heard, width);
        if is_screen {
            lines = lines.iter().flat_map(|line| line.split('\n')).flat_map(|line| rows(line, width)).collect();
        }
        if let EventPayload::TurnEnded { tokens, .. } = event.payload {
            state.tokens += tokens;
        }
        match &state.style {
            ReportStyle::Screen { is_conversation: true } if matches!(event.payload, EventPayload::TurnStarted) => {
                lines.clear();
            }
            ReportStyle::AtTheEnd { saying, .. } if matches!(event.payload, EventPayload::ModelSaid { .. }) => {
                saying.lock().clear();
            }
            _ => {}
        }
        if lines.is_empty() {
            state.update(&[]);
        } else {
            state.print(&lines);
        }
    }

    fn live(&self, event: &Event) {
        // Drawn with the next frame: a command may write faster than anybody reads.
        self.state().transcript.live(event);
    }
}

impl TextSink for Reporter {
    fn on_text(&self, agent: &AgentIdentity<'_>, words: &str) {
        if agent.is_first {
            self.state().say(words);
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
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
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
            outln!("{line}");
        }
    }
}

impl TextSink for JsonReporter {
    fn on_text(&self, _speaker: &AgentIdentity<'_>, _words: &str) {}
}
