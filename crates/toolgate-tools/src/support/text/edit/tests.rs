//! What an edit promises: the right places, the right receipt, and not a byte touched elsewhere.

use proptest::prelude::*;
use toolgate_contract::{ErrorCode, ToolError};

use super::*;

fn edited(content: &str, find: &str, replace: &str) -> EditedText {
    edit(content.as_bytes(), find, replace, false).unwrap()
}

fn text(edited: &EditedText) -> &str {
    std::str::from_utf8(&edited.content).unwrap()
}

/// Asserts the new content and the tier.
fn becomes(content: &str, find: &str, replace: &str, expected: &str, tier: MatchTier) {
    let edited = edited(content, find, replace);
    assert_eq!(text(&edited), expected);
    assert_eq!(edited.tier, tier);
    assert_eq!(edited.note.is_some(), tier != MatchTier::Exact, "every leniency has its receipt");
}

#[test]
fn an_exact_match_is_replaced_and_nothing_in_it_is_special() {
    becomes("a $1 b", "$1", r"$& \1 ${x}", r"a $& \1 ${x} b", MatchTier::Exact);
    becomes("one two", "two", "", "one ", MatchTier::Exact);
    assert_eq!(edited("1\n2\n3\n", "3", "x").first_line, 3);
}

#[test]
fn all_places_are_replaced_when_asked_for() {
    let edited = edit(b"x.x\r\nx", "x", "yy", true).unwrap();
    assert_eq!((text(&edited), edited.replacements), ("yy.yy\r\nyy", 3));
    let edited = edit(b"a\nb\na\r\nb\r\n", "a\nb\n", "c\nd\n", true).unwrap();
    assert_eq!((text(&edited), edited.replacements), ("c\nd\nc\r\nd\r\n", 2));
    assert_eq!(edited.tier, MatchTier::LineEndings);
}

#[test]
fn line_endings_follow_the_file() {
    becomes("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", MatchTier::LineEndings);
    becomes("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", MatchTier::Exact);
    becomes("a\r\nb", "b", "x\ny", "a\r\nx\r\ny", MatchTier::Exact);
    becomes("a\nb\r\nc\nd\n", "a\nb\nc\n", "1\n2\n3\n4\n", "1\n2\r\n3\n4\nd\n", MatchTier::LineEndings);
    becomes("a\r\nb\r\n", "\nb", "\nx\nb", "a\r\nx\r\nb\r\n", MatchTier::LineEndings);
    becomes("a\r\nb\r\n", "\nb", "", "a\r\n", MatchTier::LineEndings);
    becomes("a\nb\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\n", MatchTier::LineEndings);
    becomes("a\r\n", "a\r\n", "a\n", "a\n", MatchTier::Exact);
}

#[test]
fn unchanged_parts_of_a_match_keep_their_odd_endings() {
    becomes("a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nX\nd\n", "a\r\nb\nX\r\nd\n", MatchTier::LineEndings);
}

#[test]
fn trailing_blanks_may_differ() {
    becomes("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", "a  \nB\nc\n", MatchTier::TrailingWhitespace);
    becomes("x\nfoo\n", "foo  \n", "bar\n", "x\nbar\n", MatchTier::TrailingWhitespace);
    becomes("foobar\nfoo\n", "foo \n", "x\n", "foobar\nx\n", MatchTier::TrailingWhitespace);
    becomes("a \nb\nc", "a\nb\n", "", "c", MatchTier::TrailingWhitespace);
}

#[test]
fn indentation_may_differ_by_a_constant_and_new_lines_follow() {
    becomes(
        "fn a() {\n    if x {\n        one();\n    }\n}\n",
        "if x {\n    one();\n}\n",
        "if x {\n    two();\n\n    three();\n}\n",
        "fn a() {\n    if x {\n        two();\n\n        three();\n    }\n}\n",
        MatchTier::Indentation,
    );
    becomes(
        "\tif x:\n\t\tone\n",
        "    if x:\n        one\n",
        "    if y:\n        one\n",
        "\tif y:\n\t\tone\n",
        MatchTier::Indentation,
    );
    let note = edited("    a\n    b\n", "a\nb", "c\nd").note.unwrap();
    assert!(note.contains("4 spaces more"), "{note}");
}

#[test]
fn uneven_indentation_never_applies() {
    let fault = edit(b"  a\n    b\n", "a\nb", "c\nd", false).unwrap_err();
    assert!(matches!(fault, EditFault::NoMatch { nearest: Some(_), .. }), "{fault}");
    let fault = edit(b"a\n  b\n", "  a\n    b\n", "x\n", false).unwrap_err();
    assert!(matches!(fault, EditFault::NoMatch { .. }), "`x` can't be moved further left: {fault}");
}

