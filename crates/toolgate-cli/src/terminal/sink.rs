//! Shows what tools say to the person, as it comes.

use toolgate_contract::{Event, Happening, Message};
use toolgate_runtime::EventSink;

use super::{BOLD, DIM, level, paint, plain};

/// Prints messages to standard error, so that standard output stays the tool's result.
pub(crate) struct TerminalSink;

impl EventSink for TerminalSink {
    fn event(&self, event: &Event) {
        if let Happening::Display(message) = &event.happening {
            show_message(message);
        }
    }
}

fn show_message(message: &Message) {
    let (mark, style) = level(message.level);
    let mark = paint(style, mark);
    let title = message.title.as_ref().map(|title| format!("{}  ", paint(BOLD, plain(title)))).unwrap_or_default();
    let content = plain(&message.content).replace('\n', "\n  ");
    anstream::eprintln!("{mark} {title}{content}");
    if let Some(thought) = &message.thought {
        anstream::eprintln!("  {}", paint(DIM, plain(thought).replace('\n', "\n  ")));
    }
    for evidence in &message.evidence {
        anstream::eprintln!("  {} {}", paint(DIM, "–"), paint(DIM, plain(evidence)));
    }
}
