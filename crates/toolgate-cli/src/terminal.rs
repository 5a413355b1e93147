//! Output for people: coloured on a terminal, plain when piped, with the same text in both.

mod answerer;
mod approver;
mod checklist;
mod confirm;
mod event;
mod fields;
mod guarantee;
mod markdown;
mod markdown_table;
mod prompt;
mod recap;
mod reply;
mod reporter;
mod running_calls;
mod screen;
mod settled_changes;
mod sink;
mod table;
mod task_progress;
mod transcript;
mod tree;
mod tree_line;
mod tty;
mod watch_screen;
mod wrap;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use toolgate_contract::{Decision, MessageLevel, Risk, ToolError, Verdict, counted};

use crate::exit::{Exit, tool_error_in};
use crate::output::errln;

pub(crate) use answerer::{TerminalAnswerer, prompt_for_answer, question_lines, show_question};
pub(crate) use approver::{
    ApproveOnce, TerminalApprover, TypedAnswer, abort_line, answer_hint, prompt_for_approval, read_answer,
    request_lines, show_request,
};
pub(crate) use checklist::checklist;
pub(crate) use confirm::confirm;
pub(crate) use event::{event_line, event_line_of};
pub(crate) use guarantee::{guarantee, holding_mark};
pub(crate) use recap::recap;
pub(crate) use reply::{ReplyContext, show_reply};
pub(crate) use reporter::{ExclusivePrompt, JsonReporter, ReportStyle, Reporter};
pub(crate) use running_calls::elapsed;
pub(crate) use screen::{BEGIN_UPDATE, END_UPDATE, LiveArea, LiveScreen, colored, rows};
pub(crate) use settled_changes::{MOST_LINES, how_to_commit, show_quarantined, would_change};
pub(crate) use sink::TerminalSink;
pub(crate) use table::TextTable;
pub(crate) use task_progress::TaskProgress;
pub(crate) use transcript::message as said;
pub(crate) use tree::show_tree;
pub(crate) use tree_line::TreeLine;
pub(crate) use tty::{Keyboard, RawMode, TerminalInput, stdout_size};
pub(crate) use watch_screen::{WatchScreen, prompt_line};
pub(crate) use wrap::wrapped;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = color(AnsiColor::Red);
pub(crate) const GREEN: Style = color(AnsiColor::Green);
pub(crate) const YELLOW: Style = color(AnsiColor::Yellow);
pub(crate) const BLUE: Style = color(AnsiColor::Cyan);

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}

/// Text in a style; `anstream` removes the style where it can't be shown.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Text from a model or a file, with control characters made visible, so that it can't manipulate the terminal.
pub(crate) fn plain(text: &str) -> String {
    let is_tricky = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_direction_mark(c);
    if !text.contains(is_tricky) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_tricky(c) { format!("\\u{{{:x}}}", c as u32) } else { c.to_string() }).collect()
}

/// Bidirectional control characters, which can make text look different from what it is.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number with grouped digits.
pub(crate) fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// So many of a thing, with grouped digits.
pub(crate) fn grouped_count(number: u64, thing: &str) -> String {
    counted(number, thing).replacen(&number.to_string(), &grouped(number), 1)
}

/// The first line of a text, with a sign if there are more.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = plain(lines.next().unwrap_or_default());
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// A time in UTC, to the minute.
pub(crate) fn to_the_minute(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Prints what went wrong, why, and what to do next.
pub(crate) fn print_error(error: &anyhow::Error) {
    match tool_error_in(error) {
        Some(error) => print_tool_error(error),
        None => errln!("{} {}", paint(RED.bold(), "error:"), causes(error)),
    }
}

/// Prints for programs what went wrong: one line of JSON, on standard error like every error.
pub(crate) fn print_error_as_json(error: &anyhow::Error, exit: Exit) {
    let described = match tool_error_in(error) {
        Some(error) => json!(error),
        None => json!({ "code": exit.code_name(), "message": causes(error) }),
    };
    errln!("{}", json!({ "error": described }));
}

/// An error and its causes, without repetition.
fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        words if words.contains(&cause) => said,
        words => format!("{}: {cause}", words.trim_end_matches('.')),
    })
}

/// Prints a tool's error.
pub(crate) fn print_tool_error(error: &ToolError) {
    let head = paint(RED.bold(), format!("error[{}]:", error.code));
    errln!("{head} {}", plain(&error.message));
    if let Some(rule) = error.details.as_ref().and_then(|details| details.get("rule")?.as_str()) {
        let layer = error.details.as_ref().and_then(|details| details.get("layer")?.as_str()).unwrap_or_default();
        errln!("  {} {} {}", paint(BLUE, "rule:"), plain(rule), paint(DIM, format!("({layer})")));
    }
    if let Some(hint) = &error.hint {
        errln!("  {} {}", paint(BLUE, "next:"), plain(hint));
    }
    // What a command wrote until it was stopped.
    for name in ["stdout", "stderr"] {
        if let Some(output) = error.details.as_ref().and_then(|details| details.get(name)?.as_str()) {
            errln!("  {}", paint(BLUE, format!("{name}:")));
            errln!("{}", plain(output.trim_end_matches('\n')));
        }
    }
}

/// A decision in its colour.
pub(crate) fn decision(decision: Decision) -> String {
    let style = match decision {
        Decision::Allow => GREEN,
        Decision::Ask => YELLOW,
        Decision::Deny => RED,
    };
    paint(style.bold(), decision)
}

/// A verdict as one word in its colour.
pub(crate) fn verdict_word(verdict: &Verdict) -> String {
    decision_word(verdict.decision, verdict.confined)
}

/// The word of a decision: `allow-confined` is an allow that requires the sandbox.
fn decision_word(decided: Decision, confined: bool) -> String {
    match decided {
        Decision::Allow if confined => paint(GREEN.bold(), "allow-confined"),
        other => decision(other),
    }
}

/// A risk in its colour.
pub(crate) fn risk(risk: Risk) -> String {
    match risk {
        Risk::Low => paint(GREEN, "low"),
        Risk::Medium => paint(YELLOW, "medium"),
        Risk::High => paint(RED, "high"),
    }
}

/// A line of a unified diff in its colour.
pub(crate) fn diff_line(line: &str) -> String {
    let style = match line.as_bytes().first() {
        Some(b'+') => GREEN,
        Some(b'-') => RED,
        Some(b'@') => BLUE,
        _ => DIM,
    };
    paint(style, plain(line))
}

fn level(level: MessageLevel) -> (&'static str, Style) {
    match level {
        MessageLevel::Info => ("•", BLUE),
        MessageLevel::Success => ("✓", GREEN),
        MessageLevel::Warning => ("!", YELLOW),
        MessageLevel::Error => ("✗", RED),
        MessageLevel::Progress => ("…", DIM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do_by_a_model() {
        assert_eq!(plain("line\n\tnext"), "line\n\tnext");
        assert_eq!(plain("\u{1b}[2Jgone"), "\\u{1b}[2Jgone");
        assert_eq!(plain("a\rb\u{202e}c"), "a\\u{d}b\\u{202e}c");
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0_u64, 999, 1_000, 5_000_000].map(grouped), ["0", "999", "1,000", "5,000,000"]);
        assert_eq!([1, 1_200].map(|count| grouped_count(count, "token")), ["1 token", "1,200 tokens"]);
    }

    #[test]
    fn a_text_of_several_lines_is_shown_by_its_first() {
        assert_eq!(first_line("one"), "one");
        assert_eq!(first_line("\none\n"), "one");
        assert_eq!(first_line("one\ntwo"), "one …");
    }
}
