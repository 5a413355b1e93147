//! A conversation with an agent: the agent loop of `run` with one task after the other. At a terminal there is an input
//! below what is shown; otherwise each line of input is a message.

mod completion;
mod conversation_loop;
mod editor;
mod history;
mod prompts;
mod slash_command;

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::sync::mpsc;
use toolgate_agent::{Agent, AgentOutcome, MessageQueue};
use toolgate_contract::{Call, CancellationToken, FinishReason};
use toolgate_journal::{Run, RunHold};
use toolgate_runtime::{NobodyAnswers, NobodyToAsk, NobodyWatches, Session};
use toolgate_workspace::Workspace;

use self::conversation_loop::ConversationLoop;
use self::editor::Editor;
use self::history::History;
use self::prompts::Prompter;
use self::slash_command::{COMMANDS, KEYS, SlashCommand};
use crate::attach::{AttachSocket, ServedProcesses};
use crate::commands::{
    AgentArgs, AgentRun, ChangesArgs, Invocation, OpenedModel, RunObservers, UndoArgs, recorded_events,
};
use crate::exit::Exit;
use crate::output::{err, outln};
use crate::signals::cancel_on_signal;
use crate::terminal::{
    BOLD, DIM, ExclusivePrompt, GREEN, LiveScreen, RED, RawMode, ReportStyle, Reporter, TerminalAnswerer,
    TerminalApprover, checklist, grouped_count, paint, plain, print_error, recap, rows,
};
use crate::workspace::{find_workspace, open_workspace_with, person_name};

/// Text that is pasted comes in one piece, and isn't taken for keys.
const BEGIN_PASTES: &str = "\u{1b}[?2004h";
const END_PASTES: &str = "\u{1b}[?2004l";

/// Whether the conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    No,
    Now,
}

/// A conversation: the agent while it doesn't work, and what the commands need.
struct Chat {
    reporter: Arc<Reporter>,
    observers: RunObservers,
    args: AgentArgs,
    invocation: Invocation,
    workspace: Workspace,
    run: Arc<Run>,
    /// Keeps other processes from continuing the run meanwhile.
    _hold: RunHold,
    session: Session,
    opened: OpenedModel,
    agent: Option<Agent>,
    messages: Arc<MessageQueue>,
    /// The terminal's own settings come back while something else prints.
    raw: Option<RawMode>,
}

/// A conversation at a terminal.
pub(crate) async fn at_terminal(args: AgentArgs, invocation: Invocation) -> Result<Exit> {
    let style = ReportStyle::of_terminal(true);
    let reporter = Arc::new(Reporter::new(style));
    let (ask, asked) = mpsc::unbounded_channel();
    let prompter = Arc::new(Prompter(ask));
    let observers = RunObservers {
        sink: reporter.clone(),
        listener: reporter.clone(),
        approver: prompter.clone(),
        answerer: prompter,
    };
    let mut chat = Chat::open(args, invocation, reporter, observers).await?;
    let history = History::open(&chat.invocation.location.config.state);
    chat.greet()?;
    let quit = CancellationToken::new();
    cancel_on_signal(quit.clone(), || {});
    let ticking = Arc::clone(&chat.reporter).tick();
    let location = &chat.invocation.location;
    let socket = AttachSocket::open(&location.config.attach_sockets(), ServedProcesses::of(&chat.workspace, location));
    chat.take_terminal()?;
    let ended = chat.converse(Editor::new(history), asked, quit).await;
    chat.give_terminal_back();
    ticking.abort();
    if let Ok(socket) = socket {
        socket.close().await;
    }
    chat.close().await?;
    ended?;
    Ok(Exit::Ok)
}

/// A conversation without a terminal: a message in each line, and answers on standard output.
pub(crate) async fn from_lines(args: AgentArgs, invocation: Invocation) -> Result<Exit> {
    let reporter = Arc::new(Reporter::new(ReportStyle::Lines));
    let observers = RunObservers {
        sink: reporter.clone(),
        listener: reporter.clone(),
        approver: Arc::new(NobodyToAsk),
        answerer: Arc::new(NobodyAnswers),
    };
    // A terminal that can't move its cursor: the person types whole lines, messages and answers alike.
    let is_terminal = TerminalApprover::is_possible();
    let observers = if is_terminal { asked_by_lines(observers, &reporter) } else { observers };
    let mut chat = Chat::open(args, invocation, reporter, observers).await?;
    let cancel = CancellationToken::new();
    cancel_on_signal(cancel.clone(), || {});
    let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    let mut finish = FinishReason::Answered;
    loop {
        if is_terminal {
            err!("> ");
        }
        let Some(line) = lines.next_line().await.context("standard input can't be read")? else { break };
        let Some(agent) = chat.agent.as_mut().filter(|_| !line.trim().is_empty()) else { continue };
        let outcome = agent.say(&line, cancel.clone()).await;
        match outcome.answer() {
            Some(answer) => outln!("{}", plain(answer)),
            None => chat.report(&outcome),
        }
        finish = outcome.finish;
        if cancel.is_cancelled() {
            break;
        }
    }
    chat.close().await?;
    Ok(Exit::of_finish(finish))
}

