//! Prints a reply for a person: the result on standard output, everything about it on standard error.

use serde_json::Value;

use toolgate_contract::{Reply, SettledChanges, counted};

use super::fields::show_fields;
use super::settled_changes::show_settled_changes;
use super::{BLUE, DIM, diff_line, paint, plain, print_tool_error};
use crate::output::{err, errln, out, outln};

/// Where a reply comes from, for hints on how to continue.
pub(crate) struct ReplyContext<'a> {
    /// The run that stores its artifacts.
    pub(crate) run: &'a str,
    /// How the program is invoked here.
    pub(crate) toolgate: String,
}

/// Shows a reply; `output_was_shown` says that a command's output is already on the screen.
pub(crate) fn show_reply(reply: &Reply, context: &ReplyContext<'_>, output_was_shown: bool) {
    match &reply.payload {
        Some(payload) if output_was_shown && payload.get("exit_code").is_some() => show_end(payload),
        Some(payload) => show_payload(payload),
        None => {}
    }
    let changes = reply.payload.as_ref().and_then(|payload| payload.get("changes"));
    if let Some(settled) = changes.and_then(|changes| serde_json::from_value::<SettledChanges>(changes.clone()).ok()) {
        show_settled_changes(&settled, &context.toolgate);
    }
    if let Some(error) = &reply.error {
        print_tool_error(error);
    }
    for note in notes(reply, context) {
        errln!("{}", paint(DIM, note));
    }
}

/// Prints the main text or list of a payload, or else every field.
fn show_payload(payload: &Value) {
    if let Some(stdout) = payload.get("stdout").and_then(Value::as_str) {
        return show_command(stdout, payload);
    }
    let list = |field: &str| payload.get(field).and_then(Value::as_array);
    let text = |field: &str| payload.get(field).and_then(Value::as_str);
    if let Some(text) = text("content").or(text("screen")) {
        let text = plain(text);
        out!("{text}{}", if text.ends_with('\n') || text.is_empty() { "" } else { "\n" });
        fetched(payload).iter().for_each(|note| errln!("{}", paint(DIM, note)));
        rest_of_page(payload).iter().for_each(|note| errln!("{}", paint(DIM, note)));
        // What is to be known of a result of another server, such as that a tool which only reads has written.
        list("notes")
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .for_each(|note| errln!("{}", paint(DIM, plain(note))));
        show_denied(payload);
    } else if let Some(entries) = list("entries") {
        entries.iter().for_each(show_entry);
    } else if let Some(matches) = list("matches") {
        matches.iter().for_each(show_match);
        say_if_empty(matches);
    } else if let Some(diff) = text("diff") {
        diff.lines().for_each(|line| outln!("{}", diff_line(line)));
    } else if let Some(paths) = list("paths").or(list("files")) {
        if payload.get("total").is_none() {
            say_if_empty(paths);
        }
        paths.iter().for_each(show_file);
        uses(payload).iter().for_each(|note| errln!("{}", paint(DIM, note)));
    } else {
        show_fields(payload);
    }
}

fn say_if_empty(found: &[Value]) {
    if found.is_empty() {
        let ignored = "what `.gitignore` names and files that hold secrets weren't searched";
        errln!("{}", paint(DIM, format!("nothing was found; {ignored}")));
    }
}

/// Where a page of a file ends, if more follows.
fn rest_of_page(payload: &Value) -> Option<String> {
    let has_more = payload.get("has_more").and_then(Value::as_bool)?;
    let end = payload.get("end_line").and_then(Value::as_i64).filter(|end| has_more && *end > 0)?;
    let total = payload.get("total_lines").and_then(Value::as_u64).map(|total| format!(" of {total}"));
    let total = total.unwrap_or_default();
    Some(format!("stopped after line {end}{total}; continue with \"offset\": {}", end + 1))
}

/// A path, or the lines of a file in which a symbol is used, as `grep -n` shows them.
fn show_file(file: &Value) {
    let path = one_line(file.as_str().or(file["path"].as_str()).unwrap_or_default());
    match file.get("uses").and_then(Value::as_array) {
        Some(uses) => {
            let lines = uses.iter().filter_map(Value::as_str);
            lines.for_each(|line| outln!("{}:{}", paint(BLUE, &path), one_line(line)));
        }
        None => outln!("{path}"),
    }
}

/// How many uses of a symbol there are altogether, and how its server is.
fn uses(payload: &Value) -> Option<String> {
    let total = payload.get("total")?.as_u64()?;
    let words = |field: &str| payload.get(field).and_then(Value::as_str).map(plain);
    Some(format!("{}; {} is {}", counted(total, "use"), words("server")?, words("server_status")?))
}

