//! Decisions per second over the table of commands, with a thousand rules loaded, compared with `bash -n` (which only
//! parses) and, if installed, `codex execpolicy check`. These are programs, so each measurement includes their start.

// A benchmark starts its peers, and has nobody to document it for.
#![allow(clippy::disallowed_methods, missing_docs)]

#[path = "../tests/reading/world.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod world;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolgate_policy::Policy;

const ROUNDS: usize = 20;
const RULES: [usize; 3] = [10, 100, 1_000];
/// How many commands the other programs are given.
const PEER_COMMANDS: usize = 60;

fn main() {
    let commands = world::commands();
    let few: Vec<&String> = commands.iter().step_by(commands.len() / PEER_COMMANDS).collect();
    println!("{:<34} {:>10} {:>10} {:>12}", "", "median µs", "99 % µs", "per second");
    let plain = decide("no rules", &policy(0), &commands);
    let ruled = RULES.map(|rules| decide(&format!("{rules} rules"), &policy(rules), &commands));
    let bash = ask_program("bash -n", &few, |command| {
        let mut bash = Command::new("bash");
        bash.args(["-n", "-c", command]);
        bash
    });
    let ratio = plain.as_secs_f64() / bash.as_secs_f64();
    println!("a decision ÷ bash -n: {ratio:.4} x   (wanted: at most 0.01)");
    for (rules, time) in RULES.into_iter().zip(ruled) {
        let growth = time.as_secs_f64() / plain.as_secs_f64();
        println!("a decision with {rules} rules ÷ with none: {growth:.2} x   (wanted: reported)");
    }
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

/// A policy with this many rules, half of them about the programs that the table uses most.
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
    world::policy(&text)
}

fn decide(name: &str, policy: &Policy, commands: &[String]) -> Duration {
    let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS * commands.len());
    for _ in 0..=ROUNDS {
        for command in commands {
            let start = Instant::now();
            std::hint::black_box(world::judge(policy, command));
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

/// A file with rules for codex, if codex is installed.
fn codex() -> Option<String> {
    let found = Command::new("codex").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.ok().filter(|status| status.success())?;
    let file = std::env::temp_dir().join(format!("toolgate-bench-{}.rules", std::process::id()));
    let rules = "prefix_rule(pattern = [\"git\", \"push\"], decision = \"prompt\")\nprefix_rule(pattern = [\"rm\"], decision = \"forbidden\")\n";
    std::fs::write(&file, rules).ok()?;
    Some(file.display().to_string())
}
