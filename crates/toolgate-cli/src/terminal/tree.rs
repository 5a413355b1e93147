//! Draws the tree of a run: turns, calls, what was decided, what was said.

use toolgate_contract::Message;
use toolgate_journal::{Approval, CallNode, Status, Tree, Turn};

use super::{BOLD, DIM, GREEN, RED, YELLOW, decision, level, paint, plain};

/// Draws a run.
pub(crate) fn show_tree(tree: &Tree) {
    let facts = tree.facts.as_ref();
    let from = facts.map(|facts| format!("{}, preset {}", facts.front_end, facts.preset)).unwrap_or_default();
    let state = if tree.ended.is_some() { "" } else { ", not ended" };
    anstream::println!("{} {}", paint(BOLD, &tree.run), paint(DIM, format!("({from}{state})")));
    for (index, turn) in tree.turns.iter().enumerate() {
        let is_last = index + 1 == tree.turns.len();
        match turn.number {
            Some(number) => {
                anstream::println!("{} turn {number}", branch(is_last));
                show_turn(turn, if is_last { "   " } else { "│  " }, true);
            }
            None => show_turn(turn, "", is_last),
        }
    }
}

fn show_turn(turn: &Turn, indent: &str, is_last_turn: bool) {
    let count = turn.calls.len() + turn.messages.len();
    let calls = turn.calls.iter().map(call_line);
    let messages = turn.messages.iter().map(|message| (message_line(message), Vec::new()));
    for (index, (line, below)) in calls.chain(messages).enumerate() {
        let is_last = is_last_turn && index + 1 == count;
        anstream::println!("{indent}{} {line}", branch(is_last));
        for detail in below {
            anstream::println!("{indent}{} {detail}", if is_last { "    " } else { "│   " });
        }
    }
}

fn branch(is_last: bool) -> &'static str {
    if is_last { "└──" } else { "├──" }
}

/// One line for the call and one for each thing worth knowing about it.
fn call_line(call: &CallNode) -> (String, Vec<String>) {
    let status = match &call.status {
        Status::Ok => paint(GREEN, "✓"),
        Status::Failed(code) => paint(RED, format!("✗ {code}")),
        Status::Running => paint(YELLOW, "… running"),
    };
    let time = call.duration_ms.map(|ms| paint(DIM, format!(" {ms} ms"))).unwrap_or_default();
    let line = format!("{} {status}{time}", paint(BOLD, plain(&call.tool)));
    let mut below = Vec::new();
    if let (Some(decided), Some(rule)) = (call.decision, &call.rule) {
        below.push(format!(
            "{} {}",
            decision(decided),
            paint(DIM, format!("by {} ({})", plain(&rule.rule), rule.layer))
        ));
    }
    below.extend(call.approval.as_ref().map(approval_line));
    below.extend(call.messages.iter().map(message_line));
    (line, below)
}

fn approval_line(approval: &Approval) -> String {
    match approval {
        Approval::Asked { .. } => paint(YELLOW, "asked, nobody answered"),
        Approval::Granted { scope, by } => {
            let by = by.as_ref().map(|by| format!(" by {}", plain(by))).unwrap_or_default();
            format!("{}{by} {}", paint(GREEN, "approved"), paint(DIM, format!("for {}", scope_word(*scope))))
        }
        Approval::Denied { by, reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
            format!("{} by {}{reason}", paint(RED, "refused"), plain(by))
        }
    }
}

fn scope_word(scope: toolgate_contract::Scope) -> &'static str {
    match scope {
        toolgate_contract::Scope::Call => "this call",
        toolgate_contract::Scope::Run => "this run",
        toolgate_contract::Scope::Session => "this session",
        toolgate_contract::Scope::Always => "always",
    }
}

fn message_line(message: &Message) -> String {
    let (mark, style) = level(message.level);
    let first = message.content.lines().next().unwrap_or_default();
    let title = message.title.as_ref().map(|title| format!("{}  ", plain(title))).unwrap_or_default();
    format!("{} {title}{}", paint(style, mark), plain(first))
}
