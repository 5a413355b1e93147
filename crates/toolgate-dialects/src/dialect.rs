//! A dialect: the same abilities under the names, arguments and results that a model already knows. It is data and two pure
//! functions around the one path: [`Dialect::enter`] makes a native call of what a model asked for, and [`Dialect::leave`] says
//! the reply in the model's own terms. A dialect never sees the gate, so it can't reach around it.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Event, Reply, Right, ToolError};

use crate::memory::DialectMemory;
use crate::nearest::{is_named, meant_name};
use crate::parameter::{ArgumentError, Arguments, Parameter, schema};

/// The same abilities in the words of one client.
#[derive(Debug)]
pub struct Dialect {
    /// Its name, as people choose it.
    pub name: &'static str,
    /// Whose words they are.
    pub about: &'static str,
    /// Its tools.
    pub tools: &'static [DialectTool],
    /// Names of its tools that can't be had here, each with the reason that the model is told.
    pub unavailable: &'static [(&'static str, &'static str)],
    /// How it names tools of MCP servers.
    pub server_names: ServerNames,
    /// Tools of its own that do what a native one does, where none is mapped to it: hints name these.
    pub instead: &'static [(&'static str, &'static str)],
    /// Whether its tools refuse arguments that they don't know.
    pub is_closed: bool,
    /// Arguments that every tool of it takes and that change nothing here.
    pub ignored: &'static [&'static str],
    /// How its results are written.
    pub format: ResultFormat,
    /// How it says that a call failed.
    pub failure: fn(&FailedCall<'_>) -> ShownResult,
    /// How it writes the record of a run, if it has a form of its own for that.
    pub record: Option<WriteRecord>,
}

/// How a client names tools of MCP servers, which are natively called `SERVER__TOOL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerNames {
    /// What is before the server's name.
    pub prefix: &'static str,
    /// What is between the server and its tool.
    pub separator: &'static str,
}

impl ServerNames {
    /// As they are called natively.
    pub const NATIVE: Self = Self { prefix: "", separator: "__" };
    /// As several clients call them.
    pub const MCP: Self = Self { prefix: "mcp__", separator: "__" };

    /// What a name in this form can be natively. Where the separator can be part of a name, only the tools themselves say where the
    /// server's name ends.
    pub(crate) fn native_names(self, tool: &str) -> impl Iterator<Item = String> {
        let short = tool.strip_prefix(self.prefix).into_iter();
        let ends = short.flat_map(move |short| short.match_indices(self.separator).map(move |(at, _)| (short, at)));
        ends.map(move |(short, at)| {
            format!("{}{}{}", &short[..at], Self::NATIVE.separator, &short[at + self.separator.len()..])
        })
    }
}

/// How the results of a dialect are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// As text. The native hint of an error follows in a line of its own.
    Text,
    /// Each as one JSON object, which also holds the native hint of an error.
    Json {
        /// The field for remarks, from the top.
        notes: &'static [&'static str],
    },
}

/// A tool of a dialect.
#[derive(Debug)]
pub struct DialectTool {
    /// The name that the model knows.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The native tool that does the work. Where policy doesn't offer that one, this one isn't offered either.
    pub native: &'static str,
    /// What it does, for the model.
    pub about: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// The parameter that takes a call's free text, and its grammar, if the tool is called with free text instead of arguments.
    pub free_text: Option<(&'static str, &'static str)>,
    /// Makes the native call.
    pub enter: EnterTool,
    /// Says what came of it. Failures aren't its business.
    pub leave: LeaveTool,
}

impl DialectTool {
    /// A tool without other names, called with arguments.
    pub const fn new(
        name: &'static str,
        native: &'static str,
        about: &'static str,
        parameters: &'static [Parameter],
        enter: EnterTool,
        leave: LeaveTool,
    ) -> Self {
        Self { name, aliases: &[], native, about, parameters, free_text: None, enter, leave }
    }
}

