//! `--json`, one way for every command: standard output holds JSON, one value a line, and an error is one line of JSON
//! on standard error. The commands are found by walking the program's own help.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::world::{PROGRAM, World};

/// How each command is called here: with these arguments in a workspace that has a run, a change and a task.
const CALLS: &[(&str, &[&str])] = &[
    ("run", &["Say it.", "--model", "scripted:script.toml"]),
    ("call", &["list"]),
    ("tools", &[]),
    ("dialects", &[]),
    ("mcp list", &[]),
    ("mcp import", &[]),
    ("mcp show", &["none"]),
    ("mcp approve", &["none"]),
    ("mcp add", &["time", "--", "mcp-server-time"]),
    ("mcp login", &["none"]),
    ("mcp logs", &["none"]),
    ("mcp remove", &["time"]),
    ("config show", &[]),
    ("config check", &[]),
    ("index rebuild", &[]),
    ("index status", &[]),
    ("index drop", &[]),
    ("search", &["hello"]),
    ("caches list", &[]),
    ("caches clear", &[]),
    ("policy check", &["ls"]),
    ("policy explain", &["ls"]),
    ("policy test", &["--all"]),
    ("policy replay", &[]),
    ("approvals list", &[]),
    ("approvals show", &["ask_none"]),
    ("approvals approve", &["ask_none"]),
    ("approvals deny", &["ask_none"]),
    ("approvals abort", &["ask_none"]),
    ("approvals answer", &["ask_none", "left"]),
    ("approvals grants", &[]),
    ("approvals revoke", &["grant_none"]),
    ("runs list", &[]),
    ("runs show", &[]),
    ("runs tree", &[]),
    ("runs tail", &[]),
    ("runs export", &[]),
    ("runs reindex", &[]),
    ("replay", &[]),
    ("inbox add", &["tidy up"]),
    ("inbox list", &[]),
    ("inbox show", &["task_none"]),
    ("inbox cancel", &["task_none"]),
    ("work", &["--once", "--model", "scripted:script.toml"]),
    ("audit verify", &[]),
    ("audit accept", &[]),
    ("attach", &[]),
    ("changes", &[]),
    ("undo", &["last"]),
    ("commit", &["call_none"]),
    ("quarantine list", &[]),
    ("quarantine release", &["call_none", "a"]),
    ("init", &["--workspace", "elsewhere"]),
    ("trust", &["--revoke"]),
    ("doctor", &[]),
    ("lsp status", &[]),
    ("lsp restart", &[]),
    ("lsp logs", &["no-such-server"]),
    ("hook doctor", &["claude"]),
    ("console", &[]),
    ("watch", &[]),
];

/// Commands whose output isn't JSON. The README lists them too.
const EXCEPTIONS: &[&str] = &[
    "chat",
    "demo",
    "sandbox",
    "with",
    "quarantine show",
    "completions",
    "man",
    "hook exec",
    "hook claude",
    "hook codex",
    "hook copilot",
    "hook cursor",
    "hook gemini",
    "hook goose",
    "hook opencode",
];

/// Lists that may be empty: no line is the JSON of no thing.
const MAY_BE_EMPTY: &[&str] =
    &["quarantine list", "policy replay", "caches list", "mcp list", "approvals list", "approvals grants", "attach"];

/// The subcommands below this one, as its help lists them.
fn subcommands(world: &World, words: &[&str]) -> Vec<String> {
    let help = world.run(&[words, &["--help"]].concat()).out;
    let listed = help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.trim().is_empty()).filter(|line| line.starts_with("  "));
    let names = names.filter(|line| !line.starts_with("    ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command that does something itself.
fn leaves(world: &World, words: &[&str]) -> Vec<String> {
    let below = subcommands(world, words);
    if below.is_empty() {
        return vec![words.join(" ")];
    }
    below.iter().flat_map(|name| leaves(world, &[words, &[name.as_str()]].concat())).collect()
}

#[test]
fn every_command_prints_json_in_one_way_or_is_a_documented_exception() {
    let world = World::new().file("script.toml", "[[turns]]\ntext = \"Done.\"\n").file("elsewhere/x", "");
    let commands: BTreeSet<String> = leaves(&world, &[]).into_iter().collect();
    assert!(commands.len() > 30, "the walk found {commands:?}");
    let known = CALLS.iter().map(|(command, _)| *command).chain(EXCEPTIONS.iter().copied()).chain(["serve"]);
    assert_eq!(commands, known.map(str::to_owned).collect(), "each command is tried here or is an exception");

    let readme = include_str!("../../../../README.md");
    let documented = readme.split("## Output for programs").nth(1).expect("the README says how");
    for name in EXCEPTIONS {
        assert!(documented.contains(&format!("`{name}`")), "the README lists `{name}`");
    }
    world.run(&["call", "write", r#"{"path":"new.txt","content":"x"}"#]);
    for (command, args) in CALLS {
        let words: Vec<&str> = command.split(' ').collect();
        let said = world.run(&[&["--json"], &words[..], args].concat());
        let values: Vec<Value> = said
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{command}: no JSON: {line}\n{said:?}")))
            .collect();
        assert!(!values.iter().any(Value::is_array), "{command}: a list has one value a line: {said:?}");
        if values.is_empty() && !(said.code == 0 && MAY_BE_EMPTY.contains(command)) {
            let error: Value = serde_json::from_str(said.err.lines().last().unwrap_or_default())
                .unwrap_or_else(|_| panic!("{command} printed no JSON at all: {said:?}"));
            assert_ne!(said.code, 0, "{command}");
            assert!(error["error"]["code"].is_string() && error["error"]["message"].is_string(), "{command}: {error}");
        }
    }
}

#[test]
fn a_server_says_in_json_where_it_listens() {
    let world = World::new();
    let args = ["--json", "serve", "--listen", "127.0.0.1:0"];
    let mut child = world.command(PROGRAM).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(serde_json::from_str::<Value>(&line).unwrap()["listening"].is_string(), "{line}");
}
