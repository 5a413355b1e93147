//! What Codex shows of a command that ran or still runs.

use crate::dialect::Returned;
use crate::shell::{both_streams, command_notes};

/// Output as it is shown: both streams, then what else the model has to know.
pub(super) fn noted_output(returned: &Returned<'_>) -> String {
    let notes = command_notes(returned).into_iter().map(|note| format!("\n{note}\n"));
    both_streams(returned) + &notes.collect::<String>()
}

/// Tokens of a text, roughly: a token has four bytes.
fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// The form of `exec_command` and `write_stdin`: a head with the state, then the output.
pub(super) fn chunk(returned: &Returned<'_>, state: &str) -> String {
    let output = noted_output(returned);
    let cut = returned.reply.truncated.as_ref().map_or(0, |cut| cut.bytes);
    let count = tokens(output.len() as u64 + cut);
    let id = chunk_id(&returned.reply.tool_call_id);
    let warning = returned.artifact().map_or_else(String::new, |artifact| {
        let lines = total_lines(returned, &output);
        format!(
            "Warning: truncated output (original token count: {count}); the artifact {artifact} has all of it\n\
             Total output lines: {lines}\n\n"
        )
    });
    format!(
        "Chunk ID: {id}\nWall time: {:.4} seconds\n{state}\nOriginal token count: {count}\nOutput:\n{warning}{output}",
        wall_time(returned)
    )
}

/// Lines of the whole output, of which some may have been cut.
pub(super) fn total_lines(returned: &Returned<'_>, output: &str) -> u64 {
    let shown = output.lines().count() as u64;
    // One line of what is left says that something was cut.
    returned.reply.truncated.as_ref().map_or(shown, |cut| (shown + cut.lines).saturating_sub(1))
}

/// Seconds that the command took.
pub(super) fn wall_time(returned: &Returned<'_>) -> f64 {
    let milliseconds = returned.field("duration_ms").as_u64().unwrap_or(returned.reply.duration_ms);
    milliseconds as f64 / 1000.0
}

/// Six hexadecimal digits that name this piece of output.
fn chunk_id(call: &str) -> String {
    let digits: Vec<char> = call.chars().filter(char::is_ascii_hexdigit).collect();
    digits[digits.len().saturating_sub(6)..].iter().collect()
}
