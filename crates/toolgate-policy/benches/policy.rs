//! Decisions per second over the table of commands, with a thousand rules loaded, beside `bash -n` (which only parses)
//! and, where it is installed, `codex execpolicy check`. The peers are programs, so each is timed with its start.

// A benchmark starts its peers, and has nobody to document it for.
#![allow(clippy::disallowed_methods, missing_docs)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolgate_contract::{Declaration, Effect, Form, Layer, Located, Permission, Risk, schemars::Schema};
use toolgate_policy::{Config, Ground, LayerInput, Policy, Question, compile};

const ROUNDS: usize = 20;
const RULES: usize = 1_000;
/// How many commands the peers are given.
const PEER_COMMANDS: usize = 60;

#[derive(Deserialize)]
struct Table {
    commands: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    run: String,
}

fn main() {
    let commands = commands();
    let few: Vec<&String> = commands.iter().step_by(commands.len() / PEER_COMMANDS).collect();
    println!("{:<34} {:>10} {:>10} {:>12}", "", "median µs", "99 % µs", "per second");
    let plain = decide("no rules", &policy(0), &commands);
    decide(&format!("{RULES} rules"), &policy(RULES), &commands);
    let bash = ask_program("bash -n", &few, |command| {
        let mut bash = Command::new("bash");
        bash.args(["-n", "-c", command]);
        bash
    });
    println!("ratio to bash -n: {:.4}", plain.as_secs_f64() / bash.as_secs_f64());
    match codex() {
        Some(rules) => {
            let codex = ask_program("codex execpolicy check", &few, |command| {
                let mut codex = Command::new("codex");
                codex.args(["execpolicy", "check", "--rules", &rules, "--"]).args(command.split_whitespace());
                codex
            });
            println!("ratio to codex execpolicy check: {:.5}", plain.as_secs_f64() / codex.as_secs_f64());
        }
        None => println!("codex is not installed, so it is not compared"),
    }
}

fn commands() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/commands");
    let files = ["harmless", "confined", "dangerous", "middle"].map(|name| folder.join(format!("{name}.toml")));
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("the table is there");
        toml::from_str::<Table>(&text).expect("the table is tested").commands
    };
    files.iter().flat_map(read).map(|row| row.run).collect()
}

/// A policy with so many rules, half of them about the programs that the table uses most.
fn policy(rules: usize) -> Policy {
    let programs = ["git", "cargo", "npm", "rm", "cat", "ls", "python3", "make", "grep", "curl"];
    let rule = |number: usize| {
        let program = programs[number % programs.len()];
        match number % 2 {
            0 => format!("[[rules]]\ndecision = 'ask'\ncommand = ['{program}', 'word{number}', '*']\n"),
            _ => format!("[[rules]]\ndecision = 'deny'\ncommand = ['tool{number}', '{program}']\n"),
        }
    };
    let text: String = (0..rules).map(rule).collect();
    let config = Config::parse(&text, "bench").expect("the rules are right");
    let layer = LayerInput { layer: Layer::User, trusted: true, config, source: "bench".into() };
    compile(vec![layer]).expect("the rules are right").policy.on(Ground::new(["/home/me/project"], "/home/me"))
}

fn decide(name: &str, policy: &Policy, commands: &[String]) -> Duration {
    let shell = shell();
    let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS * commands.len());
    for _ in 0..=ROUNDS {
        for command in commands {
            let effects = [Located::nowhere(Effect::Run { command: command.clone(), workdir: ".".into() })];
            let start = Instant::now();
            std::hint::black_box(policy.judge(&Question { tool: &shell, effects: &effects, ceilings: &[] }));
            times.push(start.elapsed());
        }
    }
    // The first round warms up.
    report(name, times.split_off(commands.len()))
}

fn ask_program(name: &str, commands: &[&String], program: impl Fn(&str) -> Command) -> Duration {
    let ask = |command: &&String| {
        let start = Instant::now();
        let _ = program(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        start.elapsed()
    };
    report(name, commands.iter().map(ask).collect())
}

fn report(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let (median, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let total: Duration = times.iter().sum();
    println!(
        "{name:<34} {:>10.1} {:>10.1} {:>12.0}",
        micros(median),
        micros(late),
        times.len() as f64 / total.as_secs_f64()
    );
    median
}

/// A file with rules for codex, if codex is there.
fn codex() -> Option<String> {
    let found = Command::new("codex").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.ok().filter(|status| status.success())?;
    let file = std::env::temp_dir().join(format!("toolgate-bench-{}.rules", std::process::id()));
    let rules = "prefix_rule(pattern = [\"git\", \"push\"], decision = \"prompt\")\nprefix_rule(pattern = [\"rm\"], decision = \"forbidden\")\n";
    std::fs::write(&file, rules).ok()?;
    Some(file.display().to_string())
}

fn shell() -> Declaration {
    Declaration {
        name: "shell".into(),
        version: semver::Version::new(1, 0, 0),
        description: String::new(),
        args_schema: Schema::default(),
        return_schema: Schema::default(),
        required_permissions: vec![Permission::ProcExec],
        side_effects: vec![],
        risk: Risk::Medium,
        parallel: true,
        form: Form::Function { strict: false },
    }
}
