//! `toolgate policy explain`: shows a call as a tree, with the decision about each part.

use std::iter::Peekable;
use std::slice;

use anyhow::Result;
use serde_json::{Value, json};
use toolgate_contract::{Effect, Finding, LocatedEffect};
use toolgate_policy::{ExplainedCommand, Explanation};
use toolgate_runtime::Judgement;
use toolgate_workspace::Workspace;

use super::{JudgedInput, exit, judge_command};
use crate::exit::Exit;
use crate::output::{out, outln};
use crate::terminal::{BOLD, DIM, TreeLine, YELLOW, decision, paint, plain, verdict_word};

pub(super) fn run(subject: &JudgedInput, workspace: &Workspace, as_json: bool) -> Result<Exit> {
    let judgement = subject.judge(workspace)?;
    let read = match subject.tool {
        Some(_) => None,
        None => Some(workspace.gate.policy().explain(&subject.input, &subject.workdir)),
    };
    match as_json {
        true => outln!("{}", as_value(&judgement, read.as_ref())),
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
    let effect = |located: &LocatedEffect| {
        TreeLine::leaf(format!("{}{}", paint(BOLD, one_line(&located.effect.to_string())), leads_to(located)))
    };
    let mut nodes: Vec<TreeLine> = judgement.effects.iter().map(effect).collect();
    if let (Some(read), Some(command)) = (read, nodes.last_mut()) {
        let fault = read.fault.as_ref();
        let fault = fault.map(|fault| paint(YELLOW, format!("it can't be parsed: {}", plain(fault))));
        command.details.extend(fault);
        command.below = part_nodes(&mut read.parts.iter().peekable(), 0, judgement, judge_alone);
    }
    nodes.push(finding_node("decided by", &verdict.decided_by));
    let asks = verdict.asks.iter().filter(|ask| **ask != verdict.decided_by);
    nodes.extend(asks.map(|ask| finding_node("also asks", ask)));
    nodes.extend(verdict.lost.iter().map(|lost| finding_node("overruled", lost)));
    outln!("{}", verdict_word(verdict));
    out!("{}", TreeLine::drawn(&nodes));
}

/// The simple commands of one level, each with those that it runs.
fn part_nodes(
    parts: &mut Peekable<slice::Iter<'_, ExplainedCommand>>,
    level: usize,
    judgement: &Judgement,
    judge_alone: &dyn Fn(&ExplainedCommand) -> String,
) -> Vec<TreeLine> {
    let mut nodes = Vec::new();
    while let Some(part) = parts.next_if(|part| part.level >= level) {
        let mut node = part_node(part, judgement, &judge_alone(part));
        node.below = part_nodes(parts, part.level + 1, judgement, judge_alone);
        nodes.push(node);
    }
    nodes
}

/// One simple command: its text, its effects, and the decisions about those.
fn part_node(part: &ExplainedCommand, judgement: &Judgement, alone: &str) -> TreeLine {
    let text = if part.text.is_empty() { "(redirection)".to_owned() } else { one_line(&part.text) };
    let directory = part.workdir.as_deref().filter(|directory| *directory != ".");
    let directory = directory.map(|directory| paint(DIM, format!(" in {}", plain(directory)))).unwrap_or_default();
    let own = Effect::Run { command: part.text.clone(), workdir: part.workdir.clone().unwrap_or_default() };
    let found_here = found(judgement, &own);
    let decided = if found_here.is_empty() { alone } else { &found_here };
    let line = format!("{}{directory}{decided}", paint(BOLD, text));
    let effects =
        part.effects.iter().map(|effect| format!("{}{}", one_line(&effect.to_string()), found(judgement, effect)));
    let mut details: Vec<String> = effects.chain(part.needs.iter().map(|need| format!("needs {need}"))).collect();
    if part.runs_code {
        details.push("runs code that can't be seen beforehand".to_owned());
    }
    details.extend(part.unclear.iter().map(|unclear| paint(YELLOW, format!("unknown: {}", plain(unclear)))));
    TreeLine { line, details, below: Vec::new() }
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

/// A rule's opinion: what it decided, by which rule of which layer, about what and why.
fn finding_node(label: &str, finding: &Finding) -> TreeLine {
    let rule = plain(&finding.name.rule);
    let line = format!(
        "{label}: {} by {rule} {}",
        decision(finding.decision),
        paint(DIM, format!("({})", finding.name.layer))
    );
    let about = finding.effect.as_ref().map(|effect| paint(DIM, format!("on {}", one_line(&effect.to_string()))));
    let details = about.into_iter().chain([plain(&finding.reason)]).collect();
    TreeLine { line, details, below: Vec::new() }
}