#[test]
fn special_punctuation_matches_its_plain_form_and_stays_where_it_is_not_changed() {
    becomes("say “hi” – now\n", "\"hi\" - now", "\"hi\" - later", "say “hi” – later\n", MatchTier::Punctuation);
    becomes("a\u{a0}b\r\nit’s\r\n", "a b\nit's", "a b\nwas", "a\u{a0}b\r\nwas\r\n", MatchTier::Punctuation);
}

#[test]
fn a_lenient_match_must_be_unique() {
    for (content, find, tier) in [
        ("a \nb\n-\na\t\nb\n", "a\nb\n", MatchTier::TrailingWhitespace),
        (" a\n b\n-\n  a\n  b\n", "a\nb\n", MatchTier::Indentation),
        ("“x”\n”x“\n", "\"x\"", MatchTier::Punctuation),
    ] {
        match edit(content.as_bytes(), find, "new\n", false) {
            Err(EditFault::Ambiguous { tier: found, matches, more: false }) => {
                assert_eq!((found, matches.len()), (tier, 2));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_ambiguity_lists_its_places() {
    let Err(EditFault::Ambiguous { matches, more, .. }) = edit(b"let a;\nb\nlet a;\n", "a;", "c", false) else {
        panic!()
    };
    let listed: Vec<_> = matches.iter().map(|line| (line.line, line.text.as_str())).collect();
    assert_eq!((listed.as_slice(), more), (&[(1, "let a;"), (3, "let a;")][..], false));
    let Err(EditFault::Ambiguous { matches, more, .. }) = edit(&b"x\n".repeat(50), "x", "c", false) else { panic!() };
    assert_eq!((matches.len(), more), (10, true));
    assert!(matches!(edit(b"aaa", "aa", "b", false), Err(EditFault::Ambiguous { .. })), "overlapping places count");
}

#[test]
fn no_match_shows_the_nearest_text_and_why_it_differs() {
    let fault = edit(b"one\nlet total = sum(items);\nthree\n", "let total = sum(item);", "x", false).unwrap_err();
    let error = ToolError::from(fault);
    assert_eq!(error.code, ErrorCode::NoMatch);
    for part in ["line 2", "expected: let total = sum(item);", "found: let total = sum(items);"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert_eq!(edit(b"abc", "zzz", "x", false), Err(EditFault::NoMatch { nearest: None, is_numbered: false }));
}

/// Models copy the numbers that they were shown beside the lines. They are named, and never left out silently.
#[test]
fn copied_line_numbers_are_named_where_the_text_is_there_without_them() {
    let content = b"one\r\n  two\nthree\n";
    for find in ["1\tone", "     1→one\n     2→  two", "1: one\n2:   two\n", "L2:   two"] {
        let error = ToolError::from(edit(content, find, "x", false).unwrap_err());
        assert_eq!(error.code, ErrorCode::NoMatch);
        assert!(error.message.contains("line numbers") && error.hint.unwrap().contains("leave them out"), "{find}");
    }
    for find in ["1\tfour", "1\tone\ntwo", "10 one", "1:one", "1\t"] {
        let error = ToolError::from(edit(content, find, "x", false).unwrap_err());
        assert!(!error.message.contains("line numbers"), "{find}: {}", error.message);
    }
}

#[test]
fn empty_and_equal_texts_are_refused() {
    assert_eq!(edit(b"a", "", "x", false), Err(EditFault::EmptyFind));
    assert_eq!(edit(b"a", "a", "a", false), Err(EditFault::NothingChanges));
    assert!(ToolError::from(EditFault::EmptyFind).hint.unwrap().contains("`write`"));
}

#[test]
fn a_mark_at_the_start_and_foreign_bytes_survive() {
    let edited = edit(b"\xEF\xBB\xBF  a \n\xFF\xFEb\n", "  a\n", "  c\n", false).unwrap();
    assert_eq!(edited.content, b"\xEF\xBB\xBF  c\n\xFF\xFEb\n");
    let utf16: Vec<u8> = "\u{feff}a\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let expected: Vec<u8> = "\u{feff}x\r\ny\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let edited = edit_in(Encoding::Utf16Le, &utf16, "a\nb", "x\ny\nb", false).unwrap();
    assert_eq!((edited.content, edited.tier), (expected, MatchTier::LineEndings));
    let fault = edit_in(Encoding::Other(encoding_rs::WINDOWS_1252), b"caf\xE9", "é", "語", false).unwrap_err();
    assert!(matches!(fault, EditFault::Encoding(_)), "{fault}");
}

/// Pieces that files are made of, the awkward ones included.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![
            &b"\n"[..],
            b"\r\n",
            b"\r",
            b"\xEF\xBB\xBF",
            b"\xFF",
            b"\xC3",
            b"\xE2\x80",
            b" ",
            b"\t",
            b"a",
            b"b",
            b"\xE2\x80\x9C",
            b"\xC2\xA0",
            b"\0",
            b"word",
            b"    indented",
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..6),
    ]
}

fn bytes(pieces: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), pieces).prop_map(|pieces| pieces.concat())
}

