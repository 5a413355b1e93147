//! The unified diff of two versions of a file, in the format that git writes and reads.
//!
//! The common prefix and suffix are skipped first, so a small change in a large file costs little. Two large versions
//! with little in common get a coarser diff, which is still correct.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter, memrchr};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use toolgate_contract::unescape_path;

use super::lines::lines;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// Beyond this many lines to compare, everything between the common ends counts as changed.
const MAX_LINES: usize = 1_000_000;
/// Time limit for finding a minimal diff.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);
/// A zero byte within this many bytes makes a file binary, as in git.
const BINARY_PROBE: usize = 8_000;
const ORDINARY: u32 = 0o100_644;

/// A diff and its line counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The unified diff; empty when nothing changed. Bytes that aren't UTF-8 are shown as `�`.
    pub text: String,
    /// Lines added.
    pub additions: usize,
    /// Lines removed.
    pub deletions: usize,
}

/// One version of a file.
#[derive(Debug, Clone, Copy)]
pub struct DiffSide<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its mode as git writes it, such as `0o100644`.
    pub mode: u32,
    /// Its content.
    pub content: &'a [u8],
}

/// The diff of a regular file. Without a path before, the file is new; without a path after, it is deleted; two
/// different paths mean that it moved.
pub fn unified(path_before: Option<&str>, path_after: Option<&str>, before: &[u8], after: &[u8]) -> Diff {
    between(
        path_before.map(|path| DiffSide { path, mode: ORDINARY, content: before }),
        path_after.map(|path| DiffSide { path, mode: ORDINARY, content: after }),
    )
}

/// The diff of two versions, of which one may be missing.
pub fn between(before: Option<DiffSide<'_>>, after: Option<DiffSide<'_>>) -> Diff {
    let (old, new) = (before.map_or(&b""[..], |side| side.content), after.map_or(&b""[..], |side| side.content));
    let header = header(before, after);
    if old == new {
        return Diff { text: header, ..Diff::default() };
    }
    let name = |prefix: &str, side: Option<DiffSide<'_>>| match side {
        Some(side) => quoted(&format!("{prefix}{}", side.path)),
        None => "/dev/null".to_owned(),
    };
    let (old_name, new_name) = (name("a/", before), name("b/", after));
    let opening = match header.is_empty() {
        true => format!("diff --git {old_name} {new_name}\n"),
        false => header,
    };
    if is_binary(old) || is_binary(new) {
        return Diff { text: format!("{opening}Binary files {old_name} and {new_name} differ\n"), ..Diff::default() };
    }
    // As in git, a tab after a name with a space marks where the name ends.
    let tab = |name: &str| if name.contains(' ') && !name.starts_with('"') { "\t" } else { "" };
    let mut text = opening.into_bytes();
    text.extend_from_slice(format!("--- {old_name}{}\n+++ {new_name}{}\n", tab(&old_name), tab(&new_name)).as_bytes());
    let (additions, deletions) = write_hunks(&mut text, old, new);
    Diff { text: String::from_utf8_lossy(&text).into_owned(), additions, deletions }
}

/// Git's extended header lines for mode changes, renames, creation and deletion; empty when none apply.
fn header(before: Option<DiffSide<'_>>, after: Option<DiffSide<'_>>) -> String {
    let mut lines = String::new();
    match (before, after) {
        (None, Some(new)) => _ = writeln!(lines, "new file mode {:06o}", new.mode),
        (Some(old), None) => _ = writeln!(lines, "deleted file mode {:06o}", old.mode),
        (Some(old), Some(new)) => {
            if old.mode != new.mode {
                _ = writeln!(lines, "old mode {:06o}\nnew mode {:06o}", old.mode, new.mode);
            }
            if old.path != new.path {
                _ = writeln!(lines, "rename from {}\nrename to {}", quoted(old.path), quoted(new.path));
            }
        }
        (None, None) => {}
    }
    if lines.is_empty() {
        return lines;
    }
    let path = |side: Option<DiffSide<'_>>, other: Option<DiffSide<'_>>| {
        side.or(other).map_or(String::new(), |side| side.path.into())
    };
    let (old, new) = (path(before, after), path(after, before));
    format!("diff --git {} {}\n{lines}", quoted(&format!("a/{old}")), quoted(&format!("b/{new}")))
}

