//! The calls that run: how long, and the last line of their output.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::screen::{shortened, visible_width};
use super::{DIM, paint, plain};

/// How many running calls are shown.
const SHOWN: usize = 6;
/// Calls that are over sooner aren't shown as running, so that the terminal doesn't flicker.
const SHORTEST: Duration = Duration::from_millis(150);
/// How much of a last line is kept.
const LAST_LINE: usize = 400;
/// How much of a title is shown, however narrow the terminal is.
const LEAST_TITLE: usize = 12;
/// The marks of a call that runs, one after the other.
const MARKS: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The calls that run, by their ids.
#[derive(Default)]
pub(crate) struct RunningCalls(HashMap<String, RunningCall>);

struct RunningCall {
    title: String,
    began: Instant,
    /// The last line of output that has text, and what came after it.
    last: String,
    rest: String,
}

impl RunningCalls {
    pub(crate) fn begin(&mut self, id: &str, title: String) {
        let call = RunningCall { title, began: Instant::now(), last: String::new(), rest: String::new() };
        self.0.insert(id.to_owned(), call);
    }

    /// The title of the call, which has ended.
    pub(crate) fn end(&mut self, id: &str) -> Option<String> {
        self.0.remove(id).map(|call| call.title)
    }

    /// The call wrote output.
    pub(crate) fn output(&mut self, id: &str, text: &str) {
        let Some(call) = self.0.get_mut(id) else { return };
        for piece in text.split_inclusive(['\n', '\r']) {
            call.rest.push_str(piece);
            if piece.ends_with(['\n', '\r']) {
                let line = std::mem::take(&mut call.rest);
                if !line.trim().is_empty() {
                    call.last = line.trim().to_owned();
                }
            }
        }
        if call.rest.len() > LAST_LINE {
            call.rest = call.rest.split_off(call.rest.ceil_char_boundary(call.rest.len() - LAST_LINE));
        }
    }

    /// Whether any call runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines for the calls that run, at most this wide: each with its time, and the last line of its output below.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut calls: Vec<&RunningCall> = self.0.values().filter(|call| call.began.elapsed() >= SHORTEST).collect();
        calls.sort_by_key(|call| call.began);
        let more = calls.len().saturating_sub(SHOWN);
        let mut lines: Vec<String> = calls.into_iter().take(SHOWN).flat_map(|call| call.lines(width)).collect();
        if more > 0 {
            lines.push(paint(DIM, format!("and {more} more")));
        }
        lines
    }
}

impl RunningCall {
    fn lines(&self, width: usize) -> Vec<String> {
        let gone = self.began.elapsed();
        let mark = MARKS[(gone.as_millis() / 100) as usize % MARKS.len()];
        let head = headed(&paint(DIM, mark), &self.title, &paint(DIM, elapsed(gone)), width);
        let last = if self.rest.trim().is_empty() { &self.last } else { &self.rest };
        let last = (!last.trim().is_empty()).then(|| format!("  {}", paint(DIM, plain(last.trim()))));
        [head].into_iter().chain(last).collect()
    }
}

/// A mark, the title of a call and how it went, in one line. Where it would be too wide, the title is shortened.
pub(super) fn headed(mark: &str, title: &str, how: &str, width: usize) -> String {
    let taken = visible_width(mark) + visible_width(how) + 3;
    format!("{mark} {}  {how}", shortened(title, width.saturating_sub(taken).max(LEAST_TITLE)))
}

/// A time as a person reads it.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_text_is_kept() {
        let mut calls = RunningCalls::default();
        calls.begin("c", "shell make".into());
        let last = |calls: &RunningCalls| {
            let lines = calls.0["c"].lines(80);
            lines.get(1).map(|line| anstream::adapter::strip_str(line).to_string())
        };
        assert_eq!(last(&calls), None);
        calls.output("c", "one\ntwo\n\n");
        assert_eq!(last(&calls).as_deref(), Some("  two"));
        calls.output("c", "50 %\r");
        calls.output("c", "75 %");
        assert_eq!(last(&calls).as_deref(), Some("  75 %"));
        assert_eq!(calls.end("c").as_deref(), Some("shell make"));
        assert!(calls.is_empty());
    }

    #[test]
    fn the_time_is_seen_beside_a_long_title() {
        let line = headed("✓", &format!("shell {}", "x".repeat(100)), "10.0 s", 40);
        assert_eq!((visible_width(&line), line.ends_with("xx…  10.0 s")), (40, true), "{line}");
        assert_eq!(headed("✓", "shell true", "1 ms", 40), "✓ shell true  1 ms");
    }

    #[test]
    fn time_is_read_by_people() {
        let seconds = [5, 65, 3_725];
        assert_eq!(seconds.map(|n| elapsed(Duration::from_secs(n))), ["5 s", "1 min 05 s", "1 h 02 min"]);
    }
}
