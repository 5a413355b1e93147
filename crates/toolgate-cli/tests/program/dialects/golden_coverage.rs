//! What golden scripts and recordings have to show of each dialect: every edge case that decides whether it is right, and every error
//! that a call in it can end in.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::golden::scripts_of;

/// The edge cases, by number.
const EDGES: &[(u64, &str)] = &[
    (1, "a final newline, none, CRLF, a byte order mark, an empty file"),
    (2, "line numbers that were copied into the text to replace"),
    (3, "text that looks like what the client puts around it"),
    (4, "an exit code"),
    (5, "a `cd`, which stays or doesn't"),
    (6, "arguments that the tool doesn't have"),
    (7, "a function call to a tool for free text"),
    (8, "a number as a string, `null`, `undefined`"),
    (9, "ids and numbers of what runs"),
    (10, "limits of time"),
    (11, "names that differ in case, or a little"),
    (13, "paths in every form"),
    (14, "the mask of a secret"),
    (15, "output that was cut"),
];

/// Edge cases that dialects can't have, and why.
const NOT_HERE: &[(u64, &[&str], &str)] = &[
    (1, &["codex"], "no tool reads a file"),
    (2, &["codex", "codex-2026-01", "clude", "skills", "coder"], "files are changed by patches, or written whole"),
    (3, &["clude", "skills", "coder", "autonous"], "a text can't end its field of a JSON object"),
    (5, &["skills"], "no tool runs a command line"),
    (
        7,
        &["claude", "claude-2.0", "gemini", "opencode", "clude", "skills", "coder", "autonous"],
        "no tool is called with free text",
    ),
    (9, &["opencode", "clude", "skills", "coder", "autonous"], "no tool reads or stops what runs"),
    (10, &["gemini", "clude", "coder"], "no argument limits the time"),
];

/// The dialects, each with the recording of its client, if there is one.
const DIALECTS: [(&str, Option<&str>); 10] = [
    ("claude", Some("claude.json")),
    ("claude-2.0", None),
    ("codex", Some("codex.json")),
    ("codex-2026-01", None),
    ("gemini", Some("gemini.json")),
    ("opencode", Some("opencode.json")),
    ("clude", None),
    ("skills", None),
    ("coder", None),
    ("autonous", None),
];

/// Errors that a call in any dialect can end in.
const EVERYWHERE: [&str; 7] = [
    "unknown_tool",
    "invalid_args",
    "not_found",
    "path_outside_workspace",
    "sensitive_path",
    "approval_required",
    "approval_denied",
];

/// What else a call in a dialect can end in.
const ALSO: &[(&str, &[&str])] = &[
    (
        "claude",
        &["policy_denied", "tool_not_allowed", "not_a_file", "no_match", "ambiguous_match", "stale_file", "timeout"],
    ),
    (
        "claude-2.0",
        &["policy_denied", "tool_not_allowed", "not_a_file", "no_match", "ambiguous_match", "stale_file", "timeout"],
    ),
    ("codex", &["policy_denied", "tool_not_allowed", "patch_mismatch"]),
    ("codex-2026-01", &["policy_denied", "tool_not_allowed", "not_a_file", "patch_mismatch", "timeout"]),
    ("gemini", &["policy_denied", "tool_not_allowed", "not_a_file", "no_match", "ambiguous_match", "timeout"]),
    (
        "opencode",
        &[
            "policy_denied",
            "tool_not_allowed",
            "not_a_file",
            "no_match",
            "ambiguous_match",
            "patch_mismatch",
            "timeout",
        ],
    ),
    ("clude", &["policy_denied", "not_a_file", "patch_mismatch", "timeout"]),
    ("skills", &["policy_denied", "timeout"]),
    ("coder", &["policy_denied", "not_a_file", "patch_mismatch", "timeout"]),
    ("autonous", &["policy_denied", "not_a_file", "no_match", "ambiguous_match", "timeout"]),
];

/// The codes of all errors that a call in a dialect can end in, but for faults of the machine and of the program.
pub(super) fn errors_of(dialect: &str) -> impl Iterator<Item = &'static str> {
    let also = ALSO.iter().find(|(name, _)| *name == dialect).map_or(&[][..], |(_, codes)| codes);
    EVERYWHERE.iter().chain(also).copied()
}

/// The edge cases that calls of these scripts or steps of this recording show.
fn shown_edges(dialect: &str, recording: Option<&str>) -> BTreeSet<u64> {
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let recorded =
        recording.map(|name| read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name)));
    let scripts: Vec<Value> = scripts_of(dialect).iter().map(|script| read(script)).collect();
    let calls = scripts.iter().flat_map(|script| script["calls"].as_array().unwrap());
    let steps = recorded.iter().flat_map(|recording| recording["steps"].as_array().unwrap());
    calls.chain(steps).filter_map(|call| call["edge"].as_u64()).collect()
}

#[test]
fn every_dialect_shows_every_edge_case_that_it_can_have() {
    for (dialect, recording) in DIALECTS {
        let shown = shown_edges(dialect, recording);
        for (edge, what) in EDGES {
            let excuse = NOT_HERE.iter().find(|(number, dialects, _)| number == edge && dialects.contains(&dialect));
            match excuse {
                None => assert!(shown.contains(edge), "no call of {dialect} shows edge {edge}: {what}"),
                Some((.., why)) => assert!(!shown.contains(edge), "{dialect} shows edge {edge}, though {why}"),
            }
        }
    }
}

#[test]
fn all_dialects_are_looked_at() {
    let known: Vec<&str> = toolgate_dialects::DIALECTS.iter().map(|dialect| dialect.name).collect();
    assert_eq!(DIALECTS.map(|(name, _)| name).to_vec(), known);
}
