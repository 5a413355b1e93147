//! The conversation on a terminal: keys, prompts and the end of the agent's work come in one loop, and everything that is
//! shown goes through the reporter.

use std::time::{Duration, Instant};

use anyhow::Result;
use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent, KeyEventKind};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_agent::{Agent, AgentOutcome};
use toolgate_contract::{CancellationToken, FinishReason, QuestionOutcome, counted};
use toolgate_runtime::ApprovalAnswer;

use super::completion::complete;
use super::editor::{Editor, EditorAction};
use super::prompts::{Prompt, PromptChange, PromptQueue};
use super::slash_command::SlashCommand;
use super::{Chat, Leave};
use crate::terminal::{
    DIM, LiveArea, LiveScreen, RED, TypedAnswer, YELLOW, answer_hint, elapsed, paint, plain, question_lines,
    read_answer, request_lines, said,
};
use crate::workspace::person_name;

/// How often the time of the current work is shown.
const CLOCK: Duration = Duration::from_millis(500);

/// The agent's current work.
struct Work {
    task: JoinHandle<(Agent, AgentOutcome)>,
    cancel: CancellationToken,
    began: Instant,
}

/// The state of the conversation on the terminal.
pub(super) struct ConversationLoop<'a> {
    chat: &'a mut Chat,
    editor: Editor,
    work: Option<Work>,
    prompts: PromptQueue,
    /// Names to choose from, below the input.
    choices: Vec<String>,
    /// Whether the last key was an interrupt that had nothing to interrupt.
    is_leaving: bool,
}

impl<'a> ConversationLoop<'a> {
    pub(super) fn new(chat: &'a mut Chat, editor: Editor) -> Self {
        Self { chat, editor, work: None, prompts: PromptQueue::default(), choices: Vec::new(), is_leaving: false }
    }

    /// Runs until the person leaves.
    pub(super) async fn run(
        mut self,
        mut asked: mpsc::UnboundedReceiver<Prompt>,
        quit: CancellationToken,
    ) -> Result<()> {
        let mut keys = EventStream::new();
        loop {
            self.draw();
            let is_working = self.work.is_some();
            let ended = async {
                match &mut self.work {
                    Some(work) => (&mut work.task).await,
                    None => std::future::pending().await,
                }
            };
            let second = async {
                match is_working {
                    true => tokio::time::sleep(CLOCK).await,
                    false => std::future::pending().await,
                }
            };
            // What is typed after the agent's last word is typed to one that is done. Then come keys: a prompt takes them only once
            // nothing is typed.
            let leave = tokio::select! {
                biased;
                ended = ended => self.finish(ended?)?,
                event = keys.next() => match event {
                    Some(Ok(event)) => self.take(event)?,
                    Some(Err(_)) | None => Leave::Now,
                },
                Some(prompt) = asked.recv() => self.ask(prompt),
                change = self.prompts.changed() => self.prompt_changed(change),
                () = second => Leave::No,
                () = quit.cancelled() => Leave::Now,
            };
            if leave == Leave::Now {
                break;
            }
        }
        self.stop().await
    }

    /// Stops the work before the conversation ends, so that its end is on record.
    async fn stop(mut self) -> Result<()> {
        self.prompts = PromptQueue::default();
        if let Some(Work { task, cancel, .. }) = self.work.take() {
            cancel.cancel();
            let (agent, _) = task.await?;
            self.chat.agent = Some(agent);
        }
        self.chat.reporter.set_input(LiveArea::default());
        Ok(())
    }

    fn draw(&self) {
        let width = LiveScreen::width();
        let asks = match self.prompts.open() {
            Some(Prompt::Approval(request, _)) => {
                let lines = vec![answer_hint(request)];
                return self.chat.reporter.set_input(LiveArea { cursor: Some((0, 0)), lines });
            }
            Some(Prompt::Reason(_)) => Some("why not?"),
            Some(Prompt::Question(..)) => Some("your answer:"),
            None => self.prompts.first().map(|_| "asked above; answer it when you have stopped typing"),
        };
        let hint = match (asks, &self.work) {
            (Some(_), _) => "",
            (None, Some(work)) if work.cancel.is_cancelled() => "interrupting …",
            (None, Some(_)) => "type to steer; Esc interrupts",
            (None, None) if self.is_leaving => "Ctrl-C again, or Ctrl-D, ends the conversation",
            (None, None) => "what should be done? /help shows what you can do",
        };
        let mut area = self.editor.view("›", hint, width);
        area.lines.insert(0, self.status(width));
        area.cursor = area.cursor.map(|(line, column)| (line + 1, column));
        if let Some(asks) = asks {
            area.lines.insert(1, paint(YELLOW, asks));
            area.cursor = area.cursor.map(|(line, column)| (line + 1, column));
        }
        if !self.choices.is_empty() {
            area.lines.push(paint(DIM, format!("  {}", plain(&self.choices.join("  ")))));
        }
        self.chat.reporter.set_input(area);
    }

