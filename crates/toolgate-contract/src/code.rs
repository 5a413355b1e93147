//! Questions about code, which language servers answer. A tool asks through its hands; whoever implements
//! [`CodeIntelligence`] speaks the protocol; where a server runs and what it can touch is decided by the gate, which is its
//! [`ServerHost`].

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ChildProcess, FileEdit, Files, LaunchSpec, ServerLifetime, ToolError, WorkspacePath};

/// A question about code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeQuestion {
    /// What is wrong in these files; a directory stands for the source files in it.
    Diagnostics {
        /// Files and directories that the call declared.
        paths: Vec<WorkspacePath>,
        /// Whether linters are asked too.
        linters: bool,
        /// The mark of an earlier answer: only what isn't in that one is told.
        since: Option<String>,
    },
    /// Where a symbol is defined.
    Definition {
        /// The symbol.
        target: CodeTarget,
        /// What of it.
        kind: DefinitionKind,
    },
    /// Where a symbol is used.
    References {
        /// The symbol.
        target: CodeTarget,
    },
    /// What a symbol is: its type and documentation.
    Hover {
        /// The symbol.
        target: CodeTarget,
    },
    /// The symbols of a file.
    FileSymbols {
        /// The file.
        path: WorkspacePath,
    },
    /// Symbols of the workspace by name.
    FindSymbols {
        /// A part of the name.
        query: String,
    },
    /// Who calls a function, or what it calls.
    Calls {
        /// The function.
        target: CodeTarget,
        /// Which of the two.
        direction: CallDirection,
        /// How many steps.
        depth: u32,
    },
    /// The edits that give a symbol another name.
    Rename {
        /// The symbol.
        target: CodeTarget,
        /// Its new name.
        new_name: String,
    },
}

/// A symbol, by where it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeTarget {
    /// The file; none to look for the symbol in the workspace.
    pub path: Option<WorkspacePath>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The character in the line, from 1, for callers that know no name.
    pub column: Option<u32>,
    /// The name, which may say what it is in: `Server.start`.
    pub symbol: Option<String>,
}

/// What of a symbol is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionKind {
    /// Where it is defined.
    #[default]
    Definition,
    /// Where its type is defined.
    Type,
    /// What implements it.
    Implementation,
    /// Where it is declared.
    Declaration,
}

/// Who calls, or who is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallDirection {
    /// The callers.
    #[default]
    Incoming,
    /// The called.
    Outgoing,
}

/// What a language server can say at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// It knows the whole project as it is now.
    Ready,
    /// It still reads the project: what it says is true, and may be incomplete.
    Indexing,
    /// It didn't answer in time.
    Timeout,
    /// It ended, or wrote what isn't the protocol.
    Crashed,
    /// It isn't installed.
    Missing,
}

impl ServerStatus {
    /// The status as it appears in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Indexing => "indexing",
            Self::Timeout => "timeout",
            Self::Crashed => "crashed",
            Self::Missing => "missing",
        }
    }
}

/// The answer to a question about code.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeAnswer {
    /// The servers that were asked, and how each is.
    pub servers: Vec<ServerReport>,
    /// What they found.
    pub findings: CodeFindings,
    /// What else the reader should know.
    pub notes: Vec<String>,
    /// What later questions for what is new since then name; only for diagnostics.
    pub mark: Option<DiagnosticsMark>,
}

/// A state of what is wrong in files, to which a later one is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosticsMark {
    /// Its name.
    pub name: String,
    /// The severity of each that is gone since the earlier answer, where there is one.
    pub fixed: Option<Vec<CodeSeverity>>,
}

/// How one server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerReport {
    /// Its name.
    pub server: String,
    /// Its status.
    pub status: ServerStatus,
    /// How far it is, in its own words, while it is indexing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum CodeFindings {
    /// Places in code, sorted by path and line.
    Places(Vec<CodePlace>),
    /// What is wrong, sorted by path and line.
    Diagnostics(Vec<CodeDiagnostic>),
    /// Type and documentation; none if the server says nothing of the symbol.
    Hover(Option<String>),
    /// Symbols, in the order of the file, or of how well they fit.
    Symbols(Vec<CodeSymbol>),
    /// Calls, by depth.
    Calls(Vec<CodeCall>),
    /// One edit for each file, with the whole new content.
    Edits(Vec<FileEdit>),
}

