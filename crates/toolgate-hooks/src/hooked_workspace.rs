//! Answers the events of clients in one workspace: before a call it takes the gate's path, after it the outcome is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};
use toolgate_changes::EntrustedCall;
use toolgate_contract::{Call, CancellationToken, ErrorCode, HookedTool, Reply, ToolError, quoted};
use toolgate_dialects::{DialectMemory, NativeCall};
use toolgate_journal::HookRecord;
use toolgate_runtime::ClientEnding;
use toolgate_workspace::{RecordedSession, Workspace, WorkspaceError};

use crate::answer::HookAnswer;
use crate::client::{HookClient, client_named};
use crate::command::CommandTicket;
use crate::event::{ClientCall, ClientEvent, EventMoment};
use crate::native_call::native_call;
use crate::own_rules::OwnVerdict;
use crate::prompt::mentioned_paths;
use crate::sessions::recorded_session;
use crate::standing_prompt::ClientPrompt;

/// A call whose end wasn't reported after this long has none to report.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// At the end of a turn, a call that is older than this isn't running any more.
const TURN_MARGIN: SignedDuration = SignedDuration::from_secs(5);

/// Where the commands of a client run.
#[derive(Debug, Clone)]
pub enum CommandPlace {
    /// Here: the client is told to run this program instead, with these words before `hook exec`.
    Rewritten(Vec<String>),
    /// Where they are: the whole client is confined, and everything is recorded in this run.
    Confined {
        /// The run of the confined client.
        run: String,
    },
}

/// A workspace that answers the events of clients.
pub struct HookedWorkspace {
    /// The workspace.
    pub workspace: Workspace,
    /// Where commands run.
    pub place: CommandPlace,
    /// The person's home directory.
    pub home: PathBuf,
}

/// One event being answered.
struct Answering<'a> {
    hooked: &'a HookedWorkspace,
    client: &'static HookClient,
    event: &'a ClientEvent,
    recorded: RecordedSession,
}

impl HookedWorkspace {
    /// Answers an event. An error means that nothing could be judged: the caller denies.
    pub async fn answer(&self, client: &'static HookClient, event: &ClientEvent) -> Result<HookAnswer, ToolError> {
        if matches!(event.moment, EventMoment::Other) {
            return Ok(HookAnswer::Noted);
        }
        let run = match &self.place {
            CommandPlace::Rewritten(_) => None,
            CommandPlace::Confined { run } => Some(run.as_str()),
        };
        let recorded = recorded_session(&self.workspace, client, &event.session, run).map_err(unopened)?;
        let answering = Answering { hooked: self, client, event, recorded };
        match &event.moment {
            EventMoment::Before(call) => answering.before(call).await,
            EventMoment::After { call, result, failed } => answering.after(call, result, *failed),
            EventMoment::Prompt { message, files } => answering.prompt(message, files),
            EventMoment::TurnEnd => answering.settle(|age, _| age > TURN_MARGIN).map(|()| HookAnswer::Noted),
            EventMoment::SessionEnd => answering.end_session(),
            EventMoment::Other => Ok(HookAnswer::Noted),
        }
    }

    /// Ends the calls of a confined client that has ended itself: a killed one never says how they did, and what a person changes
    /// afterwards is not its work.
    pub fn end_confined(&self) -> Result<(), ToolError> {
        let CommandPlace::Confined { run } = &self.place else { return Ok(()) };
        let left = self.workspace.gate.changes().entrusted()?.into_iter().find(|call| call.run == *run);
        let Some(client) = left.and_then(|call| client_named(&call.hooked.client)) else { return Ok(()) };
        let event = &ClientEvent::of(None, None, EventMoment::SessionEnd);
        let recorded = recorded_session(&self.workspace, client, &event.session, Some(run)).map_err(unopened)?;
        Answering { hooked: self, client, event, recorded }.settle(|_, _| true)
    }
}

/// Why a workspace can't be used, as the error of a call.
fn unopened(error: WorkspaceError) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("The workspace can't be opened: {error}."))
}

