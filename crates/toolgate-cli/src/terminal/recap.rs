//! The end of an earlier conversation, shown when it goes on: what was said, and what the calls came to.

use toolgate_contract::{Event, EventPayload, counted};

use super::markdown::MarkdownRenderer;
use super::transcript::{Transcript, message};
use super::{DIM, paint};

/// How much of it is shown.
const LINES: usize = 30;

/// The last lines of what these events tell, at this width.
pub(crate) fn recap(events: &[Event], width: usize) -> Vec<String> {
    let (mut transcript, mut markdown) = (Transcript::default(), MarkdownRenderer::default());
    let mut lines = Vec::new();
    for event in events {
        // The first agent's own text is left to the Markdown below.
        let told = transcript.lines(event, true, width);
        match &event.payload {
            EventPayload::TurnStarted => {}
            EventPayload::AgentStarted { objective, parent: None, .. } => {
                lines.extend([String::new(), message(objective), String::new()]);
            }
            EventPayload::ModelSaid { text, .. } if told.is_empty() => {
                lines.extend(text.trim().lines().flat_map(|line| markdown.line(line, width)));
                lines.extend(markdown.end(width));
            }
            _ => lines.extend(told),
        }
    }
    let lines: Vec<String> = lines.iter().flat_map(|line| line.split('\n')).map(str::to_owned).collect();
    let above = lines.len().saturating_sub(LINES);
    let note = (above > 0).then(|| paint(DIM, format!("({} above)", counted(above as u64, "line"))));
    note.into_iter().chain(lines.into_iter().skip(above)).collect()
}
