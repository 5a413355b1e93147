//! The interface of a tool: typed for its author, type-erased for the registry.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::{
    JsonSchema, Schema,
    generate::{Contract, SchemaSettings},
};
use semver::Version;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ApprovedDefinition, ArgumentFormat, Declaration, Effect, Hands, ResultForm, Spec, ToolError};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A named ability: its spec, the effects of given arguments, and the function that runs it.
pub trait Tool: Send + Sync + 'static {
    /// The arguments; their schema is derived from this type. Unknown fields are rejected.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// The payload; its schema is derived from this type.
    type Output: Serialize + JsonSchema + Send;
    /// Name, version, risk and permissions.
    const SPEC: Spec;
    /// The default time limit of a call; none uses the default of all tools.
    const LONGEST: Option<Duration> = None;
    /// Programs of the machine that every call needs.
    const REQUIRED_COMMANDS: &'static [&'static str] = &[];
    /// How a result is best shown to a model.
    const RESULT_FORM: ResultForm = ResultForm::Fields;

    /// What a call with these arguments will touch. Pure; evaluated before anything runs.
    fn effects(&self, args: &Self::Args) -> Vec<Effect>;

    /// Runs the call, with no access but its hands.
    fn run(&self, args: Self::Args, hands: &dyn Hands) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// What the call would change, for the person who is asked. Only reads. An error is that of a call that can't
    /// succeed, such as one for a file that doesn't exist: then nobody is asked.
    fn preview(&self, _args: &Self::Args, _hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        Ok(None)
    }

    /// How calls for older major versions are converted, or why they no longer can be.
    fn adapters(&self) -> Vec<VersionAdapter> {
        Vec::new()
    }

    /// How a model passes its arguments.
    fn form(&self) -> ArgumentFormat {
        ArgumentFormat::Function { strict: false }
    }
}

/// What a call would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// A unified diff; for what is deleted or moved as a whole, its paths and sizes.
    pub diff: String,
}

/// How an older major version is handled.
#[derive(Clone)]
pub struct VersionAdapter {
    /// The older major version.
    pub major: u64,
    /// What changed after it, in a sentence.
    pub change: &'static str,
    /// Converts the older arguments to the current ones; none if that would require guessing.
    pub adapt: Option<fn(Value) -> Result<Value, ToolError>>,
}

/// A tool with erased types: JSON in and out, schemas as data. Tools from other servers implement this directly.
pub trait AnyTool: Send + Sync {
    /// Its name.
    fn name(&self) -> &str {
        &self.declaration().name
    }
    /// Its declaration.
    fn declaration(&self) -> &Declaration;
    /// Its adapters for older major versions.
    fn adapters(&self) -> &[VersionAdapter];
    /// The default time limit of a call; none uses the default of all tools.
    fn longest(&self) -> Option<Duration> {
        None
    }
    /// Programs of the machine that every call needs.
    fn required_commands(&self) -> &'static [&'static str] {
        &[]
    }
    /// What a person approved of it, if it is a tool of another server.
    fn approved_definition(&self) -> Option<ApprovedDefinition<'_>> {
        None
    }
    /// Turns validated arguments into a call that is ready to run.
    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError>;
}

/// Decoded arguments together with their tool.
pub trait PreparedCall: Send + Sync {
    /// What the call will touch.
    fn effects(&self) -> Vec<Effect>;
    /// What the call would change; an error if it can't succeed.
    fn preview(&self, hands: &dyn Hands) -> Result<Option<Preview>, ToolError>;
    /// Runs the call.
    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>>;
}

/// Erases a tool's types.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    Arc::new(ErasedTool { adapters: tool.adapters(), tool: Arc::new(tool), declaration: OnceLock::new() })
}

fn declaration_of<T: Tool>(tool: &T) -> Declaration {
    let spec = T::SPEC;
    Declaration {
        name: spec.name.to_owned(),
        version: Version::parse(spec.version).expect("a tool's version is written by its author and semantic"),
        description: spec.description.to_owned(),
        args_schema: closed(schema_of::<T::Args>(Contract::Deserialize)),
        return_schema: payload_schema::<T::Output>(),
        required_permissions: spec.permissions.to_vec(),
        side_effects: spec.side_effects.to_vec(),
        risk: spec.risk,
        parallel: spec.parallel,
        form: tool.form(),
        result_form: T::RESULT_FORM,
    }
}

/// JSON Schema 2020-12 without references, which many clients can't follow. Input and output differ: a field that may
/// be omitted in the output isn't required there.
fn schema_of<T: JsonSchema>(contract: Contract) -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema
}

/// The schema of a payload of this type, for tools that declare themselves.
pub fn payload_schema<T: JsonSchema>() -> Schema {
    schema_of::<T>(Contract::Serialize)
}

/// Rejects undeclared arguments, even if the author didn't say so.
fn closed(mut schema: Schema) -> Schema {
    schema.insert("additionalProperties".into(), Value::Bool(false));
    if schema.get("properties").is_none() {
        schema.insert("properties".into(), Value::Object(serde_json::Map::new()));
    }
    schema
}

struct ErasedTool<T: Tool> {
    tool: Arc<T>,
    /// Computed on first use: schemas of tools that are never called or listed would only slow the start.
    declaration: OnceLock<Declaration>,
    adapters: Vec<VersionAdapter>,
}

impl<T: Tool> AnyTool for ErasedTool<T> {
    fn name(&self) -> &str {
        T::SPEC.name
    }

    fn declaration(&self) -> &Declaration {
        self.declaration.get_or_init(|| declaration_of(&*self.tool))
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &self.adapters
    }

    fn longest(&self) -> Option<Duration> {
        T::LONGEST
    }

    fn required_commands(&self) -> &'static [&'static str] {
        T::REQUIRED_COMMANDS
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        let args = serde_path_to_error::deserialize(args).map_err(|fault| {
            ToolError::invalid_args(format!("The arguments don't fit at `{}`: {}.", fault.path(), fault.inner()))
        })?;
        Ok(Box::new(DecodedCall { tool: Arc::clone(&self.tool), args }))
    }
}

struct DecodedCall<T: Tool> {
    tool: Arc<T>,
    args: T::Args,
}

impl<T: Tool> PreparedCall for DecodedCall<T> {
    fn effects(&self) -> Vec<Effect> {
        self.tool.effects(&self.args)
    }

    fn preview(&self, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        self.tool.preview(&self.args, hands)
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let output = self.tool.run(self.args, hands).await?;
            serde_json::to_value(output)
                .map_err(|fault| ToolError::internal(format!("The result couldn't be written as JSON: {fault}.")))
        })
    }
}