impl Answering<'_> {
    async fn before(&self, call: &ClientCall) -> Result<HookAnswer, ToolError> {
        let memory = self.memory()?;
        let native = native_call(self.client, call, &memory, &self.hooked.home);
        let is_rewritten = matches!(self.hooked.place, CommandPlace::Rewritten(_));
        let answer = match native.tool {
            "shell" if is_rewritten => self.rewrite(call, &native).await?,
            _ => self.entrust(call, &native).await?,
        };
        self.settle(|age, _| age > FORGOTTEN_AFTER)?;
        Ok(answer)
    }

    /// Has the client run a command here instead of itself.
    async fn rewrite(&self, call: &ClientCall, native: &NativeCall) -> Result<HookAnswer, ToolError> {
        let asked = self.call(call, native, false);
        let session = &self.recorded.session;
        let own = self.own_verdict(native)?;
        if let Some(error) = own_refusal(&own, self.client.title, call.can_ask) {
            return Ok(HookAnswer::Deny { reason: refusal(&self.gate().refuse(asked, session, error)) });
        }
        if let (Some(why), Ok(_)) = (self.client.not_rewritten, self.gate().standing(asked.clone(), session)) {
            let error = ToolError::new(ErrorCode::PolicyDenied, why);
            return Ok(HookAnswer::Deny { reason: refusal(&self.gate().refuse(asked, session, error)) });
        }
        let ask = match self.gate().standing(asked.clone(), session) {
            Ok(None) => match own {
                OwnVerdict::Ask(rule) => Some(format!("{}'s own rule `{rule}` asks.", self.client.title)),
                _ => None,
            },
            Ok(Some(reason)) if call.can_ask => Some(reason),
            // Nobody can be asked here, or policy denies it: it is refused and recorded, unless the approval queue answers.
            _ => match self.gate().entrust(asked.clone(), &call.key(), session, CancellationToken::new()).await {
                Ok(entrusted) => {
                    let note = Some("It was approved, and runs as a call of its own.".to_owned());
                    let ending = ClientEnding { note, ..ClientEnding::default() };
                    self.gate().end_entrusted(&entrusted, session, ending)?;
                    None
                }
                Err(reply) => return Ok(HookAnswer::Deny { reason: refusal(&reply) }),
            },
        };
        let CommandPlace::Rewritten(words) = &self.hooked.place else {
            return Err(ToolError::internal("A command of a confined client isn't rewritten."));
        };
        let text = |name: &str| native.args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let ticket = CommandTicket {
            client: self.client.name.to_owned(),
            session: self.event.session.clone(),
            tool: call.tool.clone(),
            command: text("command"),
            workdir: text("workdir"),
            background: native.args.get("background").and_then(Value::as_bool).unwrap_or(false),
            requested: native.requested.clone(),
            justification: native.justification.clone(),
            is_approved: ask.is_some() || self.was_approved(&asked)?,
        };
        let id = self.hooked.workspace.clock.id().simple().to_string();
        self.gate().changes().hook_store()?.put(HookRecord::Command, &id, &ticket)?;
        let own = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let line = format!("{own} hook exec --id {id} -- {}", quoted(&ticket.command));
        Ok(HookAnswer::Rewrite { input: with_command(&call.input, &ticket.command, &line), ask })
    }

    /// What the client's own rules say of a command.
    fn own_verdict(&self, native: &NativeCall) -> Result<OwnVerdict, ToolError> {
        let Some(files) = self.client.own_rules else { return Ok(OwnVerdict::Silent) };
        let rules = files.rules(&self.hooked.workspace.directory, &self.hooked.home)?;
        let text = |name: &str| native.args.get(name).and_then(Value::as_str).unwrap_or_default();
        Ok(rules.judge(text("command"), &self.gate().policy().explain(text("command"), text("workdir"))))
    }

    /// Whether somebody approved a command just now that policy asks about.
    fn was_approved(&self, asked: &Call) -> Result<bool, ToolError> {
        Ok(self.gate().standing(asked.clone(), &self.recorded.session)?.is_some())
    }

    /// Judges and records a call that the client executes.
    async fn entrust(&self, call: &ClientCall, native: &NativeCall) -> Result<HookAnswer, ToolError> {
        let prompt = Arc::new(ClientPrompt::new(self.client.title));
        let mut session = self.recorded.session.clone();
        if call.can_ask {
            // The client's own prompt is the one that counts.
            session.queue = None;
            session = session.approved_by(Arc::clone(&prompt) as _);
        }
        let asked = self.call(call, native, true);
        match self.gate().entrust(asked, &call.key(), &session, CancellationToken::new()).await {
            Err(reply) => Ok(HookAnswer::Deny { reason: refusal(&reply) }),
            Ok(entrusted) => {
                self.settle(|_, earlier| {
                    earlier.tool_call_id != entrusted.tool_call_id && earlier.overlaps(&entrusted)
                })?;
                Ok(prompt.reason().map_or(HookAnswer::Proceed, |reason| HookAnswer::Ask { reason }))
            }
        }
    }

    fn after(&self, call: &ClientCall, result: &Value, failed: bool) -> Result<HookAnswer, ToolError> {
        let mut shown = result.clone();
        let redacted = self.gate().redactor().json(&mut shown);
        let key = call.key();
        let is_it = |entrusted: &EntrustedCall| entrusted.run == self.recorded.run.id && entrusted.key == key;
        if let Some(entrusted) = self.gate().changes().entrusted()?.into_iter().find(is_it) {
            let failed = failed.then(|| {
                let words = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
                ToolError::new(ErrorCode::IoError, format!("{} says: {words}", self.client.title))
            });
            let ending = ClientEnding { failed, redacted, note: None };
            self.gate().end_entrusted(&entrusted, &self.recorded.session, ending)?;
        }
        Ok(if redacted { HookAnswer::Replace { result: shown } } else { HookAnswer::Noted })
    }

    /// A message of the person: what it mentions and what is attached to it is read by the client without a hook.
    fn prompt(&self, message: &str, files: &[String]) -> Result<HookAnswer, ToolError> {
        let memory = self.memory()?;
        for path in mentioned_paths(message).chain(files.iter().map(String::as_str)) {
            let native = NativeCall::new("read", json!({ "path": memory.native(path) }));
            let call = ClientCall { id: None, tool: "@".into(), input: Value::Null, can_ask: false };
            let asked = self.call(&call, &native, true);
            match self.gate().standing(asked.clone(), &self.recorded.session) {
                Err(error) if matches!(error.code, ErrorCode::SensitivePath | ErrorCode::PolicyDenied) => {
                    let reply = self.gate().refuse(asked, &self.recorded.session, error);
                    return Ok(HookAnswer::Deny { reason: refusal(&reply) });
                }
                _ => {}
            }
        }
        Ok(HookAnswer::Noted)
    }

    fn end_session(&self) -> Result<HookAnswer, ToolError> {
        self.settle(|_, _| true)?;
        self.gate().changes().hook_store()?.remove(HookRecord::Directory, &self.recorded.run.id)?;
        if matches!(self.hooked.place, CommandPlace::Rewritten(_)) {
            self.recorded.run.end()?;
        }
        Ok(HookAnswer::Noted)
    }

    /// Ends calls of this run whose end was never reported, by their age or otherwise.
    fn settle(&self, is_over: impl Fn(SignedDuration, &EntrustedCall) -> bool) -> Result<(), ToolError> {
        let now = self.hooked.workspace.clock.now();
        for entrusted in self.gate().changes().entrusted()? {
            let is_ours = entrusted.run == self.recorded.run.id;
            if !is_ours || !is_over(now.duration_since(entrusted.started), &entrusted) {
                continue;
            }
            let silent = format!("{} never said how it ended.", self.client.title);
            let failed = entrusted
                .is_asked
                .then(|| ToolError::new(ErrorCode::ApprovalDenied, format!("Its person was asked. {silent}")));
            let ending = ClientEnding { failed, redacted: false, note: Some(silent) };
            self.gate().end_entrusted(&entrusted, &self.recorded.session, ending)?;
        }
        Ok(())
    }

    /// The native call, as the gate takes it.
    fn call(&self, call: &ClientCall, native: &NativeCall, client_executes: bool) -> Call {
        let mut made = Call::new(native.tool, native.args.clone(), self.hooked.workspace.clock.as_ref());
        made.requested_permissions.clone_from(&native.requested);
        made.justification.clone_from(&native.justification);
        made.trace_id = self.recorded.session.id.clone();
        let client = self.client.name.to_owned();
        made.hooked = Some(HookedTool { client, tool: call.tool.clone(), client_executes });
        made
    }

    /// What the client's dialect has to know: where the workspace is, and where the client's shell is in it.
    fn memory(&self) -> Result<DialectMemory, ToolError> {
        let workspace = &self.hooked.workspace.directory;
        let mut memory = DialectMemory::new(workspace.display().to_string());
        let store = self.gate().changes().hook_store()?;
        let kept: Option<String> = store.read(HookRecord::Directory, &self.recorded.run.id)?;
        memory.directory = kept.unwrap_or_else(|| relative(self.event.directory.as_deref(), workspace));
        Ok(memory)
    }

    fn gate(&self) -> &toolgate_runtime::Gate {
        &self.hooked.workspace.gate
    }
}

