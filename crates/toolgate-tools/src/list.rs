//! `list`: shows what is in a folder (C-43).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Effect, EntryKind, ErrorCode, Hands, Permission, Place, Risk, Spec, Tool, ToolError};

/// Entries in one answer, unless the caller asks for fewer.
const MOST_ENTRIES: u32 = 1_000;

/// Shows what is in a folder.
pub struct List;

/// Which folder, and how deep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the folder, relative to the workspace.
    #[serde(default = "here")]
    path: String,
    /// Whether to go into folders.
    #[serde(default)]
    recursive: bool,
    /// Entries at the most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Goes on after an earlier answer: its `next_cursor`.
    #[serde(default)]
    cursor: Option<String>,
}

fn here() -> String {
    ".".into()
}

/// What is there.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The entries, by path.
    entries: Vec<Item>,
    /// Whether there are more; go on with `cursor`.
    has_more: bool,
}

/// One entry.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Item {
    /// Its name.
    name: String,
    /// Its path, relative to the workspace.
    path: String,
    /// What it is; links aren't followed.
    kind: EntryKind,
    /// Size in bytes, for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Tool for List {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "list",
        version: "1.0.0",
        description: "Show what is in a folder: names, kinds, sizes. Places where credentials are kept are not shown.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let limit = args.limit.unwrap_or(MOST_ENTRIES) as usize;
        let mut walk =
            Walk { hands, after: args.cursor.as_deref(), is_recursive: args.recursive, room: limit + 1, items: vec![] };
        let root = hands.place(&args.path)?;
        walk.visit(&root)?;
        let mut found = walk.items;
        let has_more = found.len() > limit;
        found.truncate(limit);
        if let (true, Some((last, _))) = (has_more, found.last()) {
            hands.more(last);
        }
        Ok(Output { entries: found.into_iter().map(|(_, item)| item).collect(), has_more })
    }
}

/// A walk in the order of paths, which stops as soon as the page is full.
struct Walk<'a> {
    hands: &'a Hands,
    after: Option<&'a str>,
    is_recursive: bool,
    room: usize,
    /// What was found, each with its path beneath the root, which is what a cursor remembers.
    items: Vec<(String, Item)>,
}

impl Walk<'_> {
    fn visit(&mut self, folder: &Place) -> Result<(), ToolError> {
        for entry in self.hands.entries_at(folder)? {
            if self.items.len() == self.room {
                return Ok(());
            }
            if self.hands.is_cancelled() {
                return Err(ToolError::cancelled());
            }
            let (place, kind) = (entry.place.clone(), entry.kind);
            if self.after.is_none_or(|after| in_order(after, &place.path)) {
                let size = (kind == EntryKind::File).then_some(entry.size);
                let item = Item { name: entry.name, path: self.hands.shown(&place), kind, size };
                self.items.push((place.path.clone(), item));
            }
            if self.is_recursive && kind == EntryKind::Folder && self.may_hold_more(&place.path) {
                self.visit_below(&place)?;
            }
        }
        Ok(())
    }

    /// A folder that can't be entered is left out; the rest is still worth showing.
    fn visit_below(&mut self, folder: &Place) -> Result<(), ToolError> {
        match self.visit(folder) {
            Err(error) if error.code == ErrorCode::Cancelled => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether anything after the cursor can be beneath this folder.
    fn may_hold_more(&self, folder: &str) -> bool {
        self.after
            .is_none_or(|after| in_order(after, folder) || after.starts_with(&format!("{folder}/")) || after == folder)
    }
}

/// Whether `path` comes after `earlier` in the order of the walk: by names, folder before its contents.
fn in_order(earlier: &str, path: &str) -> bool {
    earlier.split('/').lt(path.split('/'))
}