/// A place in code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodePlace {
    /// The file, as a caller writes it; absolute outside of the workspace.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    #[serde(skip)]
    pub column: u32,
    /// The line's text; none outside of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The function, class or module that the place is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

/// How bad something is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeSeverity {
    /// It doesn't work.
    Error,
    /// It may not work.
    Warning,
    /// It is worth knowing.
    Information,
    /// It could be better.
    Hint,
}

/// Something that is wrong in code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeDiagnostic {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    #[serde(skip)]
    pub column: u32,
    /// How bad it is.
    pub severity: CodeSeverity,
    /// What is wrong.
    pub message: String,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The name of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The line's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl CodeDiagnostic {
    /// What stays the same where lines move: who says what, of which line.
    pub fn identity(&self) -> (&str, Option<&str>, Option<&str>, &str, Option<&str>) {
        let (source, code) = (self.source.as_deref(), self.code.as_deref());
        (&self.path, source, code, &self.message, self.text.as_deref().map(str::trim))
    }
}

/// A symbol of a file or of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeSymbol {
    /// Its name, with what it is in: `Server.start`.
    pub name: String,
    /// Function, class, method and so on.
    pub kind: String,
    /// The file; none where the question names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
}

/// A call of one function by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeCall {
    /// How many steps it is from the function that was asked for, from 1.
    pub depth: u32,
    /// The function that calls.
    pub caller: String,
    /// The function that is called.
    pub callee: String,
    /// Where the call is.
    #[serde(flatten)]
    pub place: CodePlace,
}

/// A file that a call changed.
#[derive(Debug, Clone)]
pub struct ChangedSource {
    /// The file.
    pub place: WorkspacePath,
    /// What it held before; none if it is new, or that isn't known.
    pub before: Option<crate::Blob>,
    /// Whether it wasn't there before.
    pub is_new: bool,
}

/// Answers questions about code.
pub trait CodeIntelligence: Send + Sync {
    /// Answers one.
    fn answer<'a>(
        &'a self,
        question: CodeQuestion,
        host: &'a dyn ServerHost,
    ) -> BoxFuture<'a, Result<CodeAnswer, ToolError>>;
    /// The errors that a change caused, from servers that run already, within this time.
    fn new_errors<'a>(
        &'a self,
        changed: Vec<ChangedSource>,
        within: Duration,
        host: &'a dyn ServerHost,
    ) -> BoxFuture<'a, Vec<CodeDiagnostic>>;
}

/// Begins to speak to a server that was just started.
pub type Connect<'a> =
    Box<dyn FnOnce(Arc<dyn ChildProcess>) -> BoxFuture<'a, Result<Arc<dyn ServerLifetime>, ToolError>> + Send + 'a>;

/// A program that ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishedProgram {
    /// Its exit code.
    pub exit_code: i32,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Where language servers run. What they may see is decided here: the workspace as it is, without what policy hides, and
/// nothing of it can be changed.
pub trait ServerHost: Send + Sync {
    /// The workspace's files.
    fn files(&self) -> Arc<dyn Files>;
    /// Whether policy hides a path from tools.
    fn hides(&self, place: &WorkspacePath) -> bool;
    /// The server with this key, or the one that is started like this. Without a question for `idle` it is stopped.
    fn server<'a>(
        &'a self,
        key: &'a str,
        idle: Duration,
        spec: LaunchSpec,
        connect: Connect<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ServerLifetime>, ToolError>>;
    /// The server with this key, if it runs and no other call uses its slot.
    fn warm<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Option<Arc<dyn ServerLifetime>>>;
    /// Ends a server. The next question starts it again.
    fn stop<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()>;
    /// Runs a program to its end, confined like a server.
    fn run_program<'a>(
        &'a self,
        spec: LaunchSpec,
        longest: Duration,
    ) -> BoxFuture<'a, Result<FinishedProgram, ToolError>>;
}