/// Prints a command's output, each stream to our own; a nonzero exit code goes to standard error.
fn show_command(stdout: &str, payload: &Value) {
    let line_end = |text: &str| if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    let stdout = plain(stdout);
    out!("{stdout}{}", line_end(&stdout));
    let stderr = plain(payload.get("stderr").and_then(Value::as_str).unwrap_or_default());
    err!("{stderr}{}", line_end(&stderr));
    show_end(payload);
}

/// How a command ended, unless it succeeded.
fn show_end(payload: &Value) {
    match payload.get("exit_code").and_then(Value::as_i64) {
        _ if payload.get("running").and_then(Value::as_bool) == Some(true) => {
            errln!("{}", paint(DIM, "stopped: its process ends with this program; use `toolgate serve` to keep it"))
        }
        Some(0) | None => {}
        Some(124) if payload.get("timed_out").is_some() => {
            errln!("{}", paint(DIM, "stopped: it timed out"))
        }
        Some(code) => errln!("{}", paint(DIM, format!("exit code {code}"))),
    }
    show_denied(payload);
}

/// What the sandbox kept from a command or a server.
fn show_denied(payload: &Value) {
    let denied = payload.get("denied").and_then(Value::as_array).into_iter().flatten();
    for denied in denied {
        let words = |field: &str| denied.get(field).and_then(Value::as_str).map(plain);
        words("reason").iter().for_each(|reason| errln!("{}", paint(DIM, reason)));
        words("next").iter().for_each(|next| errln!("{}", paint(DIM, format!("  next: {next}"))));
    }
}

/// A response besides its text: status, type, size, and the artifact if it isn't text.
fn fetched(payload: &Value) -> Option<String> {
    let number = |field: &str| payload.get(field).and_then(Value::as_u64);
    let words = |field: &str| payload.get(field).and_then(Value::as_str).map(plain);
    let kind = words("content_type").map(|kind| format!(", {kind}")).unwrap_or_default();
    let stored = words("artifact").map(|id| format!("; not text, stored as {id}")).unwrap_or_default();
    Some(format!("status {}{kind}, {}{stored}", number("status")?, counted(number("bytes")?, "byte")))
}

/// A match as `grep -n` shows it, with the lines around it.
fn show_match(found: &Value) {
    let path = one_line(found.get("path").and_then(Value::as_str).unwrap_or_default());
    let line = found.get("line").and_then(Value::as_u64).unwrap_or_default();
    let around = |field: &str| -> Vec<&str> {
        found.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let before = around("before");
    let first = line.saturating_sub(before.len() as u64);
    for (number, text) in (first..).zip(before) {
        outln!("{}", paint(DIM, format!("{path}-{number}-{}", plain(text))));
    }
    let text = found.get("text").and_then(Value::as_str).unwrap_or_default();
    outln!("{}:{line}:{}", paint(BLUE, &path), plain(text));
    for (number, text) in (line + 1..).zip(around("after")) {
        outln!("{}", paint(DIM, format!("{path}-{number}-{}", plain(text))));
    }
}

/// A path on one line, whatever it contains.
fn one_line(path: &str) -> String {
    plain(path).replace('\n', "\\n")
}

fn show_entry(entry: &Value) {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let path = one_line(text("path"));
    let size = entry.get("size").and_then(Value::as_u64).map(|size| size.to_string()).unwrap_or_default();
    match text("kind") {
        "folder" => outln!("{:>12}  {}", "", paint(BLUE, format!("{path}/"))),
        "link" => outln!("{:>12}  {path} {}", "", paint(DIM, "(link)")),
        _ => outln!("{size:>12}  {path}"),
    }
}

fn notes(reply: &Reply, context: &ReplyContext<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cut) = &reply.truncated {
        if cut.lines > 0 || cut.bytes > 0 {
            notes.push(format!("not shown: {}, {}", counted(cut.lines, "line"), counted(cut.bytes, "byte")));
        }
        if let Some(artifact) = &cut.artifact {
            let ReplyContext { run, toolgate } = context;
            notes.push(format!("complete output: {toolgate} call --run {run} artifact '{{\"id\":\"{artifact}\"}}'"));
        }
        if let Some(cursor) = &cut.next_cursor {
            notes.push(format!("there is more; continue with \"cursor\": {}", Value::from(cursor.as_str())));
        }
    }
    if reply.redacted {
        notes.push("secrets were replaced by ***REDACTED***".into());
    }
    notes
}
