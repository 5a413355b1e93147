//! `toolgate policy explain`: shows a call as a tree, with the decision about each part.

use anyhow::Result;
use serde_json::{Value, json};
use toolgate_contract::{Effect, Finding, LocatedEffect};
use toolgate_policy::{ExplainedCommand, Explanation};
use toolgate_runtime::Judgement;
use toolgate_workspace::Workspace;

use super::{JudgedInput, exit, judge_command};
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, YELLOW, decision, paint, plain, verdict_word};

pub(super) fn run(subject: &JudgedInput, workspace: &Workspace, as_json: bool) -> Result<Exit> {
    let judgement = subject.judge(workspace)?;
    let read = match subject.tool {
        Some(_) => None,
        None => Some(workspace.gate.policy().explain(&subject.input, &subject.workdir)),
    };
    match as_json {
        true => anstream::println!("{}", as_value(&judgement, read.as_ref())),
        false => draw(&judgement, read.as_ref(), &|part| alone(workspace, part)),
    }
    Ok(exit(&judgement.verdict))
}

fn as_value(judgement: &Judgement, read: Option<&Explanation>) -> Value {
    let effects: Vec<&Effect> = judgement.effects.iter().map(|located| &located.effect).collect();
    let part = |part: &ExplainedCommand| {
        json!({
            "command": part.text, "level": part.level, "workdir": part.workdir, "wraps": part.is_wrapper, "runs_code": part.runs_code,
            "effects": part.effects, "needs": part.needs, "unclear": part.unclear,
        })
    };
    let parts: Option<Vec<Value>> = read.map(|read| read.parts.iter().map(part).collect());
    json!({ "effects": effects, "parts": parts, "fault": read.and_then(|read| read.fault.as_deref()), "verdict": judgement.verdict })
}

/// The decision about a part by itself, for parts that the verdict doesn't mention.
fn alone(workspace: &Workspace, part: &ExplainedCommand) -> String {
    match judge_command(workspace, &part.text, part.workdir.as_deref().unwrap_or(".")) {
        Ok(judged) if !part.text.is_empty() => {
            let by = paint(DIM, format!("by {}", plain(&judged.verdict.decided_by.name.rule)));
            format!("  {} {by}", verdict_word(&judged.verdict))
        }
        _ => String::new(),
    }
}

fn draw(judgement: &Judgement, read: Option<&Explanation>, judge_alone: &dyn Fn(&ExplainedCommand) -> String) {
    let verdict = &judgement.verdict;
    anstream::println!("{}", verdict_word(verdict));
    for located in &judgement.effects {
        anstream::println!("├── {}{}", paint(BOLD, one_line(&located.effect.to_string())), leads_to(located));
    }
    if let Some(read) = read {
        if let Some(fault) = &read.fault {
            anstream::println!("│   {}", paint(YELLOW, format!("it can't be parsed: {}", plain(fault))));
        }
        read.parts.iter().for_each(|part| draw_part(part, judgement, &judge_alone(part)));
    }
    show_finding("└── decided by", &verdict.decided_by);
    for ask in verdict.asks.iter().filter(|ask| **ask != verdict.decided_by) {
        show_finding("    also asks", ask);
    }
    for lost in &verdict.lost {
        show_finding("    lost", lost);
    }
}

/// One simple command: its text, its effects, and the decisions about those.
fn draw_part(part: &ExplainedCommand, judgement: &Judgement, alone: &str) {
    let indent = format!("│   {}", "    ".repeat(part.level));
    let text = if part.text.is_empty() { "(redirection)".to_owned() } else { one_line(&part.text) };
    let directory = part.workdir.as_deref().filter(|directory| *directory != ".");
    let directory = directory.map(|directory| paint(DIM, format!(" in {}", plain(directory)))).unwrap_or_default();
    let own = Effect::Run { command: part.text.clone(), workdir: part.workdir.clone().unwrap_or_default() };
    let found_here = found(judgement, &own);
    let decided = if found_here.is_empty() { alone } else { &found_here };
    anstream::println!("{indent}├── {}{directory}{decided}", paint(BOLD, text));
    let detail = |words: String| anstream::println!("{indent}│     {words}");
    for effect in &part.effects {
        detail(format!("{}{}", one_line(&effect.to_string()), found(judgement, effect)));
    }
    for need in &part.needs {
        detail(format!("needs {need}"));
    }
    if part.runs_code {
        detail("runs code that can't be seen beforehand".to_owned());
    }
    for unclear in &part.unclear {
        detail(paint(YELLOW, format!("unknown: {}", plain(unclear))));
    }
}

/// The decision about one effect, if the verdict has one.
fn found(judgement: &Judgement, effect: &Effect) -> String {
    let verdict = &judgement.verdict;
    let findings = [&verdict.decided_by].into_iter().chain(&verdict.asks).chain(&verdict.lost);
    let about = findings.filter(|finding| finding.effect.as_ref() == Some(effect));
    match about.max_by_key(|finding| finding.decision) {
        Some(finding) => {
            format!("  {} {}", decision(finding.decision), paint(DIM, format!("by {}", plain(&finding.name.rule))))
        }
        None => String::new(),
    }
}

fn one_line(text: &str) -> String {
    plain(text).replace('\n', "\\n")
}

/// The target of a symbolic link, when it is another path.
fn leads_to(located: &LocatedEffect) -> String {
    match (&located.written, &located.real) {
        (Some(written), Some(real)) if written != real => paint(DIM, format!(" → {}", plain(&real.path))),
        _ => String::new(),
    }
}

fn show_finding(label: &str, finding: &Finding) {
    let about =
        finding.effect.as_ref().map(|effect| format!(" on {}", one_line(&effect.to_string()))).unwrap_or_default();
    anstream::println!(
        "{label} {}: {}{} {}",
        decision(finding.decision),
        plain(&finding.name.rule),
        paint(DIM, about),
        paint(DIM, format!("({})", finding.name.layer)),
    );
    anstream::println!("    {}", plain(&finding.reason));
}
