//! What a call will touch. A tool states its effects once; policy judges them, the approver is shown them, the lock
//! takes them, the hands enforce them, the audit records them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NoteKind;

/// One thing that a call will touch. A path effect covers everything beneath its path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Reads a file or what lies in a directory.
    Read {
        /// As the caller wrote it.
        path: String,
    },
    /// Creates or changes a file.
    Write {
        /// As the caller wrote it.
        path: String,
    },
    /// Removes a file or directory.
    Delete {
        /// As the caller wrote it.
        path: String,
    },
    /// Gives a place what Toolgate itself keeps of it and has looked at: what it was before a change that the record
    /// proves, what a person lets out of quarantine, or what git makes of a new repository. It means the place itself, never
    /// where a link there leads, and nothing beneath it.
    Restore {
        /// As the caller would write it.
        path: String,
        /// Whether something comes there, or goes.
        access: Access,
    },
    /// Runs a command. What the command touches is for policy to read out of it.
    Run {
        /// The command line.
        command: String,
        /// Where it runs, relative to the workspace.
        workdir: String,
    },
    /// Connects to a host.
    Connect {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// Runs a command with no sandbox around it.
    Unsandboxed {
        /// The command line.
        command: String,
    },
    /// Talks to the person.
    Speak,
    /// Follows a process that this session started, or ends it.
    Attend {
        /// The process' handle; `*` is every process.
        process: String,
    },
    /// Writes into a process that this session started. What it makes of that can't be known beforehand.
    Feed {
        /// The process' handle.
        process: String,
        /// What is written.
        text: String,
    },
    /// Reads back output that an earlier call of this run stored.
    Recall {
        /// The artifact's id.
        artifact: String,
    },
    /// Looks into one of the agent's own books, or writes in it.
    Note {
        /// Which.
        book: NoteKind,
        /// What is done with it.
        access: Access,
    },
    /// Loads a skill.
    Skill {
        /// Its name; none for a look at all of them.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        name: Option<String>,
    },
    /// Sets other agents to work. Each of their calls is judged on its own.
    Delegate {
        /// Which kind of agent, or which one.
        agent: String,
    },
}

/// What a path effect does with its path, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Looks at it.
    Read,
    /// Changes it.
    Write,
    /// Removes it.
    Delete,
}

impl Effect {
    /// Stands for every process.
    pub const ALL: &'static str = "*";

    /// A read of `path`.
    pub fn read(path: impl Into<String>) -> Self {
        Self::Read { path: path.into() }
    }

    /// A write of `path`.
    pub fn write(path: impl Into<String>) -> Self {
        Self::Write { path: path.into() }
    }

    /// A removal of `path`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::Delete { path: path.into() }
    }

    /// What is done to `path`.
    pub fn at(access: Access, path: impl Into<String>) -> Self {
        let path = path.into();
        match access {
            Access::Read => Self::Read { path },
            Access::Write => Self::Write { path },
            Access::Delete => Self::Delete { path },
        }
    }

    /// The path and what happens to it, for effects on files.
    pub fn path(&self) -> Option<(Access, &str)> {
        match self {
            Self::Read { path } => Some((Access::Read, path)),
            Self::Write { path } => Some((Access::Write, path)),
            Self::Delete { path } => Some((Access::Delete, path)),
            Self::Restore { path, access } => Some((*access, path)),
            _ => None,
        }
    }

    /// The permission that this effect needs.
    pub fn permission(&self) -> Permission {
        match self {
            Self::Read { .. } | Self::Restore { access: Access::Read, .. } => Permission::FsRead,
            Self::Write { .. } | Self::Restore { access: Access::Write, .. } => Permission::FsWrite,
            Self::Delete { .. } | Self::Restore { access: Access::Delete, .. } => Permission::FsDelete,
            Self::Run { .. } | Self::Attend { .. } | Self::Feed { .. } => Permission::ProcExec,
            Self::Connect { .. } => Permission::NetConnect,
            Self::Unsandboxed { .. } => Permission::Unsandboxed,
            Self::Speak | Self::Recall { .. } | Self::Note { .. } | Self::Skill { .. } | Self::Delegate { .. } => {
                Permission::Agent
            }
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path } => write!(f, "read {path}"),
            Self::Write { path } => write!(f, "write {path}"),
            Self::Delete { path } => write!(f, "delete {path}"),
            Self::Restore { path, access: Access::Delete } => write!(f, "take {path} back"),
            Self::Restore { path, .. } => write!(f, "restore {path}"),
            Self::Run { command, workdir } if workdir.is_empty() || workdir == "." => write!(f, "run {command}"),
            Self::Run { command, workdir } => write!(f, "run {command} (in {workdir})"),
            Self::Connect { host, port } => write!(f, "connect to {host}:{port}"),
            Self::Unsandboxed { command } => write!(f, "run WITHOUT ANY SANDBOX {command}"),
            Self::Speak => f.write_str("speak to the person"),
            Self::Attend { process } if process == Self::ALL => f.write_str("look at all processes"),
            Self::Attend { process } => write!(f, "attend to {process}"),
            Self::Feed { process, text } => write!(f, "write {text:?} into {process}"),
            Self::Recall { artifact } => write!(f, "recall {artifact}"),
            Self::Note { book, access: Access::Read } => write!(f, "look at {book}"),
            Self::Note { book, .. } => write!(f, "write {book}"),
            Self::Skill { name: Some(name) } => write!(f, "load the skill {name}"),
            Self::Skill { name: None } => f.write_str("look for skills"),
            Self::Delegate { agent } => write!(f, "set the agent {agent} to work"),
        }
    }
}

/// A right that a tool needs (C-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Permission {
    /// Read files.
    #[serde(rename = "fs.read")]
    FsRead,
    /// Create and change files.
    #[serde(rename = "fs.write")]
    FsWrite,
    /// Remove files.
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
    /// Run programs with no sandbox around them.
    #[serde(rename = "unsandboxed")]
    Unsandboxed,
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
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