/// The same observers, with the person at the terminal to answer.
fn asked_by_lines(observers: RunObservers, reporter: &Arc<Reporter>) -> RunObservers {
    let (by, answerer) = (person_name(), TerminalAnswerer { by: person_name() });
    let approver = Arc::new(ExclusivePrompt::new(TerminalApprover { by }, Arc::clone(reporter)));
    let answerer = Arc::new(ExclusivePrompt::new(answerer, Arc::clone(reporter)));
    RunObservers { approver, answerer, ..observers }
}

impl Chat {
    async fn open(
        args: AgentArgs,
        invocation: Invocation,
        reporter: Arc<Reporter>,
        observers: RunObservers,
    ) -> Result<Self> {
        let begun = AgentRun::begin(&args, &invocation, "chat", &observers)?;
        let agent = begun.agent(&invocation.location, &observers.listener).await;
        let messages = agent.messages();
        reporter.add_tokens(begun.tokens);
        let AgentRun { workspace, run, hold, session, opened, .. } = begun;
        let agent = Some(agent);
        Ok(Self {
            reporter,
            observers,
            args,
            invocation,
            workspace,
            run,
            _hold: hold,
            session,
            opened,
            agent,
            messages,
            raw: None,
        })
    }

    async fn converse(
        &mut self,
        editor: Editor,
        asked: mpsc::UnboundedReceiver<prompts::Prompt>,
        quit: CancellationToken,
    ) -> Result<()> {
        ConversationLoop::new(self, editor).run(asked, quit).await
    }

    /// Says where this is, and where an earlier conversation had got to.
    fn greet(&self) -> Result<()> {
        let (model, directory) = (&self.opened.name, self.workspace.directory.display());
        let head = format!("{} {}", paint(BOLD, "toolgate"), paint(DIM, format!("{directory} · {}", plain(model))));
        self.reporter.print(&[head]);
        if self.args.continues || self.args.resume.is_some() {
            let earlier = recap(&recorded_events(&self.workspace, &self.run)?, LiveScreen::width() - 1);
            self.reporter.print(&earlier);
            self.reporter.print(&[paint(DIM, format!("going on with {}", self.run.id))]);
        }
        Ok(())
    }

    fn take_terminal(&mut self) -> Result<()> {
        self.raw = RawMode::begin()?;
        eprint!("{BEGIN_PASTES}");
        Ok(())
    }

    fn give_terminal_back(&mut self) {
        eprint!("{END_PASTES}");
        self.raw = None;
    }

