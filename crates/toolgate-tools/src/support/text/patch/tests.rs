//! What a patch promises: git's results for git's diffs, context before guesses, and a reason for every refusal.

use proptest::prelude::*;
use toolgate_contract::{ErrorCode, ToolError};

use super::*;
use crate::support::text::Encoding;
use crate::support::text::diff;

fn applied(patch: &str, before: &str) -> Result<PatchedContent, PatchFault> {
    let files = parse(patch.as_bytes())?;
    apply(&files[0], Some(before.as_bytes()))
}

/// Applies and asserts the new content; gives the reports.
#[track_caller]
fn becomes(patch: &str, before: &str, expected: &str) -> Vec<HunkReport> {
    let applied = applied(patch, before).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(String::from_utf8(applied.after.unwrap()).unwrap(), expected);
    applied.reports
}

#[track_caller]
fn why(patch: &str, before: &str) -> HunkFaultReason {
    match applied(patch, before) {
        Err(PatchFault::Hunks { mut faults, .. }) => faults.remove(0).why,
        other => panic!("{other:?}"),
    }
}

fn unified(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

fn envelope(hunks: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")
}

#[track_caller]
fn malformed(patch: &str) -> (usize, String) {
    match parse(patch.as_bytes()) {
        Err(PatchFault::Malformed { line, message } | PatchFault::Unsupported { line, message }) => (line, message),
        other => panic!("{other:?}"),
    }
}

mod reading {
    use super::*;

    #[test]
    fn git_headers_say_what_happens() {
        let patch = "From 1234\nSubject: all kinds\n\n--- not a header\n\n\
            diff --git a/new b/new\nnew file mode 100755\nindex 000..111\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
            diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n\
            diff --git a/x b/y\ncopy from x\ncopy to y\n\
            diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
            diff --git a/e b/e\nnew file mode 100644\nindex 000..e69\n\
            diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\nindex 1..2 100644\n--- \"a/\\303\\244 b\"\n+++ \"b/\\303\\244 b\"\n@@ -1 +1 @@\n-x\n+y\n\
            -- \n2.47.3\n\n";
        let files = parse(patch.as_bytes()).unwrap();
        let told: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.operation.clone())).collect();
        assert_eq!(
            told,
            [
                ("new", FileOperation::Create),
                ("gone", FileOperation::Delete),
                ("old name", FileOperation::Move { to: "new name".into() }),
                ("x", FileOperation::Copy { to: "y".into() }),
                ("run", FileOperation::Update),
                ("e", FileOperation::Create),
                ("ä b", FileOperation::Update),
            ]
        );
        assert_eq!(files[0].mode.after, Some(0o100_755));
        assert_eq!(files[4].mode, ModeChange { before: Some(0o100_644), after: Some(0o100_755) });
        assert_eq!(files[6].hunks.len(), 1, "the signature is no part of the hunk");
    }

    #[test]
    fn plain_diffs_name_their_file_in_many_ways() {
        for (names, path) in [
            ("--- f.c.orig\t2020-01-01 10:00:00\n+++ f.c\t2020-01-01 10:00:01\n", "f.c"),
            ("--- old/src/f\n+++ new/src/f\n", "src/f"),
            ("--- src/f\n+++ src/f\n", "src/f"),
            ("diff --git src/f src/f\n--- src/f\n+++ src/f\n", "src/f"),
            ("--- a/f\r\n+++ b/f\r\n", "f"),
        ] {
            let patch = format!("{names}@@ -1 +1 @@\n-x\n+y\n");
            assert_eq!(parse(patch.as_bytes()).unwrap()[0].path, path, "{names}");
        }
        let dated = "--- f\t1970-01-01 00:00:00.000000000 +0000\n+++ f\t2020-01-01 10:00:00\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(parse(dated.as_bytes()).unwrap()[0].operation, FileOperation::Create);
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_line() {
        for (patch, line, part) in [
            ("diff --git a/i b/i\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", 3, "binary"),
            ("diff --git a/i b/i\nBinary files a/i and b/i differ\n", 2, "binary"),
            ("diff --git a/l b/l\nold mode 100644\nnew mode 120000\n", 1, "deleting it and creating it"),
            ("diff --git a/m b/m\nnew file mode 160000\n", 2, "submodule"),
            ("diff --cc f\nindex 1,2..3\n", 1, "combined"),
            ("@@ -1 +1 @@\n-a\n+b\n", 1, "which file"),
            ("--- a/f\n+++ b/f\n@@ -1,x +1 @@\n-a\n+b\n", 3, "header"),
            ("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+c\nforgot the blank\n", 7, "begins with neither"),
            ("--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-a\n--- x\n+++ y\n z\n", 5, "another file"),
            ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", 1, "/dev/null"),
            ("diff --git a/f b/f\nindex 1..2 100644\n", 1, "no hunks"),
            ("--- /dev/null\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", 1, "no old lines"),
            ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n", 5, "cut off"),
            ("*** Begin Patch\n*** Rename File: f\n*** End Patch\n", 2, "*** Add File"),
            ("*** Begin Patch\n*** Add File: f\n+a\nb\n*** End Patch\n", 4, "begins with `+`"),
            ("*** Begin Patch\n*** Update File: f\n*** End Patch\n", 2, "no lines"),
            ("*** Begin Patch\n*** Update File: \n-a\n*** End Patch\n", 2, "path is empty"),
        ] {
            let (found, message) = malformed(patch);
            assert_eq!(found, line, "{patch}\n{message}");
            assert!(message.contains(part), "{patch}\n{message}");
        }
        assert_eq!(parse(b"just words\n"), Err(PatchFault::Nothing));
    }

    #[test]
    fn the_envelope_is_read_with_its_leniency() {
        let patch = "apply_patch <<'EOF'\n  *** Begin Patch  \n*** Add File: dir/n\n+one\n+\n\n*** Delete File: d \n\
            *** Update File: u\n*** Move to: v\n-a\n+b\n@@ heading\n c\n\n+d\n\n*** End of File\n*** End Patch\nEOF\n";
        let files = parse(patch.as_bytes()).unwrap();
        let told: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.operation.clone())).collect();
        assert_eq!(
            told,
            [
                ("dir/n", FileOperation::Create),
                ("d", FileOperation::Delete),
                ("u", FileOperation::Move { to: "v".into() }),
            ]
        );
        assert_eq!(apply(&files[0], None).unwrap().after.unwrap(), b"one\n\n");
        let hunks = &files[2].hunks;
        assert_eq!((hunks.len(), hunks[0].headings.len(), hunks[1].steps.len()), (2, 0, 3));
        assert!(hunks[1].at_end);
    }

    #[test]
    fn the_markers_may_be_indented_and_a_line_of_context_may_look_like_one() {
        for end in ["  *** End Patch", "\t*** End Patch \t", " *** End Patch\nEOF", "*** End Patch\r"] {
            let patch = format!("\t*** Begin Patch \n*** Update File: f\n@@\n a\n-b\n+c\n{end}\n\n");
            becomes(&patch, "a\nb\n", "a\nc\n");
            let patch = format!(" *** Begin Patch\n*** Add File: f\n+a\n{end}\n");
            assert_eq!(apply(&parse(patch.as_bytes()).unwrap()[0], None).unwrap().after.unwrap(), b"a\n");
        }
        let about_patches = " *** End Patch\n-b\n+c\n";
        becomes(&envelope(about_patches), "*** End Patch\nb\n", "*** End Patch\nc\n");
        let indented = format!("*** Begin Patch\n*** Update File: f\n{about_patches}  *** End Patch\n");
        becomes(&indented, "*** End Patch\nb\n", "*** End Patch\nc\n");
    }

    #[test]
    fn headers_of_links_are_read() {
        for (headers, operation) in [
            (
                "new file mode 120000\nindex 000..111\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+to\n",
                FileOperation::Create,
            ),
            ("index 111..222 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-to\n+from\n", FileOperation::Update),
            ("deleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-to\n", FileOperation::Delete),
        ] {
            let patch = format!("diff --git a/l b/l\n{headers}\\ No newline at end of file\n");
            let files = parse(patch.as_bytes()).unwrap();
            assert_eq!((files[0].is_link(), &files[0].operation), (true, &operation), "{headers}");
        }
    }
}