/// Writes the events of a run in a form of its own, one value a line.
pub type WriteRecord = fn(&[Event]) -> Vec<Value>;
/// Makes the native call of a tool.
pub type EnterTool = fn(&Arguments, &DialectMemory) -> Result<NativeCall, EnterFault>;
/// Says what came of a tool's call.
pub type LeaveTool = fn(&mut Returned<'_>) -> ShownResult;

/// A call as the gate takes it.
#[derive(Debug, Clone)]
pub struct NativeCall {
    /// The native tool.
    pub tool: &'static str,
    /// Its arguments.
    pub args: Value,
    /// Rights beyond those that the tool declares. They are asked for, never given by themselves.
    pub requested: Vec<Right>,
    /// Why the model makes the call, for the person who may be asked.
    pub justification: Option<String>,
    /// What to do after a reply before the result is shown: perhaps another call.
    pub then: Option<NextCall>,
    /// Whether it is one of several, of which those that succeeded are shown even if this one fails.
    pub is_part: bool,
}

/// Decides, by the replies so far, whether another native call follows.
pub type NextCall = fn(&Answered<'_>) -> Result<Option<NativeCall>, EnterFault>;

/// A call of which at least one native call has its reply.
pub struct Answered<'a> {
    /// The arguments that the model sent.
    pub args: &'a Arguments,
    /// The replies to the native calls before the last one.
    pub earlier: &'a [Reply],
    /// The reply to the last native call.
    pub reply: &'a Reply,
    /// The session's memory.
    pub memory: &'a DialectMemory,
}

impl NativeCall {
    /// A call of a native tool. Arguments that are `null` are left out.
    pub fn new(tool: &'static str, args: Value) -> Self {
        let mut args = args;
        if let Value::Object(fields) = &mut args {
            fields.retain(|_, value| !value.is_null());
        }
        Self { tool, args, requested: Vec::new(), justification: None, then: None, is_part: false }
    }
}

/// Why no native call can be made of what a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum EnterFault {
    /// The dialect has no such tool.
    UnknownTool,
    /// The arguments don't fit.
    Arguments(Vec<ArgumentError>),
    /// Another reason, in the native words.
    Refused(ToolError),
}

impl From<ToolError> for EnterFault {
    fn from(error: ToolError) -> Self {
        Self::Refused(error)
    }
}

/// Refuses arguments that this client has and that can't be honoured here: they aren't dropped without a word.
pub(crate) fn not_here(args: &Arguments, names: &[&str]) -> Result<(), EnterFault> {
    let is_given = |name: &&&str| args.value(name).is_some_and(|value| *value != Value::Bool(false));
    match names.iter().find(is_given) {
        None => Ok(()),
        Some(name) => Err(ToolError::invalid_args(format!("`{name}` isn't supported here; leave it out.")).into()),
    }
}

/// A call on its way through the gate: what `leave` needs to know of it afterwards.
#[derive(Debug, Clone)]
pub struct EnteredCall {
    /// The native call to make now.
    pub native: NativeCall,
    tool: &'static DialectTool,
    args: Arguments,
    /// Arguments that the tool doesn't know and that were ignored, as its client ignores them.
    dropped: Vec<String>,
    earlier: Vec<Reply>,
}

impl EnteredCall {
    /// The arguments, as they were read.
    pub(crate) fn arguments(&self) -> Value {
        self.args.all().into()
    }
}

/// A call that succeeded natively, at least in part.
pub struct Returned<'a> {
    /// The arguments that the model sent.
    pub args: &'a Arguments,
    /// The replies to the native calls before the last one; some may be failures.
    pub earlier: &'a [Reply],
    /// The reply to the last native call; a failure only if that one is a part of several.
    pub reply: &'a Reply,
    /// The session's memory.
    pub memory: &'a mut DialectMemory,
}

