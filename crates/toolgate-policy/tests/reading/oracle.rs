//! What is judged plain reading changes nothing: every such command of the tables, of the fuzzer and of a generator is
//! run by real bash in a throw-away root, which must be the same afterwards. A misreading is found by machine.
#![allow(clippy::disallowed_methods, reason = "runs commands in a root of their own, to see what they do")]

mod generator;
mod throwaway_root;

use std::collections::BTreeSet;

use toolgate_policy::Policy;

use crate::nonsense::{Random, mutated};
use crate::skip::skip;
use crate::world::{commands, judge, policy, word};
use generator::{Grammar, examples};
use throwaway_root::{is_possible, that_change_something};

/// How many commands share a root.
const BATCH: usize = 150;

/// How many generated commands to run: a few by default, as many as `TOOLGATE_ORACLE` says in a longer run.
fn wanted() -> usize {
    std::env::var("TOOLGATE_ORACLE").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000)
}

/// Where the generator begins; another number makes other commands.
fn seed() -> u64 {
    std::env::var("TOOLGATE_ORACLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x2545_f491_4f6c_dd1d)
}

/// Commands with which a root is spoilt for the others, or that don't end by themselves.
fn is_left_out(command: &str) -> bool {
    command.contains('\0') || ["tail -f", "tail -F", "sleep ", "watch "].iter().any(|word| command.contains(word))
}

fn is_plain_reading(policy: &Policy, command: &str) -> bool {
    !is_left_out(command) && word(&judge(policy, command)) == "allow"
}

/// Runs all commands, on two threads, and fails with those that changed something.
fn assert_that_none_changes_anything(commands: &BTreeSet<String>) {
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let batches: Vec<&[&str]> = commands.chunks(BATCH).collect();
    let (first, second) = batches.split_at(batches.len() / 2);
    let run = |batches: &[&[&str]]| batches.iter().flat_map(|batch| that_change_something(batch)).collect::<Vec<_>>();
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        let mut found = run(first);
        found.extend(other.join().expect("no panic"));
        found
    });
    let shown: Vec<String> =
        found.iter().map(|(command, changed)| format!("{command}\n    {}", changed.join("\n    "))).collect();
    println!("{} commands were run, {} changed something", commands.len(), found.len());
    assert!(found.is_empty(), "{} of {} are misread:\n{}", found.len(), commands.len(), shown.join("\n"));
}

/// Whether roots can be made; if not, the test is left out.
fn has_roots() -> bool {
    let possible = is_possible();
    if !possible {
        skip("no-user-namespaces", "this machine lets no user make namespaces, so there is no throw-away root");
    }
    possible
}

#[test]
fn the_root_shows_every_kind_of_change() {
    if !has_roots() {
        return;
    }
    for command in [
        "touch new",
        "touch /tmp/new",
        "mkdir sub/new",
        "rm a.txt",
        "mv a.txt c.txt",
        "echo x >> a.txt",
        "chmod 600 a.txt",
        "chmod 700 src",
        "ln -s a.txt link",
        "touch -d 2020-01-03 a.txt",
        "./evil",
        "evil",
        "git commit --allow-empty -m x",
        "git config --global a.b c",
        "[ $x ]",
        "tar tfI a.tar ./evil",
        "git apply p",
    ] {
        let found = that_change_something(&["ls", command, "pwd"]);
        assert!(matches!(&found[..], [(culprit, _)] if culprit == command), "{command}: {found:?}");
    }
    assert_eq!(that_change_something(&["ls", "cat *", "git status", "git log", "tar tf a.tar"]), []);
}

#[test]
fn what_the_tables_call_plain_reading_changes_nothing() {
    if !has_roots() {
        return;
    }
    let policy = policy("preset = 'read-only'");
    let all = commands().into_iter().chain(examples());
    let plain: BTreeSet<String> = all.filter(|command| is_plain_reading(&policy, command)).collect();
    assert!(plain.len() > 600, "{}", plain.len());
    assert_that_none_changes_anything(&plain);
}

#[test]
fn what_is_generated_and_judged_plain_reading_changes_nothing() {
    if !has_roots() {
        return;
    }
    let (policy, grammar, seeds) = (policy("preset = 'read-only'"), Grammar::new(), commands());
    let mut random = Random(seed());
    let mut plain = BTreeSet::new();
    while plain.len() < wanted() {
        let command = match random.below(6) {
            0 => mutated(&mut random, &seeds),
            _ => grammar.command(&mut random),
        };
        if is_plain_reading(&policy, &command) {
            plain.insert(command);
        }
    }
    println!("made of {} programs and subcommands", grammar.size());
    assert_that_none_changes_anything(&plain);
}
