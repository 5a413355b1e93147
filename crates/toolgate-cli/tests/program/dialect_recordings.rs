//! What our dialects say, held against recordings of the real clients: the same calls in the same workspace, compared in shape.
//! `cargo xtask dialects record` makes the recordings anew; `tests/recordings/record.py` says what is kept of an answer.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_testkit::mcp::McpClient;

use crate::mcp::client;
use crate::world::World;

#[derive(Deserialize)]
struct Recording {
    definition_tokens: usize,
    tools: Vec<RecordedTool>,
    steps: Vec<RecordedStep>,
}

#[derive(Deserialize)]
struct RecordedTool {
    name: String,
    arguments: Map<String, Value>,
    required: Vec<String>,
}

#[derive(Deserialize)]
struct RecordedStep {
    tool: String,
    args: Value,
    /// Where ours is meant to be another, and why.
    differs: Option<String>,
    /// Whether it is marked as an error; none where the client's wire format has no such mark.
    is_error: Option<bool>,
    shown: Vec<Value>,
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn read<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let text = std::fs::read_to_string(recordings().join(file)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{file}: {fault}"))
}

/// The workspace of the recordings.
fn world() -> World {
    let files: Map<String, Value> = read("workspace.json");
    files.iter().fold(World::new(), |world, (path, content)| match content {
        Value::String(text) => world.file(path, text),
        Value::Object(fields) if fields.contains_key("bytes") => {
            world.file(path, serde_json::from_value::<Vec<u8>>(fields["bytes"].clone()).unwrap())
        }
        repeated => {
            let times = usize::try_from(repeated["times"].as_u64().unwrap()).unwrap();
            world.file(path, repeated["repeat"].as_str().unwrap().repeat(times))
        }
    })
}

/// The expression for a shape. What an error says beyond it is our own hint, in lines of its own.
fn pattern(shape: &str, is_error: bool) -> Regex {
    let mut pattern = regex::escape(shape);
    for (placeholder, expression) in [
        ("…", "(?s:.*?)"),
        ("⟨hex⟩", "[0-9a-f]+"),
        ("⟨number⟩", "[0-9.]+"),
        ("⟨word⟩", "[A-Za-z0-9_-]+"),
        ("⟨path⟩", r"\S+"),
    ] {
        pattern = pattern.replace(&regex::escape(placeholder), expression);
    }
    let rest = if is_error { r"(?s:\n.*)?" } else { "" };
    Regex::new(&format!("^{pattern}{rest}$")).unwrap()
}

/// A client that repeats the steps of a recording.
struct Repeater {
    client: McpClient,
    workspace: String,
    /// The last number or name of a command that goes on.
    session: Option<Value>,
}

impl Repeater {
    fn new(world: &World, dialect: &str) -> Self {
        let flags = ["--dialect", dialect];
        let mut client = client::start(world, &flags, false, json!({}));
        client.initialize();
        let workspace = world.workspace().canonicalize().unwrap().display().to_string();
        Self { client, workspace, session: None }
    }

    fn arguments(&self, args: &Value) -> Value {
        let text = args.to_string().replace("$WS", &self.workspace);
        let text = match &self.session {
            Some(session) => text.replace("\"$SESSION\"", &session.to_string()),
            None => text,
        };
        match serde_json::from_str(&text).unwrap() {
            // MCP has no free text.
            Value::String(input) => json!({ "input": input }),
            args => args,
        }
    }

    /// What is wrong with our answer to a step, if anything is.
    fn fault(&mut self, step: &RecordedStep) -> Option<String> {
        let result = self.client.call(&step.tool, self.arguments(&step.args));
        let blocks = result["content"].as_array().unwrap();
        let text = blocks[0]["text"].as_str().unwrap_or_default().replace(&self.workspace, "$WS");
        self.remember(&text);
        let is_error = result["isError"] == true;
        let shows_image = |blocks: &[Value]| {
            blocks.iter().any(|block| block["type"].as_str().is_some_and(|kind| kind.contains("image")))
        };
        let shape: Vec<&str> = step.shown.iter().filter_map(Value::as_str).collect();
        let shape = shape.join("\n");
        let is_same = step.is_error.is_none_or(|expected| expected == is_error)
            // Some clients send images beside the result.
            && (shows_image(blocks) || !shows_image(&step.shown))
            && (shape.is_empty() || pattern(&shape, is_error).is_match(&text));
        (!is_same).then(|| {
            let short: String = text.chars().take(600).collect();
            format!(
                "{} {}\n  recorded (error: {:?}): {shape:?}\n  ours (error: {is_error}): {short:?}\n",
                step.tool, step.args, step.is_error
            )
        })
    }