impl<'a> Returned<'a> {
    /// A field of the payload.
    pub fn field(&self, name: &str) -> &'a Value {
        self.reply.payload.as_ref().and_then(|payload| payload.get(name)).unwrap_or(&Value::Null)
    }

    /// A text of the payload.
    pub fn text(&self, name: &str) -> &'a str {
        self.field(name).as_str().unwrap_or_default()
    }

    /// A list of the payload.
    pub fn list(&self, name: &str) -> &'a [Value] {
        self.field(name).as_array().map_or(&[], Vec::as_slice)
    }

    /// Whether a field of the payload is true.
    pub fn is(&self, name: &str) -> bool {
        self.field(name).as_bool().unwrap_or(false)
    }

    /// A number of the payload.
    pub fn number(&self, name: &str) -> i64 {
        self.field(name).as_i64().unwrap_or_default()
    }

    /// The handle of the stored output, if something was cut.
    pub fn artifact(&self) -> Option<&str> {
        self.reply.truncated.as_ref()?.artifact.as_deref()
    }
}

/// A call as a model asked for it.
#[derive(Debug, Clone, Copy)]
pub struct AskedCall<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The tool's name, as the model wrote it.
    pub tool: &'a str,
    /// The arguments as the model wrote them.
    pub args: &'a Value,
}

/// A call that failed, natively or before.
pub struct FailedCall<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The tool's name, as the model wrote it.
    pub tool: &'a str,
    /// The arguments as the model wrote them.
    pub args: &'a Value,
    /// Why.
    pub fault: &'a EnterFault,
    /// The native reply; none if no native call could be made.
    pub reply: Option<&'a Reply>,
    /// The names of the dialect's tools.
    pub known: &'a [&'static str],
    /// The session's memory.
    pub memory: &'a DialectMemory,
}

/// What the model gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownResult {
    /// The text.
    pub text: String,
    /// Whether it is marked as an error.
    pub is_error: bool,
}

