//! Whatever a model asks for in a dialect, the native call is judged like any other: under `read-only` nothing changes, and a tool that
//! policy denies is reached by none of its other names.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use toolgate_contract::CancellationToken;
use toolgate_dialects::{DIALECTS, Dialect, DialectTool, Parameter, ParameterKind};
use toolgate_runtime::Session;
use toolgate_testkit::TestWorkspace;
use toolgate_workspace::DialectSession;

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";

/// A text that would change something, by what the argument is for.
fn text(name: &str) -> &'static str {
    match name {
        "command" | "cmd" => "rm -f a.txt; echo x > new.txt",
        "input" | "patch" | "patchText" | "patch_text" => PATCH,
        "url" => "http://127.0.0.1:9/",
        "old_string" | "oldString" | "find" => "one",
        "relative_path" => "scripts/change.sh",
        _ if name.to_lowercase().contains("path") => "a.txt",
        _ => "something else",
    }
}

fn value(parameter: &Parameter, optional: bool) -> Value {
    match parameter.kind {
        ParameterKind::Text => text(parameter.name).into(),
        ParameterKind::Integer(least, most) => 1.clamp(least, most).into(),
        ParameterKind::Boolean => false.into(),
        ParameterKind::Choice(words) => words[0].into(),
        ParameterKind::Texts if parameter.name == "command" => json!(["sh", "-c", text("command")]),
        ParameterKind::Texts => json!([text(parameter.name)]),
        ParameterKind::Objects(fields) => json!([arguments(fields, optional)]),
        ParameterKind::Object(fields) => arguments(fields, optional),
        ParameterKind::Any => json!({}),
    }
}

/// Arguments that fit: the required ones alone, or the others too.
fn arguments(parameters: &[Parameter], optional: bool) -> Value {
    let given = parameters.iter().filter(|parameter| parameter.required || optional);
    given.map(|parameter| (parameter.name.to_owned(), value(parameter, optional))).collect::<Map<_, _>>().into()
}

/// The files of a workspace with their content, but for the program's own.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true if name == ".toolgate" => {}
            true => found.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes))),
            false => {
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn world(config: &str) -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), config);
    world.file("a.txt", "one\ntwo\n").file("src/main.rs", "fn main() {}\n");
    world
}

/// Calls a tool in every way, in a session of its own.
async fn call(world: &TestWorkspace, session: &Session, dialect: &Dialect, tool: &DialectTool) {
    for optional in [false, true] {
        let spoken = DialectSession::new(dialect.name.parse().unwrap(), world.path());
        let call = world.call(tool.name, arguments(tool.parameters, optional));
        spoken.perform(call, &world.gate, session, CancellationToken::new()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_read_only_no_dialect_changes_anything() {
    for dialect in DIALECTS {
        for (preset, may_change) in [("read-only", false), ("full", true)] {
            let world = world(&format!("preset = '{preset}'")).confined();
            let (before, session) = (files(world.path()), world.approving_session());
            for tool in dialect.tools {
                call(&world, &session, dialect, tool).await;
            }
            let is_changed = files(world.path()) != before;
            assert_eq!(is_changed, may_change, "{} with the preset {preset}", dialect.name);
        }
    }
}

/// How a call of a tool that policy denies ends. What a dialect itself refuses is on record under the name that the model used,
/// which may be a native one.
const REFUSED: &[&str] = &["tool_not_allowed", "unknown_tool", "invalid_args"];

/// How each call of a native tool ended: its error code, or nothing where it succeeded.
fn calls(world: &TestWorkspace, native: &str) -> Vec<String> {
    let events: Vec<Value> = world.events().iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let begun = events.iter().filter(|event| event["kind"] == "tool_call.started" && event["tool"] == native);
    let end = |id: &Value| events.iter().rfind(|event| event["tool_call_id"] == *id).unwrap();
    begun.map(|event| end(&event["tool_call_id"])["error"]["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_tool_is_reached_by_none_of_its_names() {
    for dialect in DIALECTS {
        let natives: BTreeSet<&str> = dialect.tools.iter().map(|tool| tool.native).collect();
        for native in natives {
            let world = world(&format!("preset = 'full'\ntools.deny = ['{native}']"));
            let session = world.approving_session();
            for tool in dialect.tools {
                call(&world, &session, dialect, tool).await;
            }
            let reached = calls(&world, native).into_iter().find(|code| !REFUSED.contains(&code.as_str()));
            assert_eq!(reached, None, "{}: {native} was reached", dialect.name);
        }
    }
}