    fn remember(&mut self, text: &str) {
        let found = Regex::new(r"session ID (\d+)|with ID: (\w+)|\(PID: (\d+)\)").unwrap();
        let Some(found) = found.captures(text) else { return };
        let id = found.iter().skip(1).flatten().next().unwrap().as_str();
        self.session = Some(id.parse::<i64>().map_or_else(|_| json!(id), |number| json!(number)));
    }
}

/// Repeats a recording. A step that is said to differ has to differ.
fn compare(dialect: &str, recording: &str) {
    let world = world();
    world.put(&world.user_config(), "preset = 'full'\n");
    let recording: Recording = read(recording);
    let mut repeater = Repeater::new(&world, dialect);
    let mut faults = Vec::new();
    for step in &recording.steps {
        match (repeater.fault(step), &step.differs) {
            (Some(fault), None) => faults.push(fault),
            (None, Some(why)) => {
                faults.push(format!("{} {}: is the same, though it says: {why}\n", step.tool, step.args))
            }
            _ => {}
        }
    }
    assert!(faults.is_empty(), "{} of {} steps:\n{}", faults.len(), recording.steps.len(), faults.concat());
}

/// An argument that is taken and not declared: an order within the turn, which the gate keeps by its locks.
const UNDECLARED: &str = "wait_for_previous";

/// The arguments of each tool that both have: the same names, the same ones required, the same types.
fn compare_definitions(dialect: &str, recording: &str, ours_too: &[&str]) {
    let world = World::new();
    let said = world.run(&["tools", "--all", "--dialect", dialect, "--format", "anthropic", "--json"]);
    let ours: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let recording: Recording = read(recording);
    let mut compared = 0;
    for tool in &recording.tools {
        let Some(our) = ours.iter().find(|our| our["name"] == tool.name.as_str()) else { continue };
        // Free text has a grammar and no arguments.
        if tool.arguments.is_empty() && our["input_schema"]["properties"]["input"].is_object() {
            continue;
        }
        let sorted = |names: &mut dyn Iterator<Item = &str>| {
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            names.sort();
            names
        };
        let schema = &our["input_schema"];
        let properties = schema["properties"].as_object().unwrap();
        let known = sorted(&mut properties.keys().map(String::as_str).filter(|name| !ours_too.contains(name)));
        let mut theirs = tool.arguments.keys().map(String::as_str).filter(|name| *name != UNDECLARED);
        assert_eq!(known, sorted(&mut theirs), "{}", tool.name);
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let required = sorted(&mut required.iter().filter_map(Value::as_str));
        assert_eq!(required, tool.required, "{}", tool.name);
        compared += 1;
    }
    assert!(compared >= 4, "{compared} tools of {dialect} were compared");
    let tokens = said.out.len() / 4;
    assert!(
        tokens < recording.definition_tokens,
        "{tokens} tokens of ours, {} of the client's",
        recording.definition_tokens
    );
}

#[test]
fn claude_answers_as_the_client_does() {
    compare("claude", "claude.json");
}

#[test]
fn codex_answers_as_the_client_does() {
    compare("codex", "codex.json");
}

#[test]
fn gemini_answers_as_the_client_does() {
    compare("gemini", "gemini.json");
}

#[test]
fn opencode_answers_as_the_client_does() {
    compare("opencode", "opencode.json");
}

#[test]
fn tools_take_the_arguments_that_the_clients_declare_in_fewer_tokens() {
    compare_definitions("claude", "claude.json", &[]);
    compare_definitions("codex", "codex.json", &["input"]);
    compare_definitions("gemini", "gemini.json", &[]);
    compare_definitions("opencode", "opencode.json", &["description"]);
}
