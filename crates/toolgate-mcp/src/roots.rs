//! The client's roots: directories that it has open. They narrow what its calls may touch inside the workspace and never
//! widen it. They are asked for with the first call, since only then there is something to narrow, and only in the era
//! with a handshake: the newer one has given them up, and clients that still declare them don't expect a call to ask.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolgate_contract::WorkspacePath;
use toolgate_runtime::{PathBounds, Session};

use crate::methods::RequestContext;

/// How long a client may take to name its roots.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of a client's roots.
#[derive(Default)]
pub(crate) struct ClientRoots {
    /// Whether they are in force. Calls of one client wait here for the first of them.
    is_known: Mutex<bool>,
}

impl ClientRoots {
    /// Sees to it that the session is held to the client's roots before it acts.
    pub(crate) async fn hold(&self, asking: &RequestContext<'_>, session: &Session) {
        if asking.profile.is_modern() || !asking.profile.can("roots") {
            return;
        }
        let mut is_known = self.is_known.lock().await;
        if *is_known {
            return;
        }
        let answer = asking.client.ask(asking.outlet, "roots/list", json!({}));
        let answer = tokio::time::timeout(PATIENCE, answer).await.ok().flatten();
        // A client that doesn't say has no narrower wish than the workspace itself.
        if let Some(Ok(answer)) = answer {
            session.hold_to(bounds(&answer, asking.client.server.host.workspace()));
        }
        *is_known = true;
    }

    /// The client says that its roots are others now: they are asked for again.
    pub(crate) fn changed(&self) {
        if let Ok(mut is_known) = self.is_known.try_lock() {
            *is_known = false;
        }
    }
}

/// The part of the workspace that lies in the client's roots; none when that is all of it.
fn bounds(answer: &Value, workspace: &Path) -> Option<PathBounds> {
    let roots = answer.get("roots").and_then(Value::as_array)?;
    let paths: Vec<PathBuf> = roots.iter().filter_map(|root| path_of(root.get("uri")?.as_str()?)).collect();
    if roots.is_empty() || paths.iter().any(|root| workspace.starts_with(root)) {
        return None;
    }
    let inside = paths.iter().filter_map(|root| root.strip_prefix(workspace).ok());
    let places = inside.filter_map(|path| path.to_str()).map(WorkspacePath::in_workspace).collect();
    Some(PathBounds { source: "the client's roots".into(), places })
}

/// The path of a `file://` address.
fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?.trim_end_matches('/'));
    let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    (path.is_absolute() && is_plain).then_some(path)
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