impl FailedCall<'_> {
    /// A text among the arguments.
    pub fn text(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl ShownResult {
    /// A success.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// A failure.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// A dialect is known by its name.
impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Dialect {
    /// A dialect with closed schemas whose results are text.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        tools: &'static [DialectTool],
        failure: fn(&FailedCall<'_>) -> ShownResult,
    ) -> Self {
        Self {
            name,
            about,
            tools,
            unavailable: &[],
            server_names: ServerNames::NATIVE,
            instead: &[],
            is_closed: true,
            ignored: &[],
            format: ResultFormat::Text,
            failure,
            record: None,
        }
    }

    /// Every name that it knows, other names included.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().flat_map(|tool| std::iter::once(tool.name).chain(tool.aliases.iter().copied()))
    }

    /// The tool of this name. Names are exact: some differ only in case.
    pub fn tool(&self, name: &str) -> Option<&'static DialectTool> {
        self.tools.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))
    }

    /// The JSON Schema of a tool's arguments.
    pub fn schema(&self, tool: &DialectTool) -> Value {
        schema(tool.parameters, self.is_closed)
    }

    /// Makes a native call of what a model asked for.
    pub fn enter(&self, name: &str, args: &Value, memory: &DialectMemory) -> Result<EnteredCall, EnterFault> {
        let tool = self.tool(name).ok_or_else(|| self.not_offered(name))?;
        // Free text where arguments were expected, and the reverse: the content says what is meant.
        let meant = args.as_str().and_then(|text| match tool.free_text {
            Some((parameter, _)) => Some(json!({ parameter: text })),
            None => serde_json::from_str(text).ok().filter(Value::is_object),
        });
        let given = meant.as_ref().unwrap_or(args);
        let args =
            Arguments::read(given, tool.parameters, self.ignored, !self.is_closed).map_err(EnterFault::Arguments)?;
        let native = (tool.enter)(&args, memory)?;
        Ok(EnteredCall { native, tool, args, dropped: self.dropped(tool, given), earlier: Vec::new() })
    }

    /// The names of arguments that a tool doesn't have, but for those that change nothing.
    fn dropped(&self, tool: &DialectTool, given: &Value) -> Vec<String> {
        let is_known =
            |name: &str| self.ignored.contains(&name) || tool.parameters.iter().any(|parameter| parameter.name == name);
        let names = given.as_object().into_iter().flat_map(|given| given.keys());
        names.filter(|name| !is_known(name)).cloned().collect()
    }

    /// Why there is no tool of this name: the client has one that can't be had here, or it has none.
    fn not_offered(&self, name: &str) -> EnterFault {
        match self.unavailable.iter().find(|(unavailable, _)| *unavailable == name) {
            Some((_, reason)) => {
                ToolError::new(ErrorCode::ToolNotAllowed, format!("`{name}` isn't available here: {reason}")).into()
            }
            None => EnterFault::UnknownTool,
        }
    }

    /// The native call that follows this reply, if one does.
    pub fn next(
        &self,
        entered: &EnteredCall,
        reply: &Reply,
        memory: &DialectMemory,
    ) -> Result<Option<EnteredCall>, EnterFault> {
        let Some(then) = entered.native.then else { return Ok(None) };
        let next = then(&Answered { args: &entered.args, earlier: &entered.earlier, reply, memory })?;
        Ok(next.map(|native| {
            let mut entered = EnteredCall { native, ..entered.clone() };
            entered.earlier.push(reply.clone());
            entered
        }))
    }

    /// Says what came of a call.
    pub fn leave(&self, entered: &EnteredCall, reply: &Reply, memory: &mut DialectMemory) -> ShownResult {
        let EnteredCall { native, tool, args, earlier, dropped } = entered;
        let is_shown_in_part = native.is_part && earlier.iter().any(|reply| reply.ok);
        match reply.error.as_ref().filter(|_| !is_shown_in_part) {
            None => {
                let shown = (tool.leave)(&mut Returned { args, earlier, reply, memory });
                let mut shown = self.with_remarks(shown, tool, earlier.iter().chain([reply]));
                shown.text += &dropped
                    .iter()
                    .map(|name| format!("\n(`{name}` was ignored: {} doesn't have it.)", tool.name))
                    .collect::<String>();
                shown
            }
            Some(error) => {
                let asked = AskedCall { id: &reply.tool_call_id, tool: tool.name, args: &entered.arguments() };
                let error = self.with_own_names(tool.name, native.tool, error);
                self.say_failure(&asked, &EnterFault::Refused(error), Some(reply), memory)
            }
        }
    }

    /// Says that no native call could be made, or that none followed.
    pub fn fail(&self, asked: &AskedCall<'_>, fault: &EnterFault, memory: &DialectMemory) -> ShownResult {
        let native = self.tool(asked.tool).map_or(asked.tool, |tool| tool.native);
        let fault = match fault {
            EnterFault::Refused(error) => EnterFault::Refused(self.with_own_names(asked.tool, native, error)),
            other => other.clone(),
        };
        self.say_failure(asked, &fault, None, memory)
    }

    /// The native hint of an error is always said too, so that the model reads both what it knows and what to do next.
    fn say_failure(
        &self,
        asked: &AskedCall<'_>,
        fault: &EnterFault,
        reply: Option<&Reply>,
        memory: &DialectMemory,
    ) -> ShownResult {
        let AskedCall { id, tool, args } = *asked;
        let known: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
        let mut shown = (self.failure)(&FailedCall { id, tool, args, fault, reply, known: &known, memory });
        if let (ResultFormat::Text, EnterFault::Refused(ToolError { hint: Some(hint), .. })) = (self.format, fault) {
            shown.text += &format!("\n{hint}");
        }
        let is_text = self.format == ResultFormat::Text;
        let meant = meant_name(tool, &known).filter(|_| is_text && matches!(fault, EnterFault::UnknownTool));
        // Some clients name tools that are near themselves.
        if let Some(meant) = meant.filter(|name| !is_named(name, &shown.text)) {
            shown.text += &format!("\nDid you mean `{meant}`?");
        }
        shown
    }
}