    /// The line above the input: model, preset, tokens and cost.
    fn status(&self, width: usize) -> String {
        let state = match &self.work {
            Some(work) => format!("working {}", elapsed(work.began.elapsed())),
            None => "ready".to_owned(),
        };
        let words = format!("── {state} · {} ", self.chat.status());
        let rule = "─".repeat(width.saturating_sub(words.chars().count() + 1).min(200));
        paint(DIM, format!("{words}{rule}"))
    }

    fn take(&mut self, event: TerminalEvent) -> Result<Leave> {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            // An approval is answered with one key; a pasted text is meant for something else.
            TerminalEvent::Paste(_) if matches!(self.prompts.open(), Some(Prompt::Approval(..))) => Ok(Leave::No),
            TerminalEvent::Paste(text) => {
                self.prompts.typed();
                self.editor.insert(&text);
                Ok(Leave::No)
            }
            _ => Ok(Leave::No),
        }
    }

    fn key(&mut self, key: KeyEvent) -> Result<Leave> {
        if let Some(Prompt::Approval(..)) = self.prompts.open() {
            return Ok(self.approval_key(key));
        }
        self.prompts.typed();
        self.choices.clear();
        let was_leaving = std::mem::take(&mut self.is_leaving);
        match self.editor.key(key) {
            EditorAction::None => {}
            EditorAction::Complete => self.complete(),
            EditorAction::EndOfInput => return Ok(Leave::Now),
            EditorAction::Interrupt => return Ok(self.interrupt(key, was_leaving)),
            EditorAction::Submit(text) => return self.submit(text),
        }
        Ok(Leave::No)
    }

    /// An approval is answered with one key.
    fn approval_key(&mut self, key: KeyEvent) -> Leave {
        let Some(Prompt::Approval(request, answer)) = self.prompts.take() else { return Leave::No };
        let is_control = key.modifiers.contains(crossterm::event::KeyModifiers::CONTROL);
        let typed = match key.code {
            KeyCode::Char(letter) if !is_control => read_answer(letter.encode_utf8(&mut [0; 4]), &request),
            _ => None,
        };
        match (typed, key.code) {
            (Some(TypedAnswer::Yes(scope)), _) => {
                // One that was withdrawn meanwhile needs no answer.
                let _ = answer.send(ApprovalAnswer::Granted { scope, by: person_name() });
                self.prompt_done();
            }
            (Some(TypedAnswer::No), _) => self.prompts.put_back(Prompt::Reason(answer)),
            (None, KeyCode::Esc) => self.cancel_work(answer),
            (None, KeyCode::Char('c')) if is_control => self.cancel_work(answer),
            (Some(TypedAnswer::Abort) | None, _) => self.prompts.put_back(Prompt::Approval(request, answer)),
        }
        Leave::No
    }

    /// An interrupt while a person is asked stops the work, and so the question.
    fn cancel_work(&mut self, answer: tokio::sync::oneshot::Sender<ApprovalAnswer>) {
        drop(answer);
        self.prompt_done();
        if let Some(work) = &self.work {
            work.cancel.cancel();
        }
    }

    /// Esc and Ctrl-C stop what runs, else clear the input; a second Ctrl-C leaves.
    fn interrupt(&mut self, key: KeyEvent, was_leaving: bool) -> Leave {
        let is_escape = key.code == KeyCode::Esc;
        match &self.work {
            Some(work) if work.cancel.is_cancelled() && !is_escape => return Leave::Now,
            Some(work) => work.cancel.cancel(),
            None if !self.editor.text().is_empty() => self.editor.clear(),
            None if is_escape => {}
            None if was_leaving => return Leave::Now,
            None => self.is_leaving = true,
        }
        Leave::No
    }

    fn complete(&mut self) {
        let found = complete(self.editor.before_cursor(), &self.chat.workspace.directory);
        if let Some(found) = found {
            self.editor.replace_before_cursor(found.replaced, &found.with);
            self.choices = found.choices;
        }
    }

    fn submit(&mut self, text: String) -> Result<Leave> {
        let prompt = self.prompts.open().is_some().then(|| self.prompts.take()).flatten();
        match prompt {
            Some(prompt) => self.answer(prompt, &text),
            None if text.trim().is_empty() => {}
            None => {
                self.editor.remember(&self.chat.redacted(&text));
                match SlashCommand::parse(&text) {
                    Some(Ok(SlashCommand::Quit)) => return Ok(Leave::Now),
                    Some(Ok(command)) => {
                        // What it prints says too little without the command: `workspace` answers `/preset`.
                        let typed = format!("› {}", plain(text.trim()));
                        self.chat.reporter.print(&[paint(DIM, typed)]);
                        self.chat.command(command, self.work.is_some())?;
                    }
                    Some(Err(fault)) => self.chat.reporter.print(&[paint(RED, fault)]),
                    None => self.send(text),
                }
            }
        }
        Ok(Leave::No)
    }

    /// Sends a message: as the next task, or to the agent that works.
    fn send(&mut self, text: String) {
        match (&self.work, self.chat.agent.take()) {
            (None, Some(agent)) => {
                self.chat.reporter.print(&[String::new(), said(&text), String::new()]);
                self.begin(agent, text);
            }
            (_, agent) => {
                self.chat.agent = agent;
                self.chat.reporter.print(&[paint(DIM, format!("(before its next turn) {}", plain(&text)))]);
                self.chat.messages.put(text);
            }
        }
    }

    fn begin(&mut self, mut agent: Agent, text: String) {
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let task = tokio::spawn(async move {
            let outcome = agent.say(&text, stop).await;
            (agent, outcome)
        });
        self.work = Some(Work { task, cancel, began: Instant::now() });
    }

    /// The agent has ended its work. Messages that it didn't read become its next task; where it can't go on, they wait.
    fn finish(&mut self, (agent, outcome): (Agent, AgentOutcome)) -> Result<Leave> {
        self.work = None;
        self.chat.report(&outcome);
        let goes_on = matches!(outcome.finish, FinishReason::Answered | FinishReason::Cancelled);
        let unread = if goes_on { self.chat.messages.take() } else { Vec::new() };
        match unread.is_empty() {
            false => self.begin(agent, unread.join("\n\n")),
            true => self.chat.agent = Some(agent),
        }
        let left = self.chat.messages.len();
        if left > 0 && !goes_on {
            let note = format!("(unread, and sent with your next message: {})", counted(left, "message"));
            self.chat.reporter.print(&[paint(DIM, note)]);
        }
        Ok(Leave::No)
    }

    fn ask(&mut self, prompt: Prompt) -> Leave {
        match &prompt {
            Prompt::Approval(request, _) => self.chat.reporter.print(&request_lines(request)),
            Prompt::Question(question, _) => self.chat.reporter.print(&question_lines(question)),
            Prompt::Reason(_) => {}
        }
        self.prompts.push(prompt);
        Leave::No
    }

    fn prompt_changed(&mut self, change: PromptChange) -> Leave {
        match change {
            PromptChange::MayOpen => self.prompts.begin(self.editor.take()),
            PromptChange::Withdrawn => {
                self.prompts.take();
                let note = "(no longer needed: it was answered elsewhere or cancelled)";
                self.chat.reporter.print(&[paint(DIM, note)]);
                self.prompt_done();
            }
        }
        Leave::No
    }

    /// The first prompt is done; the person's own text comes back.
    fn prompt_done(&mut self) {
        if let Some(draft) = self.prompts.done() {
            self.editor.restore(draft);
        }
    }

    fn answer(&mut self, prompt: Prompt, text: &str) {
        match prompt {
            Prompt::Reason(answer) => {
                let reason = Some(text.trim().to_owned()).filter(|reason| !reason.is_empty());
                let _ = answer.send(ApprovalAnswer::Denied { by: person_name(), reason });
                self.prompt_done();
            }
            Prompt::Question(question, answer) => match question.answer(text, &person_name()) {
                Some(given) => {
                    self.chat.reporter.print(&[said(text)]);
                    let _ = answer.send(QuestionOutcome::Answered(given));
                    self.prompt_done();
                }
                None => {
                    self.chat.reporter.print(&[paint(DIM, "Please type one of the numbers, or an answer.")]);
                    self.prompts.put_back(Prompt::Question(question, answer));
                }
            },
            Prompt::Approval(..) => self.prompts.put_back(prompt),
        }
    }
}
