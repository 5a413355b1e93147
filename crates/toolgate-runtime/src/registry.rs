//! The available tools, each under a unique name. The schema of a tool is compiled once, when it is first called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use toolgate_contract::{
    AnyTool, ApprovedDefinition, ArgumentFormat, Call, Declaration, ErrorCode, PreparedCall, Right, ToolError,
};

use crate::nearest::nearest;
use crate::{tool_version, validate};

/// Why a tool couldn't be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools have the same name.
    #[error("There is a tool named `{0}` already; names are unique. Rename one of them.")]
    Duplicate(String),
    /// A name that some clients can't use.
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
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
}

pub(crate) struct RegisteredTool {
    tool: Arc<dyn AnyTool>,
    /// The compiled schema. Most tools are never called in a session, and compiling all of them would dominate start-up
    /// time.
    validator: OnceLock<Result<Validator, RegistryError>>,
}

impl Registry {
    /// A registry of these tools; refuses two tools with the same name.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        tools.into_iter().try_for_each(|tool| registry.add(tool))?;
        Ok(registry)
    }

    /// Adds a tool. A refused tool doesn't affect the others.
    pub fn add(&mut self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let name = tool.name().to_owned();
        if !is_usable(&name) {
            return Err(RegistryError::BadName(name));
        }
        match self.tools.entry(name) {
            Entry::Occupied(taken) => Err(RegistryError::Duplicate(taken.key().clone())),
            Entry::Vacant(free) => {
                free.insert(Arc::new(RegisteredTool { tool, validator: OnceLock::new() }));
                Ok(())
            }
        }
    }

    /// Adds a tool from another source, whose schema may be anything: it is compiled now.
    pub fn add_checked(&mut self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let registered = RegisteredTool { tool: Arc::clone(&tool), validator: OnceLock::new() };
        registered.validator().map_err(Clone::clone)?;
        self.add(tool)
    }

    /// Compiles every schema now, and reports an invalid one: for tools from other sources.
    pub fn check(&self) -> Result<(), RegistryError> {
        self.tools.values().try_for_each(|registered| registered.validator().map(drop).map_err(Clone::clone))
    }

    /// Removes the tools of these names.
    pub fn remove<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) {
        names.into_iter().for_each(|name| drop(self.tools.remove(name)));
    }

    /// The approved definitions of other servers' tools, each with the tool's name here.
    pub(crate) fn approved_definitions(&self) -> impl Iterator<Item = (&str, ApprovedDefinition<'_>)> {
        self.tools.iter().filter_map(|(name, registered)| Some((name.as_str(), registered.tool.approved_definition()?)))
    }

    /// The declarations of all tools, sorted by name.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tools.values().map(|registered| registered.tool.declaration())
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The declaration of the tool of that name, if there is one. Those of the others needn't be made for it.
    pub(crate) fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.tools.get(name).map(|registered| registered.tool.declaration())
    }

    /// The programs of the machine that tools need, each with the name of its tool.
    pub fn required_commands(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let of = |tool: &'_ Arc<RegisteredTool>| tool.tool.required_commands().iter().copied();
        self.tools.iter().flat_map(move |(name, tool)| of(tool).map(move |command| (name.as_str(), command)))
    }

    /// The tool of that name, or an error that suggests the nearest one.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<RegisteredTool>, ToolError> {
        self.tools.get(name).cloned().ok_or_else(|| {
            let known = self.tools.keys().map(String::as_str);
            let hint = match nearest(name, known.clone()) {
                Some(near) => format!("Did you mean `{near}`?"),
                None => format!("The tools here are: {}.", known.collect::<Vec<_>>().join(", ")),
            };
            ToolError::new(ErrorCode::UnknownTool, format!("There is no tool named `{name}`.")).with_hint(hint)
        })
    }
}

impl RegisteredTool {
    /// A tool whose schema may be anything: it is compiled now.
    pub(crate) fn checked(tool: Arc<dyn AnyTool>) -> Result<Self, RegistryError> {
        if !is_usable(tool.name()) {
            return Err(RegistryError::BadName(tool.name().to_owned()));
        }
        let registered = Self { tool, validator: OnceLock::new() };
        registered.validator().map_err(Clone::clone)?;
        Ok(registered)
    }

    pub(crate) fn declaration(&self) -> &Declaration {
        self.tool.declaration()
    }

