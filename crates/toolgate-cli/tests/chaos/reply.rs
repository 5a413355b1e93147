//! What a reply says, whether a server or the program on the command line gave it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::stored_payload::restored;
use crate::tree_path::TreePath;

/// The reply to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) call: String,
    pub(crate) payload: Value,
    /// Code and message, if the call failed.
    pub(crate) error: Option<(String, String)>,
    pub(crate) files_changed: Vec<String>,
    /// Whether more changed than is listed.
    pub(crate) is_cut: bool,
    pub(crate) folded: Vec<FoldedDirectory>,
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
    /// Directories whose paths aren't listed one by one.
    pub(crate) folded: Vec<FoldedDirectory>,
    pub(crate) is_cut: bool,
}

/// A directory of build output, and how many paths in it changed.
#[derive(Debug, Clone)]
pub(crate) struct FoldedDirectory {
    /// The path as written.
    written: String,
    count: usize,
}

impl FoldedDirectory {
    fn of(value: &Value) -> Self {
        let number = |name: &str| usize::try_from(value[name].as_u64().unwrap_or_default()).unwrap();
        let written = text(&value["path"]).trim_end_matches('/').to_owned();
        Self { written, count: number("created") + number("changed") + number("deleted") }
    }

    fn all(value: &Value) -> Vec<Self> {
        value.as_array().into_iter().flatten().map(Self::of).collect()
    }

    /// Whether it stands for this path.
    pub(crate) fn holds(&self, path: &TreePath) -> bool {
        let is_it = |text: &String| {
            text.strip_prefix(&self.written).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.spellings().iter().any(is_it)
    }
}

impl Reply {
    /// A reply as `toolgate --json` prints it. What was cut from it is read from the artifacts in the directory of `runs`.
    pub(crate) fn of_program(raw: Value, runs: &Path) -> Self {
        Self {
            call: text(&raw["tool_call_id"]),
            payload: restored(raw["payload"].clone(), &raw, runs),
            error: error(&raw["error"]),
            files_changed: texts(&raw["artifacts"]["files_changed"]),
            is_cut: raw["artifacts"].get("more_files_changed").is_some(),
            folded: FoldedDirectory::all(&raw["artifacts"]["folded"]),
            raw,
        }
    }

    /// A reply as the result of `tools/call`. What was cut from it is read from the artifacts in the directory of `runs`.
    pub(crate) fn of_server(raw: Value, runs: &Path) -> Self {
        let about = &raw["_meta"];
        Self {
            call: text(&about["toolgate/call"]),
            payload: restored(toolgate_testkit::mcp::payload(&raw), &raw, runs),
            error: error(&about["toolgate/error"]),
            files_changed: texts(&about["toolgate/files_changed"]),
            is_cut: about.get("toolgate/more_files_changed").is_some(),
            folded: FoldedDirectory::all(&about["toolgate/folded"]),
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
        let folded = FoldedDirectory::all(&changes["folded"]);
        let listed = paths.len() + folded.iter().map(|directory| directory.count).sum::<usize>();
        Some(Settled {
            count,
            is_cut: count > listed || number("more_kept_aside") > 0,
            folded,
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
        let exactly = self.0.get(written).copied();
        exactly.or_else(|| self.find_cut(written))
    }

    /// A long text is cut in a reply, which then says how many characters are missing: `start… [+1,234 characters]`.
    fn find_cut(&self, written: &str) -> Option<&'a TreePath> {
        let (start, rest) = written.split_once("… [+")?;
        let missing: usize = rest.strip_suffix(" characters]")?.replace(',', "").parse().ok()?;
        let length = start.chars().count() + missing;
        let found = self.0.iter().find(|(text, _)| text.starts_with(start) && text.chars().count() == length);
        found.map(|(_, path)| *path)
    }

    /// Those that are known.
    pub(crate) fn find_all<'b>(&self, written: impl IntoIterator<Item = &'b String>) -> BTreeSet<TreePath> {
        written.into_iter().filter_map(|text| self.find(text)).cloned().collect()
    }
}

#[test]
fn a_folded_directory_holds_what_is_in_it_also_where_names_are_no_text() {
    let folded = FoldedDirectory::of(&serde_json::json!({ "path": "dir/\\xffa/objects/", "created": 3 }));
    let holds = |bytes: &[u8]| folded.holds(&TreePath(bytes.to_vec()));
    assert!(folded.count == 3 && holds(b"dir/\xffa/objects") && holds(b"dir/\xffa/objects/pack"));
    assert!(!holds(b"dir/\xffa/objects2") && !holds(b"dir/\xffa"));
}
