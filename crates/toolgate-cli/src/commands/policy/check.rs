//! `toolgate policy check`: prints the decision for one command or for many.

use std::io::BufRead;

use anyhow::{Context, Result, bail};
use clap::Args;
use toolgate_contract::Verdict;
use toolgate_dialects::{Dialect, clude_decision};
use toolgate_workspace::Workspace;

use super::{JudgedInput, exit, find_dialect, judge_command};
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{plain, verdict_word};

#[derive(Debug, Args)]
pub(super) struct PolicyCheckArgs {
    /// A command line; with --tool, the tool's arguments as JSON.
    #[arg(required_unless_present = "batch")]
    input: Option<String>,
    /// Judge a call of this tool instead of a command.
    #[arg(long, conflicts_with = "batch")]
    tool: Option<String>,
    /// Read commands from standard input, one per line, and print one decision per line.
    #[arg(long, conflicts_with = "input")]
    batch: bool,
    /// The directory that the command runs in.
    #[arg(long, default_value = ".", value_name = "DIR")]
    workdir: String,
    /// With --tool: take the tool and its arguments in the words of a dialect. `clude` also names the decisions in its own
    /// words: ALLOW, DENY(code, reason), REQUIRE_CONFIRMATION(scope).
    #[arg(long, value_name = "NAME", value_parser = find_dialect)]
    dialect: Option<&'static Dialect>,
}

impl PolicyCheckArgs {
    pub(super) fn run(self, workspace: &Workspace, as_json: bool) -> Result<Exit> {
        if self.batch {
            return self.run_batch(workspace, as_json);
        }
        let Some(input) = self.input else { bail!("There is no command to judge.") };
        let subject = JudgedInput { input, tool: self.tool, workdir: self.workdir, dialect: self.dialect };
        let verdict = subject.judge(workspace)?.verdict;
        print(&verdict, self.dialect, as_json)?;
        Ok(exit(&verdict))
    }

    /// A line that isn't UTF-8 gets a decision too, so that output lines match input lines.
    fn run_batch(self, workspace: &Workspace, as_json: bool) -> Result<Exit> {
        for line in std::io::stdin().lock().split(b'\n') {
            let line = line.context("standard input can't be read")?;
            let command = String::from_utf8_lossy(&line);
            print(&judge_command(workspace, &command, &self.workdir)?.verdict, self.dialect, as_json)?;
        }
        Ok(Exit::Ok)
    }
}

fn print(verdict: &Verdict, dialect: Option<&Dialect>, as_json: bool) -> Result<()> {
    let reason = plain(&verdict.decided_by.reason).replace('\n', " ");
    match (as_json, dialect.map(|dialect| dialect.name)) {
        (true, _) => outln!("{}", serde_json::to_string(verdict)?),
        (false, Some("clude")) => outln!("{}", plain(&clude_decision(verdict)).replace('\n', " ")),
        (false, _) => outln!("{} {reason}", verdict_word(verdict)),
    }
    Ok(())
}
