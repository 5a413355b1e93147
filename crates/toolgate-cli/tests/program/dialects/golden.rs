//! Golden scripts: what a model asks for in a dialect, call by call, and exactly what it gets. A script is a JSON file below
//! `crates/toolgate-dialects/tests/golden/DIALECT/`; `BLESS=1` writes what came where it differs.
//!
//! A script has `needs` (programs without which it is skipped), `files` (of the workspace), `home` (files of the home directory),
//! `flags` and `environment` of the program,
//! `answers` (what a person answers to forms), and `calls`. A call has `tool` and `args`, and one of `text` (lines), `error`
//! (lines of a result that is marked as an error), `json` and `error_json` (results that are one JSON object). `put` changes files
//! before a call, `after` says what files hold after it, and `edge` which edge case it shows (`golden_coverage.rs`). In arguments,
//! `{ID}` is the handle of the process that was named last. In what is expected, `{WS}` is the workspace's path, `{*}` is any text
//! within a line, and a line `{...}` any lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value, json};
use toolgate_testkit::mcp::{McpClient, form_elicitation};
use toolgate_testkit::skip;

use super::golden_coverage::errors_of;
use crate::mcp::client::connect;
use crate::world::{PROGRAM, World};

/// The scripts of a dialect.
pub(super) fn scripts_of(dialect: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolgate-dialects/tests/golden").join(dialect);
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "{} has no scripts", directory.display());
    scripts
}

/// Runs every script of a dialect. Together they end in every error that a call in it can end in.
pub(super) fn run_scripts(dialect: &str) {
    let mut codes = BTreeSet::new();
    let faults: Vec<String> =
        scripts_of(dialect).iter().flat_map(|script| run_script(dialect, script, &mut codes)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    let missing: Vec<&str> = errors_of(dialect).filter(|code| !codes.contains(*code)).collect();
    assert!(missing.is_empty(), "no script of {dialect} ends in {missing:?}, only in {codes:?}");
}

/// Runs a script, and says where its results aren't as expected. Collects the codes of all errors on record.
fn run_script(dialect: &str, path: &Path, codes: &mut BTreeSet<String>) -> Vec<String> {
    let mut script: Value = serde_json::from_slice(&std::fs::read(path).unwrap())
        .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    if let Some(missing) = strings(&script["needs"]).find(|program| !is_installed(program)) {
        skip("program-missing", &format!("`{missing}` isn't installed, which {} needs", path.display()));
        return Vec::new();
    }
    let world = World::new();
    std::fs::remove_file(world.workspace().join("hello.txt")).unwrap();
    put(&world, &world.workspace(), &script["files"]);
    put(&world, &world.home(), &script["home"]);
    let home = world.workspace().canonicalize().unwrap().display().to_string();
    let mut client = start(&world, dialect, &script, &home);
    let mut faults = Vec::new();
    let (handle, mut process) = (Regex::new("proc_[0-9a-z]+").unwrap(), String::new());
    let calls = script["calls"].as_array_mut().unwrap();
    for (number, call) in (1..).zip(calls.iter_mut()) {
        put(&world, &world.workspace(), &call["put"]);
        let args = call["args"].to_string().replace("{WS}", &home).replace("{ID}", &process);
        let args: Value = serde_json::from_str(&args).unwrap();
        let result = client.call(call["tool"].as_str().unwrap(), args);
        let came = result["content"][0]["text"].as_str().unwrap_or_default().replace(&home, "{WS}");
        process = handle.find(&came).map_or(process, |found| found.as_str().to_owned());
        let came = if process.is_empty() { came } else { came.replace(&process, "{ID}") };
        let is_error = result["isError"] == true;
        let mut fault = |why: String| {
            faults.push(format!("{}, call {number} ({}): {why}", path.display(), call["tool"]));
        };
        if !is_expected(call, &came, is_error) {
            fault(format!("is_error = {is_error}\n{came}"));
            bless(call, &came, is_error);
        }
        for (file, content) in call["after"].as_object().unwrap_or(&Map::new()) {
            let now = std::fs::read_to_string(world.workspace().join(file)).map_or(Value::Null, Value::from);
            if now != *content {
                faults.push(format!("{}, call {number}: `{file}` is {now}, not {content}", path.display()));
            }
        }
    }
    assert_eq!(client.end(), 0, "{}", path.display());
    codes.extend(recorded_codes(&world));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, format!("{script:#}\n")).unwrap();
    }
    faults
}

