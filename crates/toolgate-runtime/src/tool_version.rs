//! Which version of a tool a call asks for. Arguments for an older major version are adapted if an adapter exists;
//! otherwise the call is refused with what changed and what to use.

use semver::{Version, VersionReq};
use serde_json::Value;
use toolgate_contract::{AnyTool, ErrorCode, ToolError, VersionAdapter};

/// Adapts arguments that were written for `wanted` to the tool's current version.
pub(crate) fn adapt(tool: &dyn AnyTool, wanted: Option<&VersionReq>, args: Value) -> Result<Value, ToolError> {
    let current = &tool.declaration().version;
    let Some(wanted) = wanted.filter(|wanted| !wanted.matches(current)) else { return Ok(args) };
    let older = tool.adapters().iter().find(|adapter| asks_for(wanted, adapter.major));
    match older {
        Some(VersionAdapter { adapt: Some(adapt), .. }) => adapt(args),
        Some(VersionAdapter { change, .. }) => Err(unsupported(tool, current, wanted, &format!("Since then {change}"))),
        None => Err(unsupported(tool, current, wanted, "There is no such version")),
    }
}

/// Whether a requirement asks for this major version.
fn asks_for(wanted: &VersionReq, major: u64) -> bool {
    wanted.comparators.iter().any(|comparator| comparator.major == major)
}

fn unsupported(tool: &dyn AnyTool, current: &Version, wanted: &VersionReq, why: &str) -> ToolError {
    let name = &tool.declaration().name;
    ToolError::new(
        ErrorCode::UnsupportedVersion,
        format!("`{name}` is at version {current}; the call asks for {wanted}. {why}."),
    )
    .with_hint(format!("Use version ^{}.{} of `{name}`, by its current schema.", current.major, current.minor))
}
