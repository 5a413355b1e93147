//! What a call will touch. A tool states its effects once; policy judges them, the approver sees them, locks are taken
//! on them, [`Hands`](crate::Hands) enforce them, and the journal records them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NoteKind;

/// One thing that a call will touch. A path effect covers everything beneath its path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Reads a file or the content of a directory.
    Read {
        /// As the caller wrote it.
        path: String,
    },
    /// Creates or changes a file.
    Write {
        /// As the caller wrote it.
        path: String,
    },
    /// Deletes a file or directory.
    Delete {
        /// As the caller wrote it.
        path: String,
    },
    /// Examines the entry of a directory, or creates or replaces a symbolic link there. It applies to the path itself,
    /// never to the target of a link, and to nothing beneath it.
    Entry {
        /// As the caller wrote it.
        path: String,
        /// What is done with the entry. To delete it, state [`Effect::Delete`], which follows no link either.
        access: Access,
    },
    /// Restores content at a path that Toolgate itself recorded and checked: the state before a change that the journal
    /// proves, a file that a person releases from quarantine, or what git writes into a new repository. It applies to
    /// the path itself, never to the target of a link there, and to nothing beneath it.
    Restore {
        /// As the caller would write it.
        path: String,
        /// Whether the path is written or deleted.
        access: Access,
    },
    /// Runs a command. Policy determines from the command what it touches.
    Run {
        /// The command line.
        command: String,
        /// The directory it runs in, relative to the workspace.
        workdir: String,
    },
    /// Connects to a host.
    Connect {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// Runs a command without a sandbox.
    Unsandboxed {
        /// The command line.
        command: String,
    },
    /// Talks to the person.
    Speak,
    /// Follows a process that this session started, or ends it.
    Attend {
        /// The process's handle; `*` is every process.
        process: String,
    },
    /// Writes to a process that this session started. What the process does with the input can't be known.
    Feed {
        /// The process's handle.
        process: String,
        /// The input.
        text: String,
    },
    /// Reads output that an earlier call of this run stored.
    Recall {
        /// The artifact's id.
        artifact: String,
    },
    /// Reads or writes the agent's own notes.
    Note {
        /// The kind of notes.
        book: NoteKind,
        /// What is done with them.
        access: Access,
    },
    /// Loads a skill.
    Skill {
        /// Its name; none for listing all skills.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        name: Option<String>,
    },
    /// Starts other agents, or controls them. Each of their calls is judged separately.
    Delegate {
        /// The kind of agent, or the id of one.
        agent: String,
    },
    /// Uses a tool of another MCP server. What the server may touch is said by its configuration, and enforced by its
    /// sandbox.
    UseServer {
        /// The server's name in the configuration.
        server: String,
        /// The tool as the server calls it; none for asking the server which tools it has.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tool: Option<String>,
        /// The hash of the tool's definition that a person approved. Another definition is another effect.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        definition: Option<String>,
    },
}

/// What a path effect does with its path, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads it.
    Read,
    /// Changes it.
    Write,
    /// Deletes it.
    Delete,
}

impl Effect {
    /// The handle that means every process.
    pub const ALL: &'static str = "*";

    /// A read of `path`.
    pub fn read(path: impl Into<String>) -> Self {
        Self::Read { path: path.into() }
    }

    /// A write of `path`.
    pub fn write(path: impl Into<String>) -> Self {
        Self::Write { path: path.into() }
    }