fn spelling() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["\n", "a", "b", " ", "\t", "word", "é", "\"", "-"]), 1..8)
        .prop_map(|parts| parts.concat())
}

/// What one change replaced: the part between the longest common ends.
fn unlike_part(before: &[u8], after: &[u8]) -> std::ops::Range<usize> {
    let prefix = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let room = before.len().min(after.len()) - prefix;
    let suffix = before.iter().rev().zip(after.iter().rev()).take(room).take_while(|(old, new)| old == new).count();
    prefix..before.len() - suffix
}

proptest! {
    /// A marked text is put between arbitrary bytes, with either line ending: only it changes.
    #[test]
    fn bytes_outside_the_span_never_change(
        head in bytes(0..12), tail in bytes(0..12), middle in spelling(), new in spelling(), crlf: bool,
    ) {
        let find = format!("<<{middle}>>");
        let replace = format!("<<{new}!>>");
        let there = if crlf { find.replace('\n', "\r\n") } else { find.clone() };
        let content = [head.as_slice(), there.as_bytes(), &tail].concat();
        if let Ok(edited) = edit(&content, &find, &replace, false) {
            prop_assert!(edited.content.starts_with(&head));
            prop_assert!(edited.content.ends_with(&tail));
            let inside = &edited.content[head.len()..edited.content.len() - tail.len()];
            prop_assert_eq!(String::from_utf8_lossy(inside).replace("\r\n", "\n"), replace.as_str());
            prop_assert_eq!(edited.replacements, 1);
            prop_assert_eq!(edited.tier == MatchTier::Exact, there == find);
            let line = head.iter().filter(|&&byte| byte == b'\n').count() + 1;
            prop_assert_eq!(edited.first_line, line);
        }
    }

    /// Whatever the tier, a single edit touches one stretch of whole lines around its match, and never panics.
    #[test]
    fn any_edit_of_any_bytes_changes_one_stretch(content in bytes(0..20), find in spelling(), replace in spelling()) {
        if let Ok(edited) = edit(&content, &find, &replace, false) {
            let changed = unlike_part(&content, &edited.content);
            let lines = content[changed].iter().filter(|&&byte| byte == b'\n').count();
            prop_assert!(lines <= find.matches('\n').count() + 1);
            prop_assert!(edited.first_line <= content.iter().filter(|&&byte| byte == b'\n').count() + 1);
        }
    }

    /// With `all`, the count is that of a plain search, and none is left unless the new text brings it.
    #[test]
    fn all_means_all(parts in prop::collection::vec(prop::sample::select(vec!["ab", "a", "b", "\n", "x"]), 0..30)) {
        let content = parts.concat();
        match edit(content.as_bytes(), "ab", "Z", true) {
            Ok(edited) => {
                prop_assert_eq!(edited.replacements, content.matches("ab").count());
                prop_assert_eq!(text(&edited), content.replace("ab", "Z"));
                prop_assert!(edit(&edited.content, "ab", "Z", true).is_err(), "a second time there is nothing to do");
            }
            Err(_) => prop_assert!(!content.contains("ab")),
        }
    }

    /// An edit and its reverse lead back, as long as both are exact and unique.
    #[test]
    fn an_exact_edit_can_be_taken_back(head in bytes(0..10), tail in bytes(0..10), new in "[a-z]{1,6}") {
        let content = [head.as_slice(), b"<<here>>", &tail].concat();
        let replace = format!("[[{new}]]");
        if let Ok(there) = edit(&content, "<<here>>", &replace, false)
            && let Ok(back) = edit(&there.content, &replace, "<<here>>", false)
        {
            prop_assert_eq!(back.content, content);
        }
    }
}
