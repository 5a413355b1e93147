//! What the tools `undo`, `commit` and `release` share. Their arguments name something that is stored; it is opened
//! once, before policy judges the call, and the effects of the call are read from it.

use std::sync::Arc;

use semver::Version;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_contract::schemars::{JsonSchema, Schema, schema_for};
use toolgate_contract::{
    AnyTool, ArgumentFormat, Declaration, Permission, PreparedCall, ResultForm, Risk, SideEffect, ToolError,
    VersionAdapter,
};

/// A tool that restores something stored to the workspace.
pub(crate) trait RestoreTool: Send + Sync + 'static {
    /// The arguments.
    type Args: DeserializeOwned + JsonSchema;
    /// The tool's name.
    const NAME: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;

    /// The JSON Schema of its result.
    fn answer() -> Value;
    /// Opens what the arguments name, ready to be judged.
    fn open(&self, args: Self::Args) -> Result<Box<dyn PreparedCall>, ToolError>;
}

/// Makes a tool of an implementation.
pub(crate) fn tool<K: RestoreTool>(implementation: K) -> Arc<dyn AnyTool> {
    let declaration = Declaration {
        name: K::NAME.into(),
        version: Version::new(1, 0, 0),
        description: K::DESCRIPTION.into(),
        args_schema: schema_for!(K::Args),
        return_schema: Schema::try_from(K::answer()).expect("an object is a schema"),
        required_permissions: vec![Permission::FsRead, Permission::FsWrite, Permission::FsDelete],
        side_effects: vec![SideEffect::WritesFiles, SideEffect::DeletesFiles],
        risk: Risk::High,
        parallel: false,
        form: ArgumentFormat::Function { strict: false },
        result_form: ResultForm::Fields,
    };
    Arc::new(RestoreToolAdapter { implementation, declaration })
}

struct RestoreToolAdapter<K> {
    implementation: K,
    declaration: Declaration,
}

impl<K: RestoreTool> AnyTool for RestoreToolAdapter<K> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        self.implementation
            .open(serde_json::from_value(args).map_err(|fault| ToolError::invalid_args(fault.to_string()))?)
    }
}
