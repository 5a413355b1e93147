//! Changes that mean a new file: clients let a model create one by replacing an empty text, or refuse to replace what it hasn't
//! read. Only the workspace knows whether there is a file, so a look comes first.

use serde_json::json;
use toolgate_contract::ErrorCode;

use crate::dialect::{Answered, EnterFault, NativeCall, NextCall};

/// Looks whether there is a file at a path, and then decides.
pub(crate) fn look_first(path: &str, then: NextCall) -> NativeCall {
    NativeCall { then: Some(then), ..NativeCall::new("read", json!({ "path": path, "limit": 1 })) }
}

/// Writes a new file, if the look before found none. If it found one, `exists` says why that is a fault.
pub(crate) fn write_if_missing(
    answered: &Answered<'_>,
    path: &str,
    content: &str,
    exists: EnterFault,
) -> Result<Option<NativeCall>, EnterFault> {
    match &answered.reply.error {
        Some(error) if error.code == ErrorCode::NotFound => {
            let args = json!({ "path": answered.memory.native(path), "content": content });
            Ok(Some(NativeCall::new("write", args)))
        }
        Some(_) => Ok(None),
        None => Err(exists),
    }
}
