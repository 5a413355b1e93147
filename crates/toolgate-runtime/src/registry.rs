//! The tools that exist here, each under one name, with its schema compiled once (C-38).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::{Draft, Validator};
use serde_json::Value;
use toolgate_contract::{AnyTool, Call, Declaration, ErrorCode, Form, Prepared, Right, ToolError};

use crate::nearest::nearest;
use crate::{validate, version};

/// A tool couldn't be taken into the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools of one name.
    #[error("There is a tool named `{0}` already; names are unique. Rename one of them.")]
    Duplicate(String),
    /// A name that some client can't use.
    #[error("`{0}` can't be a tool's name: use 1 to 60 letters, digits, `_`, `-` or `.`.")]
    BadName(String),
    /// A schema that can't be compiled.
    #[error("The schema of `{tool}` is not a JSON Schema: {fault}.")]
    BadSchema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        fault: String,
    },
}

/// All tools, by name.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<String, Registered>,
}

pub(crate) struct Registered {
    tool: Arc<dyn AnyTool>,
    schema: Value,
    validator: Validator,
}

impl Registry {
    /// A registry of these tools; refuses two of one name.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        tools.into_iter().try_for_each(|tool| registry.add(tool))?;
        Ok(registry)
    }

    /// Adds one tool. A tool that is refused leaves the others as they were.
    pub fn add(&mut self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let Declaration { name, args_schema, .. } = tool.declaration();
        if !is_usable(name) {
            return Err(RegistryError::BadName(name.clone()));
        }
        if self.tools.contains_key(name) {
            return Err(RegistryError::Duplicate(name.clone()));
        }
        let schema = args_schema.as_value().clone();
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .build(&schema)
            .map_err(|fault| RegistryError::BadSchema { tool: name.clone(), fault: fault.to_string() })?;
        self.tools.insert(name.clone(), Registered { tool, schema, validator });
        Ok(())
    }

    /// What every tool declares, by name.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tools.values().map(|registered| registered.tool.declaration())
    }

    /// The tool of that name, or an error that names the nearest.
    pub(crate) fn find(&self, name: &str) -> Result<&Registered, ToolError> {
        self.tools.get(name).ok_or_else(|| {
            let known = self.tools.keys().map(String::as_str);
            let hint = match nearest(name, known.clone()) {
                Some(near) => format!("Did you mean `{near}`?"),
                None => format!("The tools here are: {}.", known.collect::<Vec<_>>().join(", ")),
            };
            ToolError::new(ErrorCode::UnknownTool, format!("There is no tool named `{name}`.")).with_hint(hint)
        })
    }
}

impl Registered {
    pub(crate) fn declaration(&self) -> &Declaration {
        self.tool.declaration()
    }

    /// How long a call may take where configuration doesn't say.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.tool.longest()
    }

    /// Arguments brought to the present version, checked, and decoded once.
    pub(crate) fn prepare(&self, call: &Call) -> Result<Box<dyn Prepared>, ToolError> {
        self.check_permissions(call)?;
        let args = version::adapt(self.tool.as_ref(), call.version.as_ref(), self.wrapped(call.args.clone()))?;
        validate::validate(&call.name, &self.schema, &self.validator, &args)?;
        self.tool.prepare(args)
    }

    /// A freeform tool takes its text as it is; inside it is one argument like any other.
    fn wrapped(&self, args: Value) -> Value {
        match (&self.declaration().form, args) {
            (Form::Freeform { argument, .. }, Value::String(text)) => {
                Value::Object([(argument.clone(), Value::String(text))].into_iter().collect())
            }
            (_, args) => args,
        }
    }

    /// A caller may ask for less than the tool declares, never for more.
    fn check_permissions(&self, call: &Call) -> Result<(), ToolError> {
        let declared = &self.declaration().required_permissions;
        let permissions = call.requested_permissions.iter().filter_map(|right| match right {
            Right::Permission(permission) => Some(permission),
            // What goes beyond the tool's own effects is judged with them.
            Right::Connect { .. } | Right::Write { .. } | Right::Unsandboxed => None,
        });
        match permissions.into_iter().find(|wanted| !declared.contains(wanted)) {
            None => Ok(()),
            Some(beyond) => Err(ToolError::invalid_args(format!(
                "`{}` doesn't need the permission `{beyond}`; a call can't ask for more than its tool declares.",
                call.name
            ))),
        }
    }
}

/// Clients differ in what they accept; this is what all of them do.
fn is_usable(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}