    /// The time limit of a call, unless configuration sets one.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.tool.longest()
    }

    /// Adapts arguments to the current version, validates them, and decodes them once.
    pub(crate) fn prepare(&self, call: &Call) -> Result<Box<dyn PreparedCall>, ToolError> {
        self.check_permissions(call)?;
        let args = tool_version::adapt(self.tool.as_ref(), call.version.as_ref(), self.wrapped(call.args.clone()))?;
        let validator = self.validator().map_err(|fault| ToolError::internal(fault.to_string()))?;
        validate::validate(&call.name, self.schema(), validator, &args)?;
        self.tool.prepare(args)
    }

    fn schema(&self) -> &Value {
        self.declaration().args_schema.as_value()
    }

    fn validator(&self) -> Result<&Validator, &RegistryError> {
        let compiled = self.validator.get_or_init(|| {
            // No pattern of somebody else's schema may take more than linear time.
            let options =
                jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(PatternOptions::regex());
            let tool = || self.tool.name().to_owned();
            options
                .build(self.schema())
                .map_err(|fault| RegistryError::BadSchema { tool: tool(), fault: fault.to_string() })
        });
        compiled.as_ref()
    }

    /// A freeform tool takes plain text; internally it is one argument like any other.
    fn wrapped(&self, args: Value) -> Value {
        match (&self.declaration().form, args) {
            (ArgumentFormat::Freeform { argument, .. }, Value::String(text)) => {
                Value::Object([(argument.clone(), Value::String(text))].into_iter().collect())
            }
            (_, args) => args,
        }
    }

    /// A caller may request fewer permissions than the tool declares, never more.
    fn check_permissions(&self, call: &Call) -> Result<(), ToolError> {
        let declared = &self.declaration().required_permissions;
        let permissions = call.requested_permissions.iter().filter_map(|right| match right {
            Right::Permission(permission) => Some(permission),
            // Rights beyond the tool's own effects are judged by policy.
            Right::Connect { .. } | Right::Write { .. } | Right::Unsandboxed => None,
        });
        match permissions.into_iter().find(|wanted| !declared.contains(wanted)) {
            None => Ok(()),
            Some(excess) => Err(ToolError::invalid_args(format!(
                "`{}` doesn't need the permission `{excess}`; a call can't ask for more than its tool declares.",
                call.name
            ))),
        }
    }
}

/// Clients differ in what they accept; every client accepts this.
fn is_usable(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use semver::Version;
    use toolgate_contract::schemars::{Schema, json_schema};
    use toolgate_contract::{Risk, SystemClock, VersionAdapter};

    use super::*;

    /// A tool from another source, with its own schema.
    struct Foreign(Declaration);

    impl Foreign {
        fn named(name: &str, args_schema: Schema) -> Arc<dyn AnyTool> {
            Arc::new(Self(Declaration {
                name: name.into(),
                version: Version::new(1, 0, 0),
                description: String::new(),
                args_schema,
                return_schema: json_schema!({}),
                required_permissions: Vec::new(),
                side_effects: Vec::new(),
                risk: Risk::Low,
                parallel: true,
                form: ArgumentFormat::Function { strict: false },
                result_form: toolgate_contract::ResultForm::Fields,
            }))
        }
    }

    impl AnyTool for Foreign {
        fn declaration(&self) -> &Declaration {
            &self.0
        }

        fn adapters(&self) -> &[VersionAdapter] {
            &[]
        }

        fn prepare(&self, _: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
            Err(ToolError::internal("never reached"))
        }
    }

    #[test]
    fn names_are_usable_and_unique() {
        let any = || json_schema!({ "type": "object" });
        let twice = Registry::of([Foreign::named("look", any()), Foreign::named("look", any())]);
        assert_eq!(twice.err(), Some(RegistryError::Duplicate("look".into())));
        let strange = Registry::of([Foreign::named("look at", any())]);
        assert_eq!(strange.err(), Some(RegistryError::BadName("look at".into())));
    }

    #[test]
    fn every_tool_of_ours_has_a_schema_that_can_be_compiled() {
        Registry::of(toolgate_tools::all()).unwrap().check().unwrap();
    }

    #[test]
    fn a_tool_whose_schema_is_none_is_told_of_and_never_called() {
        let registry = Registry::of([Foreign::named("look", json_schema!({ "type": "nothing" }))]).unwrap();
        let fault = registry.check().unwrap_err();
        assert!(fault.to_string().starts_with("The schema of `look` is not a JSON Schema: "), "{fault}");
        let call = Call::new("look", serde_json::json!({}), &SystemClock);
        let refused = registry.find("look").unwrap().prepare(&call).err().unwrap();
        assert_eq!((refused.code, refused.message), (ErrorCode::Internal, fault.to_string()));
    }
}