/// The codes of the errors that calls of the last run ended in.
fn recorded_codes(world: &World) -> Vec<String> {
    let record: Value = serde_json::from_str(&world.run(&["runs", "export"]).out).unwrap();
    let events = record["events"].as_array().unwrap();
    events.iter().filter_map(|event| event["error"]["code"].as_str()).map(str::to_owned).collect()
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap())
}

fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|place| place.join(program).exists()))
}

fn start(world: &World, dialect: &str, script: &Value, home: &str) -> McpClient {
    let mut command = world.command(PROGRAM);
    for (name, value) in script["environment"].as_object().unwrap_or(&Map::new()) {
        command.env(name, value.as_str().unwrap().replace("{WS}", home));
    }
    let flags: Vec<&str> = ["--dialect", dialect].into_iter().chain(strings(&script["flags"])).collect();
    let answers = script["answers"].as_array().cloned().unwrap_or_default();
    let capabilities = if answers.is_empty() { json!({}) } else { form_elicitation() };
    let mut client = connect(command, &flags, false, capabilities);
    client.answers = answers.into_iter().map(|content| json!({ "action": "accept", "content": content })).collect();
    client.initialize();
    client
}

fn put(world: &World, directory: &Path, files: &Value) {
    for (path, content) in files.as_object().unwrap_or(&Map::new()) {
        world.put(&directory.join(path), content.as_str().unwrap());
    }
}

fn is_expected(call: &Value, came: &str, is_error: bool) -> bool {
    let (lines, object) = if is_error { ("error", "error_json") } else { ("text", "json") };
    match (call.get(lines), call.get(object)) {
        (Some(expected), None) => lines_match(&lines_of(expected), &came.split('\n').collect::<Vec<_>>()),
        (None, Some(expected)) => serde_json::from_str(came).is_ok_and(|came| json_matches(expected, &came)),
        _ => false,
    }
}

fn lines_of(expected: &Value) -> Vec<&str> {
    match expected {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        text => text.as_str().unwrap().split('\n').collect(),
    }
}

fn lines_match(expected: &[&str], came: &[&str]) -> bool {
    match (expected, came) {
        (["{...}", rest @ ..], _) => (0..=came.len()).any(|skipped| lines_match(rest, &came[skipped..])),
        ([line, rest @ ..], [first, others @ ..]) => text_matches(line, first) && lines_match(rest, others),
        ([], []) => true,
        _ => false,
    }
}

fn text_matches(expected: &str, came: &str) -> bool {
    match expected.split_once("{*}") {
        None => expected == came,
        Some((start, rest)) => came.strip_prefix(start).is_some_and(|came| {
            came.char_indices().map(|(at, _)| at).chain([came.len()]).any(|at| text_matches(rest, &came[at..]))
        }),
    }
}

fn json_matches(expected: &Value, came: &Value) -> bool {
    match (expected, came) {
        (Value::String(text), _) if text == "{*}" => true,
        (Value::String(expected), Value::String(came)) => {
            lines_match(&expected.split('\n').collect::<Vec<_>>(), &came.split('\n').collect::<Vec<_>>())
        }
        (Value::Object(expected), Value::Object(came)) => {
            expected.len() == came.len()
                && expected.iter().all(|(name, value)| came.get(name).is_some_and(|came| json_matches(value, came)))
        }
        (Value::Array(expected), Value::Array(came)) => {
            expected.len() == came.len()
                && expected.iter().zip(came).all(|(expected, came)| json_matches(expected, came))
        }
        _ => expected == came,
    }
}

/// Puts what came into the script.
fn bless(call: &mut Value, came: &str, is_error: bool) {
    let call = call.as_object_mut().unwrap();
    for name in ["text", "error", "json", "error_json"] {
        call.shift_remove(name);
    }
    let (lines, object) = if is_error { ("error", "error_json") } else { ("text", "json") };
    match serde_json::from_str(came) {
        Ok(Value::Object(fields)) => call.insert(object.into(), fields.into()),
        _ => call.insert(lines.into(), came.split('\n').map(Value::from).collect()),
    };
}

#[test]
fn what_is_expected_can_leave_parts_open_and_nothing_else() {
    assert!(text_matches("a{*}c", "abbc") && text_matches("{*}", "") && !text_matches("a{*}c", "ab"));
    assert!(lines_match(&["a", "{...}", "d"], &["a", "b", "c", "d"]) && !lines_match(&["a"], &["a", "b"]));
    assert!(json_matches(&json!({ "n": "{*}", "t": ["x{*}"] }), &json!({ "n": 1, "t": ["xy"] })));
    assert!(!json_matches(&json!({ "n": 1 }), &json!({ "n": 1, "more": 2 })));
}
