//! Which version of a tool a call asks for (C-5). A call for an older major is adapted when an adapter exists, and
//! otherwise refused with what changed and what to use.

use semver::{Version, VersionReq};
use serde_json::Value;
use toolgate_contract::{AnyTool, ErrorCode, ToolError, VersionAdapter};

/// Brings arguments that were written for `wanted` to the tool's present version.
pub(crate) fn adapt(tool: &dyn AnyTool, wanted: Option<&VersionReq>, args: Value) -> Result<Value, ToolError> {
    let present = &tool.declaration().version;
    let Some(wanted) = wanted.filter(|wanted| !wanted.matches(present)) else { return Ok(args) };
    let older = tool.adapters().iter().find(|adapter| asks_for(wanted, adapter.major));
    match older {
        Some(VersionAdapter { adapt: Some(adapt), .. }) => adapt(args),
        Some(VersionAdapter { change, .. }) => Err(unsupported(tool, present, wanted, &format!("Since then {change}"))),
        None => Err(unsupported(tool, present, wanted, "There is no such version")),
    }
}

/// Whether a requirement speaks of this major.
fn asks_for(wanted: &VersionReq, major: u64) -> bool {
    wanted.comparators.iter().any(|comparator| comparator.major == major)
}

fn unsupported(tool: &dyn AnyTool, present: &Version, wanted: &VersionReq, why: &str) -> ToolError {
    let name = &tool.declaration().name;
    ToolError::new(
        ErrorCode::UnsupportedVersion,
        format!("`{name}` is at version {present}; the call asks for {wanted}. {why}."),
    )
    .with_hint(format!("Use version ^{}.{} of `{name}`, by its present schema.", present.major, present.minor))
}
