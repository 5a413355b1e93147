//! The client's roots: directories that it has open. They narrow what its calls may touch inside the workspace and never
//! widen it. They are requested with the first call, and only from clients with a handshake: the later protocol version
//! has no roots.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolgate_contract::{WorkspacePath, escape_path};
use toolgate_runtime::{PathBounds, Session};

use crate::methods::RequestContext;

/// How long a client may take to name its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a client's roots are in force.
#[derive(Default)]
pub(crate) struct ClientRoots {
    /// Calls of one client wait here until the first of them has the roots.
    is_known: Mutex<bool>,
}

impl ClientRoots {
    /// Holds the session to the client's roots, requesting them if necessary.
    pub(crate) async fn apply(&self, context: &RequestContext<'_>, session: &Session) {
        if context.profile.is_stateless() || !context.profile.can("roots") {
            return;
        }
        let mut is_known = self.is_known.lock().await;
        if *is_known {
            return;
        }
        let answer = context.client.ask(context.sink, "roots/list", json!({}));
        let answer = tokio::time::timeout(ROOTS_TIMEOUT, answer).await.ok().flatten();
        // A client that doesn't answer is held to the workspace alone.
        if let Some(Ok(answer)) = answer {
            session.hold_to(bounds(&answer, &context.client.server.workspace.directory));
        }
        *is_known = true;
    }

    /// The client's roots changed: they are requested again with the next call.
    pub(crate) fn changed(&self) {
        if let Ok(mut is_known) = self.is_known.try_lock() {
            *is_known = false;
        }
    }
}

/// The part of the workspace inside the client's roots; none when that is the whole workspace.
fn bounds(answer: &Value, workspace: &Path) -> Option<PathBounds> {
    let roots = answer.get("roots").and_then(Value::as_array)?;
    let paths: Vec<PathBuf> = roots.iter().filter_map(|root| path_of(root.get("uri")?.as_str()?)).collect();
    if roots.is_empty() || paths.iter().any(|root| workspace.starts_with(root)) {
        return None;
    }
    let inside = paths.iter().filter_map(|root| root.strip_prefix(workspace).ok());
    let places = inside.map(|path| WorkspacePath::in_workspace(escape_path(path.as_os_str().as_bytes()))).collect();
    Some(PathBounds { source: "the client's roots".into(), places })
}

/// The path of a `file://` URI without `..`. `Url` would resolve `..` before it could be refused.
fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = percent_decode_str(path).collect::<Vec<u8>>();
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = PathBuf::from(OsStr::from_bytes(&path[..end]));
    let has_parent = path.components().any(|part| part == Component::ParentDir);
    (path.is_absolute() && !has_parent).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_narrow_the_workspace_and_never_widen_it() {
        let table: &[(&[&str], Option<&[&str]>)] = &[
            (&[], None),
            (&["file:///home/ada/tour"], None),
            (&["file:///home/ada"], None),
            (&["file:///home/ada/tour/src"], Some(&["src"])),
            (&["file://localhost/home/ada/tour/a%20b/"], Some(&["a b"])),
            (&["file:///home/ada/tour/a%FF/"], Some(&[r"a\xff"])),
            (&["file:///home/ada/tour/src", "file:///etc"], Some(&["src"])),
            (&["file:///etc"], Some(&[])),
            (&["file:///home/ada/tourist"], Some(&[])),
            (&["https://example.com/"], Some(&[])),
            (&["file:///home/ada/tour/src/../../.ssh"], Some(&[])),
        ];
        for (roots, expected) in table {
            let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
            let bounds = bounds(&json!({ "roots": roots }), Path::new("/home/ada/tour"));
            let expected = expected.map(|paths| paths.iter().map(|path| WorkspacePath::in_workspace(*path)).collect());
            assert_eq!(bounds.map(|bounds| bounds.places), expected, "{roots:?}");
        }
    }
}