    /// A deletion of `path`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::Delete { path: path.into() }
    }

    /// An effect on `path` with this access.
    pub fn at(access: Access, path: impl Into<String>) -> Self {
        let path = path.into();
        match access {
            Access::Read => Self::Read { path },
            Access::Write => Self::Write { path },
            Access::Delete => Self::Delete { path },
        }
    }

    /// The path and the access to it, for effects on files.
    pub fn path(&self) -> Option<(Access, &str)> {
        match self {
            Self::Read { path } => Some((Access::Read, path)),
            Self::Write { path } => Some((Access::Write, path)),
            Self::Delete { path } => Some((Access::Delete, path)),
            Self::Entry { path, access } | Self::Restore { path, access } => Some((*access, path)),
            _ => None,
        }
    }

    /// The permission that this effect needs.
    pub fn permission(&self) -> Permission {
        match self {
            Self::Read { .. } => Permission::FsRead,
            Self::Write { .. } => Permission::FsWrite,
            Self::Delete { .. } => Permission::FsDelete,
            Self::Entry { access, .. } | Self::Restore { access, .. } => match access {
                Access::Read => Permission::FsRead,
                Access::Write => Permission::FsWrite,
                Access::Delete => Permission::FsDelete,
            },
            Self::Run { .. } | Self::Attend { .. } | Self::Feed { .. } => Permission::ProcExec,
            Self::Connect { .. } => Permission::NetConnect,
            Self::Unsandboxed { .. } => Permission::Unsandboxed,
            Self::Speak | Self::Recall { .. } | Self::Note { .. } | Self::Skill { .. } | Self::Delegate { .. } => {
                Permission::Agent
            }
            Self::UseServer { .. } => Permission::McpCall,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path } => write!(f, "read {path}"),
            Self::Write { path } => write!(f, "write {path}"),
            Self::Delete { path } => write!(f, "delete {path}"),
            Self::Entry { path, access: Access::Read } => write!(f, "examine {path}"),
            Self::Entry { path, access: Access::Write } => write!(f, "write the link {path}"),
            Self::Entry { path, access: Access::Delete } => write!(f, "delete the link {path}"),
            Self::Restore { path, access: Access::Delete } => write!(f, "take {path} back"),
            Self::Restore { path, .. } => write!(f, "restore {path}"),
            Self::Run { command, workdir } if workdir.is_empty() || workdir == "." => write!(f, "run {command}"),
            Self::Run { command, workdir } => write!(f, "run {command} (in {workdir})"),
            Self::Connect { host, port } => write!(f, "connect to {host}:{port}"),
            Self::Unsandboxed { command } => write!(f, "run WITHOUT ANY SANDBOX {command}"),
            Self::Speak => f.write_str("speak to the person"),
            Self::Attend { process } if process == Self::ALL => f.write_str("list all processes"),
            Self::Attend { process } => write!(f, "follow or end {process}"),
            Self::Feed { process, text } => write!(f, "write {text:?} into {process}"),
            Self::Recall { artifact } => write!(f, "recall {artifact}"),
            Self::Note { book, access: Access::Read } => write!(f, "read {book}"),
            Self::Note { book, .. } => write!(f, "write {book}"),
            Self::Skill { name: Some(name) } => write!(f, "load the skill {name}"),
            Self::Skill { name: None } => f.write_str("list skills"),
            Self::Delegate { agent } => write!(f, "delegate to the agent {agent}"),
            Self::UseServer { server, tool: Some(tool), .. } => write!(f, "use {tool} of the MCP server {server}"),
            Self::UseServer { server, tool: None, .. } => write!(f, "start the MCP server {server}"),
        }
    }
}

/// A permission that a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Permission {
    /// Read files.
    #[serde(rename = "fs.read")]
    FsRead,
    /// Create and change files.
    #[serde(rename = "fs.write")]
    FsWrite,
    /// Delete files.
    #[serde(rename = "fs.delete")]
    FsDelete,
    /// Run programs.
    #[serde(rename = "proc.exec")]
    ProcExec,
    /// Open network connections.
    #[serde(rename = "net.connect")]
    NetConnect,
    /// Change a repository's history or remotes.
    #[serde(rename = "git.write")]
    GitWrite,
    /// Talk to the person, plan, remember.
    #[serde(rename = "agent")]
    Agent,
    /// Run programs without a sandbox.
    #[serde(rename = "unsandboxed")]
    Unsandboxed,
    /// Use tools of other MCP servers.
    #[serde(rename = "mcp.call")]
    McpCall,
}

impl Permission {
    /// Every permission.
    pub const ALL: &'static [Self] = &[
        Self::FsRead,
        Self::FsWrite,
        Self::FsDelete,
        Self::ProcExec,
        Self::NetConnect,
        Self::GitWrite,
        Self::Agent,
        Self::Unsandboxed,
        Self::McpCall,
    ];

    /// The name used in configuration, declarations and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FsRead => "fs.read",
            Self::FsWrite => "fs.write",
            Self::FsDelete => "fs.delete",
            Self::ProcExec => "proc.exec",
            Self::NetConnect => "net.connect",
            Self::GitWrite => "git.write",
            Self::Agent => "agent",
            Self::Unsandboxed => "unsandboxed",
            Self::McpCall => "mcp.call",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
