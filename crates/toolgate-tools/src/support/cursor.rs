//! The order of paged results, and the cursor that marks where a page ended. The order depends only on the tree, so the
//! pages joined are one complete result, whichever thread found what first.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Hands, ToolError};

/// Maximum size of one page as JSON, in bytes, so that the page is never trimmed again.
const MAX_BYTES: usize = 40 * 1024;

/// The sort order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortOrder {
    /// By path, a directory before what is in it.
    #[default]
    Path,
    /// Last modified first.
    Newest,
}

/// A file's position in the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// Modification time, where the order uses it; 0 otherwise.
    pub(crate) modified: i64,
    pub(crate) path: String,
}

impl SortKey {
    /// A key in the order of paths.
    pub(crate) fn by_path(path: &str) -> Self {
        Self { modified: 0, path: path.to_owned() }
    }
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        other.modified.cmp(&self.modified).then_with(|| by_names(&self.path, &other.path))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares paths component by component: `/` sorts before any character of a name.
fn by_names(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
    a.bytes().map(rank).cmp(b.bytes().map(rank))
}

/// The position of the last item on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) key: SortKey,
    /// The last line of that file on the page; 0 when the file is finished.
    pub(crate) line: u64,
}

impl Cursor {
    /// Continues with the next file.
    pub(crate) fn after(key: SortKey) -> Self {
        Self { key, line: 0 }
    }

    /// Parses the cursor of an earlier reply.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let parse = || {
            let mut parts = text.splitn(3, ':');
            let (line, modified) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self { key: SortKey { modified, path: parts.next()?.to_owned() }, line })
        };
        parse().ok_or_else(|| {
            ToolError::invalid_args("The cursor is not one that this tool returned.")
                .with_hint("Leave `cursor` out to start over, or pass the `next_cursor` of the last reply unchanged.")
        })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.line, self.key.modified, self.key.path)
    }
}

/// One page of the items found, each with the cursor that continues after it: as many as are requested and fit. If
/// there are more, the next page's cursor goes to `hands`.
pub(crate) fn page<T: Serialize>(
    found: impl Iterator<Item = (Cursor, T)>,
    limit: u32,
    hands: &dyn Hands,
) -> (Vec<T>, bool) {
    let (mut page, mut bytes, mut last) = (Vec::new(), 0, None);
    for (cursor, item) in found {
        bytes += serde_json::to_string(&item).map_or(0, |json| json.len());
        if page.len() == limit as usize || (bytes > MAX_BYTES && !page.is_empty()) {
            hands.more(last.map_or_else(String::new, |last: Cursor| last.to_string()));
            return (page, true);
        }
        page.push(item);
        last = Some(cursor);
    }
    (page, false)
}

/// The position after a cursor; everything, when there is no cursor.
#[derive(Debug)]
pub(crate) struct ResumePoint {
    cursor: Option<Cursor>,
    order: SortOrder,
}

impl ResumePoint {
    pub(crate) fn new(cursor: Option<&str>, order: SortOrder) -> Result<Self, ToolError> {
        Ok(Self { cursor: cursor.map(Cursor::parse).transpose()?, order })
    }

    /// Whether this is the first page.
    pub(crate) fn is_start(&self) -> bool {
        self.cursor.is_none()
    }

    /// The line of this file after which the page continues; `None` when the file was finished before.
    pub(crate) fn line(&self, key: &SortKey) -> Option<u64> {
        match self.cursor.as_ref().map(|cursor| (key.cmp(&cursor.key), cursor.line)) {
            None | Some((Ordering::Greater, _)) => Some(0),
            Some((Ordering::Equal, line)) if line > 0 => Some(line),
            Some(_) => None,
        }
    }

    /// Whether this directory can contain anything after the cursor.
    pub(crate) fn reaches_into(&self, directory: &str) -> bool {
        match (&self.cursor, self.order) {
            (Some(Cursor { key, .. }), SortOrder::Path) => {
                let is_above =
                    key.path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                is_above || by_names(directory, &key.path).is_gt()
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_ordered_name_by_name() {
        let ordered = ["a", "a/b", "a/b/c", "a/c", "a b", "a!", "a-b", "a.txt", "ab", "b"];
        let mut sorted: Vec<SortKey> = ordered.iter().rev().map(|path| SortKey::by_path(path)).collect();
        sorted.sort();
        assert_eq!(sorted.iter().map(|key| key.path.as_str()).collect::<Vec<_>>(), ordered);
    }

    #[test]
    fn the_newest_come_first() {
        let key = |modified, path: &str| SortKey { modified, path: path.into() };
        assert!(key(2, "b") < key(1, "a"));
        assert!(key(1, "a") < key(1, "b"));
    }

    #[test]
    fn cursors_read_back() {
        for (line, modified, path) in [(0, 0, "a/b"), (7, -3, "with:colons\nand more"), (1, i64::MAX, "")] {
            let cursor = Cursor { key: SortKey { modified, path: path.into() }, line };
            assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
        }
        for wrong in ["", "src/a.rs", "1:2", "x:0:a", "-1:0:a"] {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let after = ResumePoint::new(Some("3:0:b/c"), SortOrder::Path).unwrap();
        for (path, line) in
            [("a", None), ("b", None), ("b/a", None), ("b/c", Some(3)), ("b/c/d", Some(0)), ("c", Some(0))]
        {
            assert_eq!(after.line(&SortKey::by_path(path)), line, "{path}");
        }
        for (directory, reaches) in
            [("a", false), ("b", true), ("b/a", false), ("b/c", true), ("b/d", true), ("c", true)]
        {
            assert_eq!(after.reaches_into(directory), reaches, "{directory}");
        }
        let whole = ResumePoint::new(Some("0:0:b"), SortOrder::Path).unwrap();
        assert_eq!(whole.line(&SortKey::by_path("b")), None);
    }
}
