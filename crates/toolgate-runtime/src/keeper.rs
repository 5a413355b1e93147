//! The shell that the tools over Toolgate's own keeping share: the record, rehearsals, the quarantine. Their arguments name
//! something that is kept; it is opened once, before the call is judged, and what the call will touch is read out of it.

use std::sync::Arc;

use semver::Version;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_contract::schemars::{JsonSchema, Schema, schema_for};
use toolgate_contract::{Adapter, AnyTool, Declaration, Form, Permission, Prepared, Risk, SideEffect, ToolError};

/// A tool that brings something kept to the workspace.
pub(crate) trait Keeper: Send + Sync + 'static {
    /// What names it.
    type Args: DeserializeOwned + JsonSchema;
    /// The tool's name.
    const NAME: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;

    /// What a call answers, as JSON Schema.
    fn answer() -> Value;
    /// Opens what is meant, ready to be judged.
    fn open(&self, args: Self::Args) -> Result<Box<dyn Prepared>, ToolError>;
}

/// The tool of a keeper.
pub(crate) fn tool<K: Keeper>(keeper: K) -> Arc<dyn AnyTool> {
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
        form: Form::Function { strict: false },
    };
    Arc::new(Kept { keeper, declaration })
}

struct Kept<K> {
    keeper: K,
    declaration: Declaration,
}

impl<K: Keeper> AnyTool for Kept<K> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[Adapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn Prepared>, ToolError> {
        self.keeper.open(serde_json::from_value(args).map_err(|fault| ToolError::invalid_args(fault.to_string()))?)
    }
}
