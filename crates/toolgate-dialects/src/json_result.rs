//! Results that are one JSON object, for dialects that show nothing else.

use serde_json::Value;

use crate::dialect::{EnterFault, FailedCall, Returned, ShownResult};
use crate::nearest::meant_name;
use crate::parameter::ArgumentError;

/// The result of this object. One whose `ok` isn't true is marked as an error.
pub(crate) fn object(object: Value) -> ShownResult {
    ShownResult { is_error: object["ok"] != true, text: object.to_string() }
}

/// An object with these fields of the payload added as they are.
pub(crate) fn with_fields(mut object: Value, returned: &Returned<'_>, names: &[&str]) -> Value {
    for name in names {
        object[*name] = returned.field(name).clone();
    }
    object
}

/// What is wrong with a call, in plain words, without a hint.
pub(crate) fn message(failed: &FailedCall<'_>) -> String {
    match failed.fault {
        EnterFault::UnknownTool => format!("unknown tool: {}", failed.tool),
        EnterFault::Arguments(faults) => faults.iter().map(fault).collect::<Vec<_>>().join("; "),
        EnterFault::Refused(error) => error.message.clone(),
    }
}

fn fault(fault: &ArgumentError) -> String {
    match fault {
        ArgumentError::Missing { at } => format!("`{at}` is missing"),
        ArgumentError::Unexpected { at } => format!("`{at}` isn't an argument of this tool"),
        ArgumentError::Wrong { at, expected, given } => format!("`{at}` is {given}, expected {expected}"),
    }
}

/// What to do next, if something is known.
pub(crate) fn hint(failed: &FailedCall<'_>) -> Option<String> {
    match failed.fault {
        EnterFault::Refused(error) => error.hint.clone(),
        EnterFault::UnknownTool => {
            meant_name(failed.tool, failed.known).map(|meant| format!("Did you mean `{meant}`?"))
        }
        EnterFault::Arguments(_) => None,
    }
}

/// What a command had printed until the limit of its call stopped it: each stream by its name.
pub(crate) fn printed_streams<'a>(failed: &'a FailedCall<'_>) -> Vec<(&'static str, &'a str)> {
    let details = match failed.fault {
        EnterFault::Refused(error) => error.details.as_ref(),
        _ => None,
    };
    let stream = |name| Some((name, details?[name].as_str()?));
    ["stdout", "stderr"].into_iter().filter_map(stream).collect()
}
