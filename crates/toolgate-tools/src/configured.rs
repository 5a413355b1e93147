//! Tools that a person configures: a command with places for the arguments of a call. Its command line is judged like one of
//! `shell`, and runs in the same sandbox.

mod command_template;

use std::time::Duration;

use semver::Version;
use serde_json::{Value, json};
use toolgate_contract::schemars::Schema;
use toolgate_contract::{
    AnyTool, ApplyMode, ArgumentFormat, BoxFuture, Declaration, Effect, EffectBindings, Hands, Permission,
    PreparedCall, Preview, ResultForm, Risk, SideEffect, Streams, ToolError, VersionAdapter, payload_schema,
};

pub use self::command_template::CommandTemplate;
use crate::support::command_output::CommandOutput;

/// Seconds that a command may take unless configuration says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// What a call may take in addition to its command.
const MARGIN: Duration = Duration::from_secs(20);

/// A tool that runs a configured command.
pub struct ConfiguredTool {
    declaration: Declaration,
    template: CommandTemplate,
    workdir: String,
    timeout: Duration,
    bindings: EffectBindings,
}

impl ConfiguredTool {
    /// A tool with this name, which runs this command. Without a schema it takes no arguments.
    pub fn new(
        name: &str,
        description: &str,
        template: CommandTemplate,
        schema: Option<Value>,
    ) -> Result<Self, ToolError> {
        let schema = closed(schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} })));
        template.check(&schema)?;
        let args_schema = Schema::try_from(schema)
            .map_err(|fault| ToolError::invalid_args(format!("The schema of `{name}` can't be used: {fault}.")))?;
        Ok(Self {
            declaration: Declaration {
                name: name.to_owned(),
                version: Version::new(1, 0, 0),
                description: description.to_owned(),
                args_schema,
                return_schema: payload_schema::<CommandOutput>(),
                required_permissions: vec![Permission::FsRead, Permission::ProcExec],
                side_effects: vec![SideEffect::StartsProcesses, SideEffect::WritesFiles],
                risk: Risk::Medium,
                parallel: false,
                form: ArgumentFormat::Function { strict: false },
                result_form: ResultForm::Fields,
            },
            template,
            workdir: ".".into(),
            timeout: DEFAULT_TIMEOUT,
            bindings: EffectBindings::default(),
        })
    }

    /// Says how much harm it can do.
    #[must_use]
    pub fn with_risk(mut self, risk: Risk) -> Self {
        self.declaration.risk = risk;
        self
    }

    /// Runs it in this directory of the workspace.
    #[must_use]
    pub fn in_directory(mut self, workdir: &str) -> Self {
        self.workdir = workdir.to_owned();
        self
    }

    /// Stops it after this time.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Says what a call touches beside what its command line says.
    #[must_use]
    pub fn touching(mut self, bindings: EffectBindings) -> Self {
        let declared = &mut self.declaration.required_permissions;
        declared.extend(bindings.permissions().into_iter().filter(|permission| *permission != Permission::FsRead));
        self.bindings = bindings;
        self
    }
}

/// A schema that rejects arguments it doesn't have, unless it says otherwise.
fn closed(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("additionalProperties").or_insert(Value::Bool(false));
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

impl AnyTool for ConfiguredTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &[]
    }

    fn longest(&self) -> Option<Duration> {
        Some(self.timeout + MARGIN)
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        let command = self.template.line(&args)?;
        let run = Effect::Run { command: command.clone(), workdir: self.workdir.clone() };
        let mut effects = vec![Effect::read(&self.workdir), run];
        effects.extend(self.bindings.effects(&args)?);
        Ok(Box::new(ConfiguredCall { command, workdir: self.workdir.clone(), timeout: self.timeout, effects }))
    }
}

/// A call whose command line is known.
struct ConfiguredCall {
    command: String,
    workdir: String,
    timeout: Duration,
    effects: Vec<Effect>,
}

impl PreparedCall for ConfiguredCall {
    fn effects(&self) -> Vec<Effect> {
        self.effects.clone()
    }

    fn preview(&self, _: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        Ok(None)
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let start = hands.start(&self.command, &self.workdir, Streams::Output, ApplyMode::AtEnd, self.timeout);
            let output = CommandOutput::wait_for(&start.await?, hands).await?;
            serde_json::to_value(output).map_err(|fault| ToolError::internal(fault.to_string()))
        })
    }
}
