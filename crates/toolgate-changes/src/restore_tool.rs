//! The shell that the tools over Toolgate's own keeping share: the record, rehearsals, the quarantine. Their arguments name
//! something that is kept; it is opened once, before the call is judged, and what the call will touch is read out of it.

use std::sync::Arc;

use semver::Version;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_contract::schemars::{JsonSchema, Schema, schema_for};
use toolgate_contract::{
    AnyTool, ArgumentFormat, Declaration, Permission, PreparedCall, Risk, SideEffect, ToolError, VersionAdapter,
};

/// A tool that brings something kept to the workspace.
pub(crate) trait RestoreTool: Send + Sync + 'static {
    /// What names it.
    type Args: DeserializeOwned + JsonSchema;
    /// The tool's name.
    const NAME: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;

    /// What a call answers, as JSON Schema.
    fn answer() -> Value;
    /// Opens what is meant, ready to be judged.
    fn open(&self, args: Self::Args) -> Result<Box<dyn PreparedCall>, ToolError>;
}

/// The tool of a keeper.
pub(crate) fn tool<K: RestoreTool>(keeper: K) -> Arc<dyn AnyTool> {
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
    };
    Arc::new(RestoreToolAdapter { keeper, declaration })
}

struct RestoreToolAdapter<K> {
    keeper: K,
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
        self.keeper.open(serde_json::from_value(args).map_err(|fault| ToolError::invalid_args(fault.to_string()))?)
    }
}
