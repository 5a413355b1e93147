//! What a tool declares about itself.

use schemars::{JsonSchema, Schema};
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::Permission;

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Reads only.
    Low,
    /// Executes locally.
    Medium,
    /// Writes, deletes, or reaches the network.
    High,
}

/// A lasting effect of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Creates or changes files.
    WritesFiles,
    /// Deletes files.
    DeletesFiles,
    /// Starts processes.
    StartsProcesses,
    /// Sends data over the network.
    UsesNetwork,
    /// Shows something to the person.
    SpeaksToPerson,
    /// Changes the agent's own notes: a to-do list, a plan, a memory.
    KeepsNotes,
}

/// How a model passes its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ArgumentFormat {
    /// A JSON object by the schema; `strict` asks the model provider to enforce it as well.
    Function {
        /// Whether the provider should constrain the model to the schema.
        strict: bool,
    },
    /// One free text by a grammar, for tools whose natural input is not JSON.
    Freeform {
        /// The grammar's language, such as `lark` or `regex`.
        syntax: String,
        /// The grammar.
        grammar: String,
        /// The argument that receives the text.
        argument: String,
    },
}

/// How a result is best shown to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultForm {
    /// As data: every field has its meaning.
    #[default]
    Fields,
    /// As text and images. The text is the payload's field `content`; the other fields are about it.
    Content,
}

/// The constant part of a declaration, as a tool defines it.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Unique name.
    pub name: &'static str,
    /// `MAJOR.MINOR.PATCH`.
    pub version: &'static str,
    /// What it does and when to use it, for the model.
    pub description: &'static str,
    /// How much harm it can do.
    pub risk: Risk,
    /// The permissions it needs.
    pub permissions: &'static [Permission],
    /// Its lasting effects.
    pub side_effects: &'static [SideEffect],
    /// Whether it may run concurrently with other calls.
    pub parallel: bool,
}

/// Everything known about a tool without running it. Owned, so that tools from other servers can have one too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// Unique name.
    pub name: String,
    /// Semantic version of name, schema and behaviour.
    pub version: Version,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema 2020-12 of the arguments.
    pub args_schema: Schema,
    /// JSON Schema 2020-12 of the payload.
    pub return_schema: Schema,
    /// The permissions it needs.
    pub required_permissions: Vec<Permission>,
    /// Its lasting effects.
    pub side_effects: Vec<SideEffect>,
    /// How much harm it can do.
    pub risk: Risk,
    /// Whether it may run concurrently with other calls.
    pub parallel: bool,
    /// How a model passes its arguments.
    pub form: ArgumentFormat,
    /// How a result is best shown to a model.
    #[serde(default)]
    pub result_form: ResultForm,
}