/// A directory relative to the workspace; one that isn't in it stays absolute, and is judged as such.
pub(crate) fn relative(directory: Option<&Path>, workspace: &Path) -> String {
    let Some(directory) = directory else { return String::new() };
    directory.strip_prefix(workspace).unwrap_or(directory).display().to_string()
}

/// The arguments with another command.
fn with_command(input: &Value, command: &str, line: &str) -> Value {
    let mut changed = input.clone();
    for value in changed.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if value.as_str() == Some(command) {
            *value = json!(line);
        }
    }
    changed
}

/// Why the client's own rules keep a command from running here; none if they don't.
fn own_refusal(own: &OwnVerdict, client: &str, can_ask: bool) -> Option<ToolError> {
    let message = match own {
        OwnVerdict::Deny(rule) => format!("{client}'s own rule `{rule}` denies this command."),
        OwnVerdict::Ask(rule) if !can_ask => {
            format!("{client}'s own rule `{rule}` asks, and nobody can be asked here.")
        }
        _ => return None,
    };
    Some(ToolError::new(ErrorCode::PolicyDenied, message))
}

/// Why a call was refused, and what to do next.
fn refusal(reply: &Reply) -> String {
    let Some(error) = &reply.error else { return "Toolgate refused it.".to_owned() };
    match &error.hint {
        Some(hint) => format!("Toolgate: {} {hint}", error.message),
        None => format!("Toolgate: {}", error.message),
    }
}
