//! Ordinary commands, each run twice: by plain bash in a copy of the workspace, and by the tool `shell`. Exit code, output and the
//! tree that is left have to be the same, for root and for an ordinary user, on overlays and in place. What differs is in
//! `known_differences.toml` with its reason; a difference that isn't listed fails, and so does a listed one that is gone.
//!
//! A sample runs with the other tests. `cargo xtask differential` runs everything.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod corpus;
mod known_differences;
mod tree;
mod twin_workspaces;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use corpus::CorpusCommand;
use known_differences::KnownDifferences;
use toolgate_testkit::skip;
use twin_workspaces::{Setting, TwinWorkspaces};

/// Set to `full`: every command in every setting.
const EXTENT: &str = "TOOLGATE_DIFFERENTIAL";

/// Set to a text: the commands that contain it, in every setting.
const ONLY: &str = "TOOLGATE_DIFFERENTIAL_ONLY";

/// Of the sample, every so manieth command runs, each in one of the settings.
const SAMPLED: usize = 12;

/// Workspaces that are used side by side.
const WORKERS: usize = 2;

#[test]
fn commands_do_inside_what_they_do_outside() {
    let corpus = corpus::read();
    let known = KnownDifferences::read(&corpus);
    let only = std::env::var(ONLY).unwrap_or_default();
    let is_full = std::env::var(EXTENT).is_ok_and(|extent| extent == "full") || !only.is_empty();
    let wanted: Vec<&CorpusCommand> = corpus.iter().filter(|command| command.line.contains(&only)).collect();
    let chosen: Vec<(Setting, &CorpusCommand)> = match is_full {
        true => Setting::all().flat_map(|setting| wanted.iter().map(move |command| (setting, *command))).collect(),
        false => {
            let sampled = corpus.iter().step_by(SAMPLED).enumerate();
            sampled.map(|(number, command)| (Setting::numbered(number), command)).collect()
        }
    };
    let faults = Mutex::new(Vec::new());
    for setting in Setting::all() {
        if !setting.can_be_tried() {
            skip("not-root", "only root can become another user");
            continue;
        }
        let of_setting: Vec<&CorpusCommand> =
            chosen.iter().filter(|(own, _)| *own == setting).map(|(_, command)| *command).collect();
        run_all(setting, &of_setting, &known, &faults);
    }
    let faults = faults.into_inner().unwrap();
    let count = faults.len();
    assert!(faults.is_empty(), "{count} of {} commands:\n\n{}", chosen.len(), faults.join("\n\n"));
}

/// Runs the commands of one setting, several at a time.
fn run_all(setting: Setting, commands: &[&CorpusCommand], known: &KnownDifferences, faults: &Mutex<Vec<String>>) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(commands.len()) {
            scope.spawn(|| {
                let twins = TwinWorkspaces::new(setting);
                while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(program) = command.missing_program() {
                        skip("program-missing", &format!("`{program}` isn't installed"));
                        continue;
                    }
                    let difference = twins.compare(&command.line);
                    faults.lock().unwrap().extend(fault(setting, &command.line, difference, known));
                }
            });
        }
    });
}

/// What is wrong about a command: a difference that isn't listed, or a listed one that isn't there.
fn fault(setting: Setting, line: &str, difference: Option<String>, known: &KnownDifferences) -> Option<String> {
    let name = setting.name();
    match (difference, known.reason(setting, line)) {
        (None, None) | (Some(_), Some(_)) => None,
        (Some(difference), None) => Some(format!("[{name}] {line}\n{difference}")),
        (None, Some(reason)) => Some(format!("[{name}] {line}\nis listed as different, and isn't: {reason}")),
    }
}
