//! All settings at once: each in a process of its own, which writes what it prints to a file, and one summary at the end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::setting::Setting;
use crate::world::{PROGRAM, ProgramCopy};

/// How far apart the first seeds of two settings are: no two settings try the same sequence.
const SEEDS_APART: u64 = 100_000;

/// What one setting has tried, and how it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) seconds: u64,
    pub(crate) operations: usize,
    pub(crate) first_seed: u64,
    pub(crate) sequences: u64,
    /// Each class of violations, and how many of it there were.
    pub(crate) violations: Vec<(String, usize)>,
}

/// What a process writes before its summary.
const MARK: &str = "summary: ";

impl Summary {
    /// Prints it for whoever started this process.
    pub(crate) fn print(&self) {
        println!("{MARK}{}", serde_json::to_string(self).expect("a summary can be written as JSON"));
    }

    fn read(log: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(log).ok()?;
        let line = text.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
        serde_json::from_str(line).ok()
    }

    fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.sequences > 0
    }
}

/// A setting that is being tried.
struct Trial {
    setting: Setting,
    process: Child,
    log: PathBuf,
}

impl Trial {
    fn start(index: usize, setting: Setting, first_seed: u64, program: &ProgramCopy, logs: &Path) -> Self {
        let log = logs.join(setting.name());
        let output = File::create(&log).unwrap();
        let seed = first_seed + SEEDS_APART * index as u64;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "runs::long"]).stdin(Stdio::null());
        command.env("TOOLGATE_CHAOS_SETTING", setting.name()).env("TOOLGATE_CHAOS_SEED", seed.to_string());
        command
            .env(PROGRAM, program.path())
            .env_remove("TOOLGATE_CHAOS_JOBS")
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        Self { setting, process: command.spawn().unwrap(), log }
    }

    /// Waits for its end; a line of the summary, and whether it is clean.
    fn end(mut self) -> (String, bool) {
        let status = self.process.wait().unwrap();
        let (name, log) = (self.setting.name(), self.log.display());
        let Some(summary) = Summary::read(&self.log) else {
            return (format!("{name:26} ended without a summary ({status}): {log}"), false);
        };
        let Summary { seconds, operations, first_seed, sequences, violations } = &summary;
        let (minutes, last_seed) = (seconds / 60, (first_seed + sequences).saturating_sub(1));
        let count: usize = violations.iter().map(|(_, count)| count).sum();
        let mut line = format!(
            "{name:26} {minutes:4} minutes, {operations:7} operations, seeds {first_seed} to {last_seed}, {count} violations"
        );
        for (class, count) in violations {
            line += &format!("\n    {count} x {class}: {log}");
        }
        (line, summary.is_clean() && status.success())
    }
}

/// Tries these settings, so many at a time, and prints one line about each at the end.
pub(crate) fn run(settings: &[Setting], jobs: usize, first_seed: u64) {
    let logs = tempfile::Builder::new().prefix("chaos-logs-").disable_cleanup(true).tempdir().unwrap();
    println!("{} settings, {jobs} at a time; what each prints is in {}", settings.len(), logs.path().display());
    // All try the same program, also if somebody builds it anew meanwhile.
    let program = ProgramCopy::shared();
    let mut lines = Vec::new();
    for (batch, group) in settings.chunks(jobs).enumerate() {
        let start = |(index, setting): (usize, &Setting)| {
            Trial::start(batch * jobs + index, *setting, first_seed, &program, logs.path())
        };
        let trials: Vec<Trial> = group.iter().enumerate().map(start).collect();
        lines.extend(trials.into_iter().map(Trial::end));
    }
    lines.iter().for_each(|(line, _)| println!("{line}"));
    let failed = lines.iter().filter(|(_, is_clean)| !is_clean).count();
    assert_eq!(failed, 0, "of {} settings that aren't clean", lines.len());
}