    /// Lets something print as usual, where the live area is.
    fn print_as_usual(&mut self, print: impl FnOnce(&Invocation) -> Result<Exit> + Send) -> Result<()> {
        self.give_terminal_back();
        let reporter = Arc::clone(&self.reporter);
        // A subcommand has a runtime of its own, which can't begin inside this one.
        reporter.suspended(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| print(&self.invocation).map_err(|error| print_error(&error)).ok());
            });
        });
        self.take_terminal()
    }

    /// What the line above the input says.
    fn status(&self) -> String {
        let tokens = self.reporter.tokens();
        let cost = self.opened.settings.cost(tokens).map(|cost| format!(" · {cost}")).unwrap_or_default();
        let preset = self.workspace.gate.policy().preset();
        format!("{}{cost} · {preset} · {}", grouped_count(tokens.total(), "token"), plain(&self.opened.name))
    }

    fn redacted(&self, text: &str) -> String {
        self.workspace.gate.redactor().text(text).into_owned()
    }

    /// Says how a task ended, unless its answer does.
    fn report(&self, outcome: &AgentOutcome) {
        let line = match outcome.finish {
            FinishReason::Answered => String::new(),
            FinishReason::Cancelled => paint(DIM, "(interrupted)"),
            finish => format!("{} {}", paint(RED, format!("✗ {finish}:")), plain(&outcome.summary)),
        };
        self.reporter.print(&[line]);
    }

    fn command(&mut self, command: SlashCommand, is_working: bool) -> Result<()> {
        let needs_agent = matches!(
            command,
            SlashCommand::Model(Some(_)) | SlashCommand::Preset(Some(_)) | SlashCommand::Undo | SlashCommand::Plan
        );
        if is_working && needs_agent {
            self.reporter.print(&[paint(DIM, "That has to wait until the agent is done. Esc interrupts it.")]);
            return Ok(());
        }
        match command {
            SlashCommand::Help => {
                self.reporter.print(&[
                    COMMANDS.to_owned(),
                    String::new(),
                    rows(KEYS, LiveScreen::width() - 1).join("\n"),
                ]);
            }
            SlashCommand::Model(None) => self.reporter.print(&[plain(&self.opened.name)]),
            SlashCommand::Model(Some(name)) => self.set_model(&name),
            SlashCommand::Preset(None) => self.reporter.print(&[self.workspace.gate.policy().preset().to_string()]),
            SlashCommand::Preset(Some(name)) => self.set_preset(&name),
            SlashCommand::Undo => return self.undo(),
            SlashCommand::Changes => {
                let run = self.run.id.clone();
                return self.print_as_usual(|invocation| ChangesArgs::of_run(run).run(invocation));
            }
            SlashCommand::Plan => self.show_plan(),
            SlashCommand::Cost => self.reporter.print(&[self.status()]),
            SlashCommand::Quit => {}
        }
        Ok(())
    }

    fn set_model(&mut self, name: &str) {
        let opened = self.args.model.open_named(name, &self.opened.settings);
        match (opened, self.agent.as_mut()) {
            (Ok(opened), Some(agent)) => {
                agent.set_model(Arc::clone(&opened.model));
                self.reporter.print(&[paint(GREEN, format!("The model is {} now.", plain(name)))]);
                self.opened = opened;
            }
            (Err(error), _) => self.reporter.print(&[paint(RED, plain(&format!("{error:#}")))]),
            (Ok(_), None) => {}
        }
    }

    /// Opens the workspace anew under another preset. Layers with more authority still count.
    fn set_preset(&mut self, name: &str) {
        match self.try_set_preset(name) {
            Ok(preset) => {
                self.messages.put(format!("[The person set the preset to {preset}: other calls may be allowed now.]"));
                self.reporter.print(&[paint(GREEN, format!("The preset is {preset} now."))]);
            }
            Err(error) => self.reporter.print(&[paint(RED, plain(&format!("{error:#}")))]),
        }
    }

    fn try_set_preset(&mut self, name: &str) -> Result<String> {
        let mut policy = self.invocation.policy.clone();
        policy.preset = Some(name.to_owned());
        let location = find_workspace(Some(self.workspace.directory.clone()), &policy)?;
        let workspace = open_workspace_with(&location, toolgate_agent::tools(), self.opened.secrets())?;
        let mut session = workspace.session_in(Arc::clone(&self.run), &self.args.session)?.session;
        session.processes = Arc::clone(&self.session.processes);
        let session = self.observers.watch(session);
        let preset = workspace.gate.policy().preset().to_string();
        if let Some(agent) = self.agent.take() {
            self.agent = Some(agent.moved_to(Arc::clone(&workspace.gate), session.clone()));
        }
        (self.workspace, self.session) = (workspace, session);
        (self.invocation.location, self.invocation.policy) = (location, policy);
        Ok(preset)
    }

    /// Undoes the last change, and tells the model.
    fn undo(&mut self) -> Result<()> {
        let mut is_done = false;
        self.print_as_usual(|invocation| {
            let done = UndoArgs::last().run(invocation);
            is_done = done.as_ref().is_ok_and(|exit| *exit == Exit::Ok);
            done
        })?;
        if is_done {
            self.messages
                .put("[The person undid your last change of files. Read a file again before you edit it.]".into());
        }
        Ok(())
    }

    /// Shows the plan and the todo list.
    fn show_plan(&self) {
        let quiet = self.session.clone().watched_by(Arc::new(NobodyWatches));
        let call = |tool: &str| {
            let call = Call::new(tool, json!({}), self.workspace.clock.as_ref());
            let performed = self.workspace.gate.perform(call, &quiet, CancellationToken::new());
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(performed))
        };
        let replies = ["plan", "todo_read"].map(call);
        let mut lines: Vec<String> =
            replies.iter().filter_map(|reply| reply.payload.as_ref()).flat_map(checklist).collect();
        if lines.is_empty() {
            lines.push(paint(DIM, "There is no plan and no todo list."));
        }
        self.reporter.print(&lines);
    }

    /// Ends the session's processes and the run.
    async fn close(&self) -> Result<()> {
        self.session.end().await;
        self.run.end().context("the end of the run couldn't be recorded")?;
        self.workspace.finish();
        self.reporter.print(&[paint(DIM, format!("to go on: toolgate chat --resume {}", self.run.id))]);
        Ok(())
    }
}
