//! What a reply says, whether a server or the program on the command line gave it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tree_path::TreePath;

/// The reply to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) call: String,
    pub(crate) payload: Value,
    /// Code and message, if the call failed.
    pub(crate) error: Option<(String, String)>,
    pub(crate) files_changed: Vec<String>,
    /// All of it, for a report.
    pub(crate) raw: Value,
}

/// What a reply says about a command's changes.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) count: usize,
    /// `+`, `~` or `-`, and the path as written.
    pub(crate) paths: Vec<(char, String)>,
    /// Path and reason.
    pub(crate) quarantined: Vec<(String, String)>,
    pub(crate) is_cut: bool,
}

impl Reply {
    /// A reply as `toolgate --json` prints it.
    pub(crate) fn of_program(raw: Value) -> Self {
        Self {
            call: text(&raw["tool_call_id"]),
            payload: raw["payload"].clone(),
            error: error(&raw["error"]),
            files_changed: texts(&raw["artifacts"]["files_changed"]),
            raw,
        }
    }

    /// A reply as the result of `tools/call`.
    pub(crate) fn of_server(raw: Value) -> Self {
        let about = &raw["_meta"];
        Self {
            call: text(&about["toolgate/call"]),
            payload: raw["structuredContent"].clone(),
            error: error(&about["toolgate/error"]),
            files_changed: texts(&about["toolgate/files_changed"]),
            raw,
        }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// What became of a command's changes, if the reply says so.
    pub(crate) fn settled(&self) -> Option<Settled> {
        let changes = self.payload.get("changes").filter(|changes| changes.is_object())?;
        let number = |name: &str| changes[name].as_u64().unwrap_or_default();
        let paths = texts(&changes["paths"]);
        let count = usize::try_from(number("created") + number("changed") + number("deleted")).unwrap();
        Some(Settled {
            count,
            is_cut: count > paths.len() || number("more_kept_aside") > 0,
            paths: paths.iter().filter_map(|path| Some((path.chars().next()?, path[1..].to_owned()))).collect(),
            quarantined: pairs(&changes["kept_aside"]),
        })
    }

    /// Paths and reasons of what an undo, a commit or a release left alone.
    pub(crate) fn refused(&self) -> Vec<(String, String)> {
        let details = self.raw["error"].get("details").or(self.raw["_meta"]["toolgate/error"].get("details"));
        let refused = pairs(&self.payload["refused"]);
        if refused.is_empty() { details.map(|details| pairs(&details["refused"])).unwrap_or_default() } else { refused }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

pub(crate) fn pairs(value: &Value) -> Vec<(String, String)> {
    let entries = value.as_array().into_iter().flatten();
    entries.map(|entry| (text(&entry["path"]), text(&entry["reason"]))).collect()
}

fn error(value: &Value) -> Option<(String, String)> {
    value.is_object().then(|| (text(&value["code"]), text(&value["message"])))
}

/// The paths that a reply's words mean, among those that there are.
pub(crate) struct Names<'a>(BTreeMap<String, &'a TreePath>);

impl<'a> Names<'a> {
    pub(crate) fn of(paths: impl IntoIterator<Item = &'a TreePath>) -> Self {
        Self(paths.into_iter().flat_map(|path| path.spellings().into_iter().map(move |text| (text, path))).collect())
    }

    pub(crate) fn find(&self, written: &str) -> Option<&'a TreePath> {
        self.0.get(written).copied()
    }

    /// Those that are known.
    pub(crate) fn find_all<'b>(&self, written: impl IntoIterator<Item = &'b String>) -> BTreeSet<TreePath> {
        written.into_iter().filter_map(|text| self.find(text)).cloned().collect()
    }
}
