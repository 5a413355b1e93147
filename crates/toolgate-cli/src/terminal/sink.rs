//! Shows messages from tools and output of commands, as they arrive.

use std::io::{IsTerminal, Write};

use std::sync::atomic::{AtomicBool, Ordering};

use toolgate_contract::{Event, EventPayload, Message, ProcessOutput, Stream, counted};
use toolgate_runtime::EventSink;

use super::{BOLD, DIM, level, paint, plain};
use crate::output::{err, errln, out};

/// Prints messages to standard error, so that standard output has only the tool's result. Command output is printed as
/// it arrives, if a person sees it.
pub(crate) struct TerminalSink {
    live: bool,
    has_shown_output: AtomicBool,
}

impl TerminalSink {
    /// A sink that prints JSON for a program, or text for a person.
    pub(crate) fn new(json: bool) -> Self {
        let live = !json && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Self { live, has_shown_output: AtomicBool::new(false) }
    }

    /// Whether command output was shown as it arrived.
    pub(crate) fn has_shown_output(&self) -> bool {
        self.has_shown_output.load(Ordering::Relaxed)
    }
}

impl EventSink for TerminalSink {
    fn live(&self, event: &Event) {
        if let (EventPayload::ProcessOutput(output), true) = (&event.payload, self.live) {
            self.has_shown_output.store(true, Ordering::Relaxed);
            show_output(output);
        }
    }

    fn event(&self, event: &Event) {
        if let EventPayload::Display(message) = &event.payload {
            show_message(message);
        }
    }
}

fn show_output(output: &ProcessOutput) {
    if output.skipped > 0 {
        errln!("{}", paint(DIM, format!("… {} came too fast and were skipped", counted(output.skipped, "byte"))));
    }
    // Carriage returns and colours are escaped too; to see them, the person can attach to the process.
    let text = plain(&output.text.replace("\r\n", "\n"));
    match output.stream {
        Stream::Stdout => out!("{text}"),
        Stream::Stderr => err!("{text}"),
    }
    let _ = std::io::stdout().flush();
}

fn show_message(message: &Message) {
    let (mark, style) = level(message.level);
    let mark = paint(style, mark);
    let title = message.title.as_ref().map(|title| format!("{}  ", paint(BOLD, plain(title)))).unwrap_or_default();
    let content = plain(&message.content).replace('\n', "\n  ");
    errln!("{mark} {title}{content}");
    if let Some(thought) = &message.thought {
        errln!("  {}", paint(DIM, plain(thought).replace('\n', "\n  ")));
    }
    for evidence in &message.evidence {
        errln!("  {} {}", paint(DIM, "–"), paint(DIM, plain(evidence)));
    }
}
