//! Asks for approval in the terminal: shows what the call would do and what each answer would grant; the person types
//! one letter.

use std::io::IsTerminal;

use toolgate_contract::{ApprovalScope, BoxFuture, CancellationToken};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver};

use super::prompt::{TerminalPrompt, read_line};
use super::{BOLD, DIM, GREEN, RED, YELLOW, diff_line, paint, plain, risk, wrapped};
use crate::output::{err, errln};

/// Asks the person at the terminal.
pub(crate) struct TerminalApprover {
    /// Their name, for the record.
    pub(crate) by: String,
}

impl TerminalApprover {
    /// Whether there is a terminal: questions go to standard error, answers come from standard input.
    pub(crate) fn is_possible() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let (request, by) = (request.clone(), self.by.clone());
            let question = TerminalPrompt::open();
            let withdrawn = question.withdrawn.clone();
            // Reading a line blocks, so it runs on a separate thread; a cancelled call doesn't wait for it.
            let asked = tokio::task::spawn_blocking(move || ask_person(&request, by, &withdrawn));
            let answer = asked.await.unwrap_or(ApprovalAnswer::Nobody);
            question.close();
            answer
        })
    }
}

/// `--approve`: the person has already approved this one call.
pub(crate) struct ApproveOnce {
    /// Their name, for the record.
    pub(crate) by: String,
}

impl Approver for ApproveOnce {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: self.by.clone() }))
    }
}

/// Asks now, and blocks until there is an answer.
pub(crate) fn prompt_for_approval(request: &ApprovalRequest, by: String) -> ApprovalAnswer {
    ask_person(request, by, &CancellationToken::new())
}

fn ask_person(request: &ApprovalRequest, by: String, withdrawn: &CancellationToken) -> ApprovalAnswer {
    show_request(request);
    loop {
        err!("{} {} ", paint(BOLD, "Your answer:"), paint(DIM, "(a letter, then Enter)"));
        let Some(line) = read_line(withdrawn) else { return ApprovalAnswer::Nobody };
        match read_answer(line.trim(), request) {
            Some(TypedAnswer::Yes(scope)) => return ApprovalAnswer::Granted { scope, by },
            Some(TypedAnswer::No) => return ApprovalAnswer::Denied { by, reason: reason(withdrawn) },
            Some(TypedAnswer::Abort) => return ApprovalAnswer::Aborted { by, reason: reason(withdrawn) },
            None => errln!("Please type one of the letters in brackets, then Enter."),
        }
    }
}

/// Why a person says no, if they say so.
fn reason(withdrawn: &CancellationToken) -> Option<String> {
    err!("{} ", paint(DIM, "Why not? (shown to the model; may be empty)"));
    read_line(withdrawn).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    /// It may run, and how far that extends.
    Yes(ApprovalScope),
    /// It may not.
    No,
    /// It may not, and the run ends.
    Abort,
}

/// Parses a letter; only offered answers count.
pub(crate) fn read_answer(line: &str, request: &ApprovalRequest) -> Option<TypedAnswer> {
    let word = line.to_lowercase();
    if matches!(word.as_str(), "n" | "no") {
        return Some(TypedAnswer::No);
    }
    if matches!(word.as_str(), "x" | "abort") {
        return Some(TypedAnswer::Abort);
    }
    let scope = [ApprovalScope::Call, ApprovalScope::Run, ApprovalScope::Session, ApprovalScope::Always]
        .into_iter()
        .find(|&scope| [key(scope), name(scope)].contains(&word.as_str()))?;
    request.offers(scope).then_some(TypedAnswer::Yes(scope))
}

fn key(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Call => "y",
        ApprovalScope::Run => "r",
        ApprovalScope::Session => "s",
        ApprovalScope::Always => "a",
    }
}

fn name(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Call => "yes",
        ApprovalScope::Run => "run",
        ApprovalScope::Session => "session",
        ApprovalScope::Always => "always",
    }
}

/// The column at which what an answer grants begins.
const OFFERS_AT: usize = 15;

/// Shows everything that a person needs to decide.
pub(crate) fn show_request(request: &ApprovalRequest) {
    request_lines(request).iter().for_each(|line| errln!("{line}"));
    errln!("{}", abort_line());
}

/// The answer that ends the run.
pub(crate) fn abort_line() -> String {
    let abort = paint(RED.bold(), "[x]");
    let ends = "no, and end this run: its other calls are cancelled, and no more are made";
    format!("  {abort} {:<8} {}", "abort", wrapped(ends, OFFERS_AT))
}

/// Everything that a person needs to decide, with the answers that every front end offers. A conversation is interrupted
/// rather than aborted, since its run goes on with the next message.
pub(crate) fn request_lines(request: &ApprovalRequest) -> Vec<String> {
    let field = |name: &str, value: String| format!("  {:<10} {value}", paint(DIM, format!("{name:<10}")));
    let mut lines =
        vec![String::new(), format!("{} {}", paint(YELLOW.bold(), "May this run?"), paint(BOLD, plain(&request.tool)))];
    lines.push(field("risk", risk(request.risk)));
    lines.push(field("why asked", plain(&request.reason)));
    if let Some(words) = &request.justification {
        lines.push(field("model says", plain(words).replace('\n', " ")));
    }
    lines.push(field("arguments", plain(&request.args.to_string())));
    for effect in &request.effects {
        lines.push(field("will", plain(&effect.to_string()).replace('\n', "\\n")));
    }
    if let Some(diff) = &request.preview {
        lines.push(String::new());
        lines.extend(diff.lines().map(|line| format!("  {}", diff_line(line))));
    }
    lines.push(String::new());
    for offer in &request.scopes {
        let grants = wrapped(&plain(&offer.grants), OFFERS_AT);
        let letter = paint(GREEN.bold(), format!("[{}]", key(offer.scope)));
        lines.push(format!("  {letter} {:<8} {grants}", name(offer.scope)));
    }
    lines.push(format!("  {} no", paint(RED.bold(), "[n]")));
    lines
}

/// The keys that answer a request, in one line.
pub(crate) fn answer_hint(request: &ApprovalRequest) -> String {
    let yes = request.scopes.iter().map(|offer| format!("{} {}", key(offer.scope), name(offer.scope)));
    let keys: Vec<String> = yes.chain(["n no".to_owned()]).collect();
    format!("{} {}", paint(YELLOW.bold(), "May this run?"), paint(BOLD, keys.join(" · ")))
}