mod applying {
    use super::*;

    #[test]
    fn hunks_apply_where_they_belong() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let hunks = "@@ -1,2 +1,3 @@ heading\n 1\n+1b\n 2\n@@ -6,3 +7,2 @@\n 6\n-7\n 8\n";
        let reports = becomes(&unified(hunks), before, "1\n1b\n2\n3\n4\n5\n6\n8\n");
        assert_eq!(reports.iter().map(|report| (report.line, report.offset)).collect::<Vec<_>>(), [(1, 0), (6, 0)]);
    }

    #[test]
    fn the_end_of_the_file_is_as_the_patch_says() {
        becomes(&unified("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"), "a", "a\n");
        becomes(&unified("@@ -1 +1,2 @@\n-a\n+a\n+b\n\\ No newline at end of file\n"), "a\n", "a\nb");
        let reports = becomes(&unified("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), "a\nb", "a\nc");
        assert_eq!(reports[0].tier, MatchTier::LineEndings);
    }

    #[test]
    fn moved_hunks_are_found_and_reported() {
        let patch = unified("@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n@@ -7,2 +7,3 @@\n x\n+y\n z\n");
        let before = "0\n0\n0\na\nb\nc\n0\n0\nx\nz\n";
        let reports = becomes(&patch, before, "0\n0\n0\na\nB\nc\n0\n0\nx\ny\nz\n");
        assert_eq!(reports.iter().map(|report| report.offset).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn the_nearest_place_wins_and_two_equally_near_are_ambiguous() {
        let patch = unified("@@ -4,2 +4,3 @@\n a\n+new\n b\n");
        let reports = becomes(&patch, "-\n-\na\nb\n-\n-\n-\na\nb\n", "-\n-\na\nnew\nb\n-\n-\n-\na\nb\n");
        assert_eq!(reports[0].offset, -1);
        assert!(reports[0].note.as_ref().unwrap().contains("other places"));
        let HunkFaultReason::Ambiguous { matches, .. } = why(&patch, "-\na\nb\n-\n-\na\nb\n") else { panic!() };
        assert_eq!(matches.iter().map(|line| line.line).collect::<Vec<_>>(), [2, 6]);
    }

    #[test]
    fn wrong_counts_are_told_and_make_the_line_number_worthless() {
        let hunk = "@@ -9,9 +9,9 @@\n a\n-b\n+c\n";
        let reports = becomes(&unified(hunk), "x\na\nb\n", "x\na\nc\n");
        assert!(reports[0].note.as_ref().unwrap().contains("counts 9 lines before and 9 after, the hunk has 2 and 2"));
        assert!(matches!(why(&unified(hunk), "a\nb\n-\na\nb\n-\n-\n-\n-\n-\n"), HunkFaultReason::Ambiguous { .. }));
        becomes(&unified("@@ -1,1 +1,1 @@\n a\n\n-b\n+c\n"), "a\n\nb\n", "a\n\nc\n");
        becomes(&unified("@@\n a\n-b\n+c\n"), "x\na\nb\n", "x\na\nc\n");
    }

    #[test]
    fn outer_context_may_differ_a_little() {
        let patch = unified("@@ -2,7 +2,7 @@\n 1\n 2\n 3\n-four\n+4\n 5\n 6\n 7\n");
        let reports = becomes(&patch, "0\nX\n2\n3\nfour\n5\n6\n7\n", "0\nX\n2\n3\n4\n5\n6\n7\n");
        assert_eq!((reports[0].fuzz, reports[0].tier, reports[0].line), (1, MatchTier::Exact, 3));
        let HunkFaultReason::Mismatch { nearest: Some(nearest), .. } = why(&patch, "0\n1\n2\n3\nfive\n5\n6\n7\n")
        else {
            panic!()
        };
        let difference = nearest.difference.unwrap();
        assert_eq!((difference.line, difference.expected.as_str(), difference.found.as_str()), (5, "four", "five"));
    }

    #[test]
    fn blanks_and_line_endings_may_differ_and_new_lines_follow_the_file() {
        let patch = unified("@@ -1,3 +1,4 @@\n if x:\n-    one\n+    two\n+\n     end\n");
        for (before, after, tier) in [
            ("if x:\r\n    one\r\n    end\r\n", "if x:\r\n    two\r\n\r\n    end\r\n", MatchTier::LineEndings),
            ("if x:  \n    one\n    end\n", "if x:  \n    two\n\n    end\n", MatchTier::TrailingWhitespace),
            ("  if x:\n      one\n      end\n", "  if x:\n      two\n\n      end\n", MatchTier::Indentation),
        ] {
            assert_eq!(becomes(&patch, before, after)[0].tier, tier);
            assert_eq!(becomes(&envelope(&patch[patch.find(" if").unwrap()..]), before, after)[0].tier, tier);
        }
    }

    #[test]
    fn what_is_applied_already_is_recognised() {
        for (hunks, before) in [
            ("@@ -1,3 +1,4 @@\n a\n+new\n b\n c\n", "a\nnew\nb\nc\n"),
            ("@@ -1,2 +1,3 @@\n+new\n a\n b\n", "new\na\nb\n"),
            ("@@ -1,2 +1,3 @@\n a\n b\n+new\n", "a\nb\nnew\n"),
            ("@@ -1,2 +1,3 @@\n a\n b\n+new\n", "a\r\nb\r\nnew\r\n"),
            ("@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nc\n"),
        ] {
            assert!(matches!(why(&unified(hunks), before), HunkFaultReason::AlreadyApplied { line: 1 }), "{hunks}");
        }
        for hunks in [" a\n+new\n", "@@ a\n+new\n"] {
            assert!(matches!(why(&envelope(hunks), "a\nnew\nb\n"), HunkFaultReason::AlreadyApplied { .. }), "{hunks}");
        }
    }

    #[test]
    fn a_mark_at_the_start_stays_whether_or_not_the_patch_shows_it() {
        for line in ["a", "\u{feff}a"] {
            let patch = unified(&format!("@@ -1,2 +1,2 @@\n-{line}\n+{}\n b\n", line.replace('a', "c")));
            becomes(&patch, "\u{feff}a\nb\n", "\u{feff}c\nb\n");
        }
        becomes(&envelope("-a\n+c\n"), "\u{feff}a\nb\n", "\u{feff}c\nb\n");
    }

    #[test]
    fn a_carriage_return_inside_a_line_is_content() {
        let before = "a\rb\nplain\nc\rd\n";
        let hunk = " a\rb\n-plain\n+x\ry\n c\rd\n";
        for patch in
            [envelope(hunk), envelope(&format!("@@ a\rb\n{hunk}")), unified(&format!("@@ -1,3 +1,3 @@\n{hunk}"))]
        {
            let reports = becomes(&patch, before, "a\rb\nx\ry\nc\rd\n");
            assert_eq!(reports[0].tier, MatchTier::Exact);
        }
        becomes(&envelope("-a\rb\n+a\rB\n"), "a\rb\r\nc\r\n", "a\rB\r\nc\r\n");
        becomes(&envelope("@@ a\rb\n+new\n"), "a\rb\nc\n", "a\rb\nnew\nc\n");
        becomes(&envelope("-last\r\n+first\n"), "last\r", "first");
        becomes(&envelope("-a\n+\rb\n"), "a\nc\n", "\rb\nc\n");
        let added = parse(b"*** Begin Patch\n*** Add File: f\n+a\rb\n+\r\r\n*** End Patch\n").unwrap();
        assert_eq!(apply(&added[0], None).unwrap().after.unwrap(), b"a\rb\n\r\r\n");
    }

    #[test]
    fn files_are_created_and_deleted_only_as_they_are() {
        let create = parse(b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n").unwrap();
        assert_eq!(apply(&create[0], None).unwrap().after.unwrap(), b"x\n");
        let exists = PatchFault::Exists { path: "f".into(), from: None, format: PatchFormat::Unified };
        assert_eq!(apply(&create[0], Some(b"")), Err(exists));
        let delete = parse(b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n").unwrap();
        assert_eq!(apply(&delete[0], Some(b"x\n")).unwrap().after, None);
        assert!(matches!(apply(&delete[0], Some(b"x\ny\n")), Err(PatchFault::Leftover { .. })));
        assert_eq!(apply(&delete[0], None), Err(PatchFault::Missing { path: "f".into() }));
        let unsaid = parse(b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n").unwrap();
        assert_eq!(apply(&unsaid[0], None).unwrap().after.unwrap(), b"x\n");
        assert!(matches!(apply(&unsaid[0], Some(b"y\n")), Err(PatchFault::Hunks { .. })));
    }

    #[test]
    fn other_encodings_are_patched_in_their_own_bytes() {
        let before: Vec<u8> = "\u{feff}ä\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let after: Vec<u8> = "\u{feff}ä\r\nü\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let patch = unified("@@ -1,2 +1,2 @@\n ä\n-b\n+ü\n");
        let applied =
            apply_in(&parse(patch.as_bytes()).unwrap()[0], Some(&before), Encoding::Utf16Le, PatchSemantics::Strict);
        let applied = applied.unwrap();
        assert_eq!(applied.after.unwrap(), after);
    }

    #[test]
    fn every_hunk_that_fails_is_told() {
        let patch = unified("@@ -1 +1 @@\n-alpha\n+x\n@@ -2 +2 @@\n-b\n+y\n@@ -3 +3 @@\n-gamma\n+z\n");
        let fault = applied(&patch, "alpho\nb\ngammo\n").unwrap_err();
        let error = ToolError::from(fault);
        assert_eq!(error.code, ErrorCode::PatchMismatch);
        for part in ["2 of 3 hunks", "Hunk 1 (line 3 of the patch)", "Hunk 3", "found: alpho", "expected: gamma"] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
    }
}

mod placing_by_context {
    use super::*;

    const CODE: &str = "class A:\n    def run(self):\n        one()\n        return 1\n\nclass B:\n    def run(self):\n        two()\n        return 1\n";

    #[test]
    fn a_heading_tells_equal_lines_apart() {
        let hunk = "-        return 1\n+        return 2\n";
        let HunkFaultReason::Ambiguous { matches, .. } = why(&envelope(&format!("@@\n{hunk}")), CODE) else { panic!() };
        assert_eq!(matches.iter().map(|line| line.line).collect::<Vec<_>>(), [4, 9]);
        assert_eq!(
            becomes(&envelope(&format!("@@ class A:\n{hunk}")), CODE, &CODE.replacen("return 1", "return 2", 1))[0]
                .line,
            4
        );
        let stacked = format!("@@ class B:\n@@     def run(self):\n{hunk}");
        assert_eq!(applied(&envelope(&stacked), CODE).unwrap().reports[0].line, 9);
        assert!(matches!(
            why(&envelope(&format!("@@ def run(self):\n{hunk}")), CODE),
            HunkFaultReason::Ambiguous { .. }
        ));
        assert!(matches!(
            why(&envelope(&format!("@@ class C:\n{hunk}")), CODE),
            HunkFaultReason::HeadingMissing { .. }
        ));
    }

    #[test]
    fn two_places_under_one_heading_are_ambiguous() {
        let code = "def a():\n    x = 1\n    y = 2\n    x = 1\n\ndef b():\n    x = 1\n";
        assert!(matches!(
            why(&envelope("@@ def a():\n-    x = 1\n+    x = 3\n"), code),
            HunkFaultReason::Ambiguous { .. }
        ));
        let last = "def a():\n    x = 1\n    y = 2\n    x = 1\n\ndef b():\n    x = 3\n";
        becomes(&envelope("@@ def b():\n-    x = 1\n+    x = 3\n"), code, last);
    }

    #[test]
    fn additions_go_where_their_context_says_and_never_silently_to_the_end() {
        becomes(
            &envelope("@@ class B:\n+    size = 1\n"),
            CODE,
            &CODE.replace("class B:\n", "class B:\n    size = 1\n"),
        );
        assert!(matches!(why(&envelope("@@\n+new\n"), CODE), HunkFaultReason::NoContext));
        becomes(&envelope("@@ def a\n+  b\n"), "def ab():\ndef a():\n", "def ab():\ndef a():\n  b\n");
        becomes(&envelope("+new\n*** End of File\n"), "a\nb\n", "a\nb\nnew\n");
        becomes(&envelope("+new\n*** End of File\n"), "a\r\nb", "a\r\nb\r\nnew");
        becomes(&envelope("@@\n+new\n"), "", "new\n");
    }

    #[test]
    fn no_newline_is_added_at_the_end() {
        becomes(&envelope("@@\n a\n-b\n+c\n"), "a\nb", "a\nc");
        becomes(&envelope("@@\n a\n-b\n+c\n"), "a\nb\n", "a\nc\n");
        becomes(&envelope("@@\n b\n+c\n*** End of File\n"), "b\na\nb", "b\na\nb\nc");
    }

    #[test]
    fn hunks_may_share_context_and_come_in_any_order() {
        let before = "a\nb\nc\nd\n";
        becomes(&envelope("@@\n a\n-b\n+B\n c\n@@\n c\n-d\n+D\n"), before, "a\nB\nc\nD\n");
        becomes(&envelope("@@\n-d\n+D\n@@\n-a\n+A\n"), before, "A\nb\nc\nD\n");
        assert!(matches!(why(&envelope("@@\n-b\n+B\n@@\n a\n-b\n+X\n"), before), HunkFaultReason::Mismatch { .. }));
    }

    #[test]
    fn lenient_places_must_be_unique_and_are_indented_as_the_file_is() {
        let before = "fn a() {\n\tif x {\n\t\tone();\n\t}\n}\n";
        let hunk = " if x {\n-    one();\n+    two(\n+        3,\n+    );\n }\n";
        let reports = becomes(&envelope(hunk), before, "fn a() {\n\tif x {\n\t\ttwo(\n\t\t\t3,\n\t\t);\n\t}\n}\n");
        assert_eq!(reports[0].tier, MatchTier::Indentation);
        assert!(reports[0].note.as_ref().unwrap().contains("tabs"));
        assert!(matches!(
            why(&envelope(hunk), &before.repeat(2)),
            HunkFaultReason::Ambiguous { tier: MatchTier::Indentation, .. }
        ));
    }
}

mod as_codex {
    use super::*;

    fn applied(patch: &str, before: Option<&str>) -> PatchedContent {
        let files = parse(patch.as_bytes()).unwrap();
        apply_in(&files[0], before.map(str::as_bytes), Encoding::Utf8, PatchSemantics::Codex).unwrap()
    }

    fn note(applied: &PatchedContent) -> &str {
        applied.reports[0].note.as_deref().unwrap_or_default()
    }

    #[test]
    fn lines_without_context_go_to_the_end_with_a_note() {
        for (hunks, before, after) in [
            ("@@\n+new\n", "a\nb\n", "a\nb\nnew\n"),
            ("+new\n", "a\nb", "a\nb\nnew"),
            ("@@\n+one\n@@\n+two\n", "a\r\n", "a\r\none\r\ntwo\r\n"),
            ("@@\n-a\n+A\n@@\n+new\n", "a\nb\n", "A\nb\nnew\n"),
        ] {
            let applied = applied(&envelope(hunks), Some(before));
            assert_eq!(String::from_utf8(applied.after.clone().unwrap()).unwrap(), after, "{hunks}");
            let notes: Vec<_> = applied.reports.iter().filter_map(|report| report.note.as_deref()).collect();
            assert!(notes.last().unwrap().contains("end of the file"), "{hunks}: {notes:?}");
            assert!(matches!(super::applied(&envelope(hunks), before), Err(PatchFault::Hunks { .. })), "{hunks}");
        }
    }

    #[test]
    fn a_heading_still_says_where() {
        let applied = applied(&envelope("@@ a\n+new\n"), Some("a\nb\n"));
        assert_eq!(applied.after.unwrap(), b"a\nnew\nb\n");
    }

    #[test]
    fn an_added_file_replaces_what_is_there_with_a_note() {
        let patch = "*** Begin Patch\n*** Add File: f\n+new\n*** End Patch\n";
        let replaced = applied(patch, Some("old\n"));
        assert_eq!(replaced.after.as_deref(), Some(&b"new\n"[..]));
        assert!(note(&replaced).contains("replaced"));
        assert_eq!(note(&applied(patch, None)), "");
    }
}

/// Lines from a small stock, so that they repeat, with every kind of ending.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"",
        b"  c",
        b"\td ",
        b"\xFF\xFE",
        b"-- x",
        b"++ y",
        b"\r",
        b"@@ -1 +1 @@",
        b"\xEF\xBB\xBFe",
    ]);
    let ending = prop::sample::select(vec![&b"\n"[..], b"\n", b"\r\n"]);
    (prop::collection::vec((line, ending), 0..30), any::<bool>()).prop_map(|(lines, unterminated)| {
        let mut bytes: Vec<u8> = lines.iter().flat_map(|(line, ending)| [*line, *ending].concat()).collect();
        if unterminated {
            bytes.pop();
        }
        bytes
    })
}

proptest! {
    /// Our own diffs, of text that can be shown without loss, applied to the old version give the new one.
    #[test]
    fn diffs_and_patches_are_each_other_s_reverse(before in file(), after in file()) {
        let (before, after) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&after));
        prop_assume!(before != after);
        let diff = diff::unified(Some("f"), Some("f"), before.as_bytes(), after.as_bytes());
        let files = parse(diff.text.as_bytes()).unwrap();
        let applied = apply(&files[0], Some(before.as_bytes())).unwrap();
        prop_assert_eq!(applied.after.unwrap(), after.as_bytes());
        prop_assert!(applied.reports.iter().all(|report| report.offset == 0 && report.fuzz == 0 && report.tier == MatchTier::Exact));
        let added: usize = files[0].hunks.iter().flat_map(|hunk| &hunk.steps).filter(|step| matches!(step, DiffLine::Add(_))).count();
        prop_assert_eq!(added, diff.additions);
    }

    /// No bytes make the parser or the engine panic, and nothing is changed outside the lines that hunks name.
    #[test]
    fn nothing_panics(before in file(), noise in file(), cut in 0usize..400) {
        let diff = diff::unified(Some("f"), Some("f"), &before, &noise).text;
        let end = diff.floor_char_boundary(cut.min(diff.len()));
        for text in [&diff.as_bytes()[..end], &noise, &[b"*** Begin Patch\n*** Update File: f\n", noise.as_slice(), b"\n*** End Patch"].concat()] {
            for file in parse(text).unwrap_or_default() {
                _ = apply(&file, Some(&before));
            }
        }
    }
}