/// A path as git writes it: quoted and escaped when it contains special characters.
fn quoted(path: &str) -> String {
    if !path.contains(|character: char| character.is_ascii_control() || matches!(character, '"' | '\\')) {
        return path.to_owned();
    }
    let mut quoted = String::from("\"");
    // Git quotes the bytes of a name, and would take an escape of ours for a backslash in it.
    for chunk in unescape_path(path).utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '\r' => quoted.push_str("\\r"),
                control if control.is_ascii_control() => _ = write!(quoted, "\\{:03o}", u32::from(control)),
                other => quoted.push(other),
            }
        }
        chunk.invalid().iter().for_each(|byte| _ = write!(quoted, "\\{byte:03o}"));
    }
    quoted.push('"');
    quoted
}

fn is_binary(content: &[u8]) -> bool {
    memchr(0, &content[..content.len().min(BINARY_PROBE)]).is_some()
}

/// Writes every hunk and counts added and removed lines.
fn write_hunks(text: &mut Vec<u8>, old: &[u8], new: &[u8]) -> (usize, usize) {
    let (start, old_end, new_end) = changed_part(old, new);
    let above = memchr_iter(b'\n', &old[..start]).count();
    let old: Vec<&[u8]> = lines(&old[start..old_end]).collect();
    let new: Vec<&[u8]> = lines(&new[start..new_end]).collect();
    let (mut additions, mut deletions) = (0, 0);
    for group in group_diff_ops(operations(&old, &new), CONTEXT) {
        write_range(text, above, &group);
        for operation in group {
            let (tag, old_range, new_range) = operation.as_tag_tuple();
            if tag == DiffTag::Equal {
                write_lines(text, b' ', &old[old_range]);
                continue;
            }
            deletions += old_range.len();
            additions += new_range.len();
            write_lines(text, b'-', &old[old_range]);
            write_lines(text, b'+', &new[new_range]);
        }
    }
    (additions, deletions)
}

/// Where the versions stop being equal and where they are equal again, on line boundaries, including context.
fn changed_part(old: &[u8], new: &[u8]) -> (usize, usize, usize) {
    let prefix = common_prefix(old, new);
    let line_start = |text: &[u8], at: usize| memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    let mut start = line_start(old, prefix);
    let room = old.len().min(new.len()) - start;
    let suffix = common_suffix(&old[old.len() - room..], &new[new.len() - room..]);
    // The suffix may begin inside a line; it counts from the next line on.
    let tail = &old[old.len() - suffix..];
    let at_line_start = |text: &[u8]| text.len() == suffix || text[text.len() - suffix - 1] == b'\n';
    let skipped = match at_line_start(old) && at_line_start(new) {
        true => 0,
        false => memchr(b'\n', tail).map_or(tail.len(), |newline| newline + 1),
    };
    let mut rest = &tail[skipped..];
    for _ in 0..CONTEXT {
        start = line_start(old, start.saturating_sub(1));
        rest = &rest[memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1)..];
    }
    (start, old.len() - rest.len(), new.len() - rest.len())
}

fn common_prefix(old: &[u8], new: &[u8]) -> usize {
    const STRIDE: usize = 4096;
    let strides = old.chunks(STRIDE).zip(new.chunks(STRIDE)).take_while(|(old, new)| old == new);
    let equal: usize = strides.map(|(old, _)| old.len()).sum();
    equal + old[equal..].iter().zip(&new[equal..]).take_while(|(old, new)| old == new).count()
}

fn common_suffix(old: &[u8], new: &[u8]) -> usize {
    const STRIDE: usize = 4096;
    let strides = old.rchunks(STRIDE).zip(new.rchunks(STRIDE)).take_while(|(old, new)| old == new);
    let equal: usize = strides.map(|(old, _)| old.len()).sum();
    let (old, new) = (&old[..old.len() - equal], &new[..new.len() - equal]);
    equal + old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count()
}

fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    if old.len().max(new.len()) > MAX_LINES {
        return vec![DiffOp::Replace { old_index: 0, old_len: old.len(), new_index: 0, new_len: new.len() }];
    }
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(Instant::now() + DIFF_TIMEOUT))
}

