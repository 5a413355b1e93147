//! `toolgate policy`: how a call would be judged, and why.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_contract::{
    Call, Decision, Declaration, Effect, Finding, Form, Located, Permission, Risk, SideEffect, Verdict, schemars,
    strict_json,
};
use toolgate_policy::{ExampleResult, Question};
use toolgate_runtime::Judgement;

use super::Setting;
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, GREEN, RED, decision, paint, plain};
use crate::wiring::Desk;

/// Judge without running.
///
/// Examples:
///   toolgate policy check 'git status'
///   toolgate policy check --tool read '{"path":".env"}'
///   toolgate policy explain --tool read '{"path":"src"}'
///   toolgate policy test
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Policy {
    #[command(subcommand)]
    verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
enum PolicyVerb {
    /// Print the decision as the first word. Exit code 0 for allow, 4 for ask, 3 for deny.
    Check(Subject),
    /// Show every part: effects, the rule that decided, the rules that lost.
    Explain(Subject),
    /// Check the examples of every rule in every layer.
    Test,
}

#[derive(Debug, Args)]
struct Subject {
    /// A command line; with --tool, the tool's arguments as JSON.
    input: String,
    /// Judge a call of this tool instead of a command.
    #[arg(long)]
    tool: Option<String>,
}

impl Policy {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let desk = Desk::open(&setting.place)?;
        match self.verb {
            PolicyVerb::Check(subject) => {
                let judgement = subject.judge(&desk)?;
                print_short(&judgement.verdict, setting.json)?;
                Ok(exit(judgement.verdict.decision))
            }
            PolicyVerb::Explain(subject) => {
                let judgement = subject.judge(&desk)?;
                print_long(&judgement, setting.json)?;
                Ok(exit(judgement.verdict.decision))
            }
            PolicyVerb::Test => test(&desk, setting.json),
        }
    }
}

impl Subject {
    fn judge(&self, desk: &Desk) -> Result<Judgement> {
        match &self.tool {
            Some(tool) => {
                let args = strict_json::parse(self.input.as_bytes())?;
                Ok(desk.gate.judge(&Call::new(tool, args, desk.clock.as_ref()), &[])?)
            }
            None => Ok(judge_command(desk, &self.input)),
        }
    }
}

/// A command is judged as the shell would be asked to run it, in the workspace.
fn judge_command(desk: &Desk, command: &str) -> Judgement {
    let effect = Effect::Run { command: command.to_owned(), workdir: ".".into() };
    let effects = vec![Located::nowhere(effect)];
    let shell = Declaration {
        name: "shell".into(),
        version: semver::Version::new(1, 0, 0),
        description: "Runs a command.".into(),
        args_schema: schemars::Schema::default(),
        return_schema: schemars::Schema::default(),
        required_permissions: vec![Permission::ProcExec],
        side_effects: vec![SideEffect::StartsProcesses],
        risk: Risk::Medium,
        parallel: false,
        form: Form::Function { strict: false },
    };
    let verdict = desk.gate.policy().judge(&Question { tool: &shell, effects: &effects, ceilings: &[] });
    Judgement { effects, verdict }
}

fn exit(decision: Decision) -> Exit {
    match decision {
        Decision::Allow => Exit::Ok,
        Decision::Ask => Exit::ApprovalNeeded,
        Decision::Deny => Exit::Denied,
    }
}

fn print_short(verdict: &Verdict, as_json: bool) -> Result<()> {
    match as_json {
        true => anstream::println!("{}", serde_json::to_string(verdict)?),
        false => anstream::println!("{} {}", decision(verdict.decision), plain(&verdict.decided_by.reason)),
    }
    Ok(())
}

fn print_long(judgement: &Judgement, as_json: bool) -> Result<()> {
    let verdict = &judgement.verdict;
    if as_json {
        let effects: Vec<&Effect> = judgement.effects.iter().map(|located| &located.effect).collect();
        anstream::println!("{}", json!({ "effects": effects, "verdict": verdict }));
        return Ok(());
    }
    anstream::println!("{}", decision(verdict.decision));
    for located in &judgement.effects {
        anstream::println!("├── {}{}", paint(BOLD, plain(&located.effect.to_string())), leads_to(located));
    }
    show_finding("└── decided by", &verdict.decided_by);
    for ask in verdict.asks.iter().filter(|ask| **ask != verdict.decided_by) {
        show_finding("    also asks", ask);
    }
    for lost in &verdict.lost {
        show_finding("    lost", lost);
    }
    Ok(())
}

/// Where a link leads, when it leads elsewhere.
fn leads_to(located: &Located) -> String {
    match (&located.written, &located.real) {
        (Some(written), Some(real)) if written != real => paint(DIM, format!(" → {}", plain(&real.path))),
        _ => String::new(),
    }
}

fn show_finding(label: &str, finding: &Finding) {
    let about = finding.effect.as_ref().map(|effect| format!(" on {}", plain(&effect.to_string()))).unwrap_or_default();
    anstream::println!(
        "{label} {}: {}{} {}",
        decision(finding.decision),
        plain(&finding.name.rule),
        paint(DIM, about),
        paint(DIM, format!("({})", finding.name.layer)),
    );
    anstream::println!("    {}", plain(&finding.reason));
}

fn test(desk: &Desk, as_json: bool) -> Result<Exit> {
    let examples = desk.gate.policy().examples();
    let failed = examples.iter().filter(|example| !holds(example)).count();
    for example in &examples {
        match as_json {
            true => anstream::println!("{}", example_json(example)),
            false => show_example(example),
        }
    }
    if !as_json {
        anstream::println!("{} examples, {failed} failed", examples.len());
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

/// Whether a rule does with its example what it says.
pub(super) fn holds(example: &ExampleResult) -> bool {
    example.matched == example.expected
}

fn example_json(example: &ExampleResult) -> serde_json::Value {
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

fn show_example(example: &ExampleResult) {
    let mark = if holds(example) { paint(GREEN, "✓") } else { paint(RED, "✗") };
    let verb = if example.expected { "matches" } else { "doesn't match" };
    let origin = paint(DIM, format!("({}, {})", example.name.layer, example.source));
    anstream::println!("{mark} {} {verb} {} {origin}", plain(&example.name.rule), paint(BOLD, plain(&example.example)));
}
