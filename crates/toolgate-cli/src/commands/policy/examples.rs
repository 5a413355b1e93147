//! `toolgate policy test`: checks every rule against its examples.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_policy::ExampleResult;
use toolgate_workspace::Workspace;

use toolgate_contract::counted;

use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, DIM, GREEN, RED, paint, plain};

/// Built-in examples are checked too, and shown only where they fail.
#[derive(Debug, Args)]
pub(super) struct PolicyTestArgs {
    /// Show passing built-in examples as well.
    #[arg(long)]
    all: bool,
}

impl PolicyTestArgs {
    pub(super) fn run(self, workspace: &Workspace, as_json: bool) -> Result<Exit> {
        let examples = workspace.gate.policy().examples();
        let failed = examples.iter().filter(|example| !holds(example)).count();
        let is_own = |example: &&ExampleResult| example.source != toolgate_policy::BUILT_IN;
        for example in examples.iter().filter(|example| self.all || is_own(example) || !holds(example)) {
            match as_json {
                true => outln!("{}", as_value(example)),
                false => show(example),
            }
        }
        if !as_json {
            let own = examples.iter().filter(is_own).count();
            outln!("{} of yours, {} built in, {failed} failed", counted(own, "example"), examples.len() - own);
        }
        Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
    }
}

/// Whether a rule passes its example.
pub(in crate::commands) fn holds(example: &ExampleResult) -> bool {
    example.matched == example.expected
}

fn as_value(example: &ExampleResult) -> serde_json::Value {
    json!({
        "ok": holds(example),
        "rule": example.name.rule,
        "layer": example.name.layer,
        "source": example.source,
        "example": example.example,
        "expected": example.expected,
        "matched": example.matched,
    })
}

fn show(example: &ExampleResult) {
    let mark = if holds(example) { paint(GREEN, "✓") } else { paint(RED, "✗") };
    let verb = if example.expected { "matches" } else { "doesn't match" };
    let origin = paint(DIM, format!("({}, {})", example.name.layer, example.source));
    outln!("{mark} {} {verb} {} {origin}", plain(&example.name.rule), paint(BOLD, plain(&example.example)));
}
