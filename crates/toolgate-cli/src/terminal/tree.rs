//! Draws a run as a tree: agents, turns, calls, decisions, messages.

use toolgate_contract::{FinishReason, Message, TokenUsage, counted};
use toolgate_journal::{AgentNode, Approval, CallNode, CallStatus, RunTree, TurnNode};

use crate::output::out;

use super::tree_line::TreeLine;
use super::{BOLD, DIM, GREEN, RED, YELLOW, decision_word, level, paint, plain};

/// Draws a run.
pub(crate) fn show_tree(tree: &RunTree) {
    // Printed at once: a tree can have a hundred thousand lines.
    out!("{}", drawn(tree));
}

fn drawn(tree: &RunTree) -> String {
    let facts = tree.facts.as_ref();
    let from = facts.map(|facts| format!("{}, preset {}", facts.front_end, facts.preset)).unwrap_or_default();
    let state = if tree.ended.is_some() { "" } else { ", not ended" };
    let head = format!("{} {}\n", paint(BOLD, &tree.run), paint(DIM, format!("({from}{state})")));
    // Events without a turn are at the root.
    let turns = tree.turns.iter().flat_map(|turn| match turn.number {
        Some(_) => vec![turn_node(turn)],
        None => turn_nodes(turn),
    });
    let nodes: Vec<TreeLine> = turns.chain(tree.agents.iter().map(agent_node)).collect();
    head + &TreeLine::drawn(&nodes)
}

fn agent_node(agent: &AgentNode) -> TreeLine {
    let finish = match agent.finish {
        Some(FinishReason::Answered) => paint(GREEN, "✓"),
        Some(other) => paint(RED, format!("✗ {other}")),
        None => paint(YELLOW, "… running"),
    };
    let used = usage(agent.tokens, agent.duration_ms);
    let id = if agent.id.is_empty() { String::new() } else { format!(" · {}", plain(&agent.id)) };
    let rest = paint(DIM, format!("{}{used}{id}", plain(&agent.model)));
    let line = format!("agent {} {finish} {rest}", paint(BOLD, plain(&agent.agent)));
    let details = [("task", Some(&agent.objective)), ("end", agent.summary.as_ref())];
    let details =
        details.into_iter().filter_map(|(name, words)| Some(format!("{} {}", paint(DIM, name), first_line(words?))));
    TreeLine { line, details: details.collect(), below: agent.turns.iter().map(turn_node).collect() }
}

fn turn_node(turn: &TurnNode) -> TreeLine {
    let used = usage(turn.tokens, turn.duration_ms);
    let line = format!("turn {}{}", turn.number.unwrap_or_default(), paint(DIM, used));
    TreeLine { line, details: Vec::new(), below: turn_nodes(turn) }
}

/// What happened in a turn.
fn turn_nodes(turn: &TurnNode) -> Vec<TreeLine> {
    let said = turn.said.iter().map(|words| TreeLine::leaf(format!("{} {}", paint(DIM, "“"), first_line(words))));
    let faults = turn.faults.iter().map(|why| TreeLine::leaf(format!("{} {}", paint(YELLOW, "!"), first_line(why))));
    let messages = turn.messages.iter().map(|message| TreeLine::leaf(message_line(message)));
    said.chain(faults).chain(turn.calls.iter().map(call_node)).chain(messages).collect()
}

fn call_node(call: &CallNode) -> TreeLine {
    let (line, details) = call_line(call);
    TreeLine { line, details, below: call.agents.iter().map(agent_node).collect() }
}

fn usage(tokens: Option<TokenUsage>, duration_ms: Option<u64>) -> String {
    let tokens =
        tokens.filter(|tokens| tokens.total() > 0).map(|tokens| format!(" {}", counted(tokens.total(), "token")));
    let time = duration_ms.map(|ms| format!(" {ms} ms"));
    format!("{}{}", tokens.unwrap_or_default(), time.unwrap_or_default())
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", plain(&line[..end])),
        None => plain(line),
    }
}

/// One line for the call and one for each detail.
fn call_line(call: &CallNode) -> (String, Vec<String>) {
    let status = match &call.status {
        CallStatus::Ok => paint(GREEN, "✓"),
        CallStatus::Failed(code) => paint(RED, format!("✗ {code}")),
        CallStatus::Running => paint(YELLOW, "… running"),
    };
    let time = call.duration_ms.map(|ms| paint(DIM, format!(" {ms} ms"))).unwrap_or_default();
    let name = match &call.hooked {
        Some(hooked) => format!("{} {}", paint(BOLD, plain(&hooked.tool)), paint(DIM, plain(&call.tool))),
        None => paint(BOLD, plain(&call.tool)),
    };
    let line = format!("{name} {status}{time}");
    let mut below = Vec::new();
    if let Some(hooked) = call.hooked.as_ref().filter(|hooked| hooked.client_executes) {
        below.push(paint(DIM, format!("judged here, executed by {}", plain(&hooked.client))));
    }
    if let (Some(decided), Some(rule)) = (call.decision, &call.rule) {
        below.push(format!(
            "{} {}",
            decision_word(decided, call.confined),
            paint(DIM, format!("by {} ({})", plain(&rule.rule), rule.layer))
        ));
    }
    below.extend(call.approval.as_ref().map(approval_line));
    below.extend(call.messages.iter().map(message_line));
    (line, below)
}

fn approval_line(approval: &Approval) -> String {
    match approval {
        Approval::Asked { .. } => paint(YELLOW, "asked, no answer"),
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

fn scope_word(scope: toolgate_contract::ApprovalScope) -> &'static str {
    match scope {
        toolgate_contract::ApprovalScope::Call => "this call",
        toolgate_contract::ApprovalScope::Run => "this run",
        toolgate_contract::ApprovalScope::Session => "this session",
        toolgate_contract::ApprovalScope::Always => "always",
    }
}

fn message_line(message: &Message) -> String {
    let (mark, style) = level(message.level);
    let first = message.content.lines().next().unwrap_or_default();
    let title = message.title.as_ref().map(|title| format!("{}  ", plain(title))).unwrap_or_default();
    format!("{} {title}{}", paint(style, mark), plain(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_drawn_beneath_the_call_that_set_it_to_work() {
        let call =
            |tool: &str, agents| CallNode { tool: tool.into(), status: CallStatus::Ok, agents, ..CallNode::default() };
        let turn = |calls| TurnNode { number: Some(1), calls, ..TurnNode::default() };
        let agent = |name: &str, calls| AgentNode {
            agent: name.into(),
            model: "scripted".into(),
            objective: "look\nwell".into(),
            finish: Some(FinishReason::Answered),
            turns: vec![turn(calls)],
            ..AgentNode::default()
        };
        let inner = agent("explore", vec![call("read", vec![])]);
        let outer = agent("main", vec![call("task", vec![inner]), call("list", vec![])]);
        let tree = RunTree { run: "run_1".into(), agents: vec![outer], ..RunTree::default() };
        let text = anstream::adapter::strip_str(&drawn(&tree)).to_string();
        let expected = "\
run_1 (, not ended)
└── agent main ✓ scripted
     task look
    └── turn 1
        ├── task ✓
        │   └── agent explore ✓ scripted
        │        task look
        │       └── turn 1
        │           └── read ✓
        └── list ✓
";
        assert_eq!(text, expected);
    }
}
