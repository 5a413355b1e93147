//! The one envelope of every result.

use serde_json::{Map, Value, json};
use toolgate_contract::{ErrorClass, Reply};

use crate::dialect::{EnterFault, FailedCall, Returned, ShownResult};
use crate::json_result::{hint, message, object};

/// What a tool gives to its envelope.
#[derive(Default)]
pub(super) struct Output {
    pub(super) exit_code: i64,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Where the next page begins, if the native reply doesn't say that itself.
    pub(super) next_page: Option<String>,
    pub(super) meta: Map<String, Value>,
}

impl Output {
    /// A success that printed this.
    pub(super) fn printed(stdout: impl Into<String>) -> Self {
        Self { stdout: stdout.into(), ..Self::default() }
    }
}

/// The result with this output.
pub(super) fn envelope(returned: &Returned<'_>, output: Output) -> ShownResult {
    object(sealed(output, Some(returned.reply)))
}

fn sealed(output: Output, reply: Option<&Reply>) -> Value {
    let Output { exit_code, stdout, stderr, next_page, mut meta } = output;
    let cut = reply.and_then(|reply| reply.truncated.clone()).unwrap_or_default();
    if let Some(artifact) = cut.artifact {
        meta.insert("artifact".into(), artifact.into());
    }
    if reply.is_some_and(|reply| reply.redacted) {
        meta.insert("redacted".into(), true.into());
    }
    let mut sealed = json!({
        "ok": exit_code == 0,
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated_lines": cut.lines > 0,
        "truncated_bytes": cut.bytes > 0,
    });
    if let Some(cursor) = next_page.or(cut.next_cursor) {
        sealed["next_page_cursor"] = cursor.into();
    }
    if !meta.is_empty() {
        sealed["meta"] = meta.into();
    }
    sealed
}

/// A failure has an exit code other than 0, whichever tool it is of, and its class in `meta`.
pub(super) fn failure(failed: &FailedCall<'_>) -> ShownResult {
    let (class, details) = match failed.fault {
        EnterFault::UnknownTool | EnterFault::Arguments(_) => (ErrorClass::Validation, None),
        EnterFault::Refused(error) => (error.code.class(), error.details.as_ref()),
    };
    let printed = |name: &str| details.and_then(|details| details[name].as_str()).unwrap_or_default();
    let said = [printed("stderr"), &message(failed), &hint(failed).unwrap_or_default()];
    let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
    let output = Output {
        exit_code: exit_code(class),
        stdout: printed("stdout").to_owned(),
        stderr: said.join("\n"),
        meta: Map::from_iter([("error_class".to_owned(), json!(class))]),
        ..Output::default()
    };
    object(sealed(output, failed.reply))
}

/// The exit code that a shell would have for a failure of this class.
fn exit_code(class: ErrorClass) -> i64 {
    match class {
        ErrorClass::Validation => 2,
        ErrorClass::Policy => 126,
        ErrorClass::Timeout => 124,
        ErrorClass::ToolExec | ErrorClass::Unknown => 1,
    }
}