fn write_range(text: &mut Vec<u8>, above: usize, group: &[DiffOp]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let side = |start: usize, end: usize| match end - start {
        // An empty side is given as the line before it.
        0 => format!("{},0", above + start),
        1 => format!("{}", above + start + 1),
        count => format!("{},{count}", above + start + 1),
    };
    let old = side(first.old_range().start, last.old_range().end);
    let new = side(first.new_range().start, last.new_range().end);
    text.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
}

fn write_lines(text: &mut Vec<u8>, mark: u8, lines: &[&[u8]]) {
    for line in lines {
        text.push(mark);
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> Diff {
        unified(Some("f"), Some("f"), before.as_bytes(), after.as_bytes())
    }

    fn body(diff: &Diff) -> &str {
        &diff.text[diff.text.find("@@").unwrap_or(diff.text.len())..]
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let diff = diff(before, &before.replace('5', "five"));
        let expected = "diff --git a/f b/f\n--- a/f\n+++ b/f\n\
                        @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(diff.text, expected);
        assert_eq!((diff.additions, diff.deletions), (1, 1));
    }

    #[test]
    fn distant_changes_get_hunks_of_their_own() {
        let before: String = (1..=30).map(|number| format!("{number}\n")).collect();
        let after = before.replace("2\n3\n4\n", "2\nthree\n4\n").replace("25\n", "");
        let diff = diff(&before, &after);
        assert_eq!(body(&diff).matches("@@ -").count(), 2);
        assert!(diff.text.contains("@@ -22,7 +22,6 @@\n 22\n"), "{}", diff.text);
    }

    #[test]
    fn a_missing_last_newline_is_told() {
        assert_eq!(body(&diff("a\nb", "a\nb\n")), "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
        assert_eq!(
            body(&diff("a", "b")),
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn lines_that_end_alike_are_not_taken_apart() {
        assert_eq!(body(&diff("xa\n", "ya\n")), "@@ -1 +1 @@\n-xa\n+ya\n");
        assert_eq!(body(&diff("a\na\n", "a\n")), "@@ -1,2 +1 @@\n a\n-a\n");
    }

    #[test]
    fn new_deleted_moved_and_empty_files() {
        let new = unified(None, Some("n"), b"", b"a\n");
        assert_eq!(new.text, "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n");
        let deleted = unified(Some("n"), None, b"a\n", b"");
        assert!(deleted.text.ends_with("deleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"));
        let moved = unified(Some("a b"), Some("c"), b"x\n", b"x\n");
        assert_eq!(moved.text, "diff --git a/a b b/c\nrename from a b\nrename to c\n");
        assert_eq!(unified(None, Some("e"), b"", b"").text, "diff --git a/e b/e\nnew file mode 100644\n");
        assert_eq!(diff("a\n", "a\n"), Diff::default());
    }

    #[test]
    fn a_changed_mode_is_told() {
        let side = |mode| Some(DiffSide { path: "run", mode, content: b"x\n" });
        let told = between(side(0o100_644), side(0o100_755)).text;
        assert_eq!(told, "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n");
    }

    #[test]
    fn binary_content_is_only_named() {
        let diff = unified(Some("i"), Some("i"), b"\0a", b"\0b");
        assert_eq!(diff.text, "diff --git a/i b/i\nBinary files a/i and b/i differ\n");
    }

    #[test]
    fn odd_paths_are_quoted() {
        let diff = unified(Some("a\t\"b\""), Some("a\t\"b\""), b"1\n", b"2\n");
        assert!(diff.text.contains(r#"--- "a/a\t\"b\"""#), "{}", diff.text);
        let bytes = unified(Some(r"a\xff\x5cxff"), Some(r"a\xff\x5cxff"), b"1\n", b"2\n");
        assert!(bytes.text.contains(r#"--- "a/a\377\\xff""#), "{}", bytes.text);
        assert!(unified(Some("a b"), Some("a b"), b"1\n", b"2\n").text.contains("--- a/a b\t\n"));
    }

    #[test]
    fn huge_versions_without_anything_in_common_are_still_told_right() {
        let numbered = |word: &str| (0..60_000).map(|number| format!("{word} {number}\n")).collect::<String>();
        let diff = diff(&numbered("old"), &numbered("new"));
        assert_eq!((diff.additions, diff.deletions), (60_000, 60_000));
    }
}
