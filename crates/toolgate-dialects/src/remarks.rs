//! What a reply says beside the result itself: errors that a change caused, what the sandbox denied, what is missing. A client's own form of
//! a result has no place for most of it, and a model has to know it all the same.

use serde_json::{Value, json};
use toolgate_contract::{Reply, counted};

use crate::dialect::{Dialect, DialectTool, ResultFormat, ShownResult};

impl Dialect {
    /// The result with all remarks of these replies that it doesn't have yet.
    pub(crate) fn with_remarks<'a>(
        &self,
        shown: ShownResult,
        tool: &DialectTool,
        replies: impl Iterator<Item = &'a Reply>,
    ) -> ShownResult {
        let mut untold: Vec<String> = Vec::new();
        for remark in replies.flat_map(remarks) {
            let text = self.own_words(&tool.own_switches(&remark.text));
            if !remark.is_told_in(&shown.text, self.format) && !untold.contains(&text) {
                untold.push(text);
            }
        }
        if untold.is_empty() { shown } else { self.added(shown, untold) }
    }

    fn added(&self, mut shown: ShownResult, untold: Vec<String>) -> ShownResult {
        match self.format {
            ResultFormat::Text => untold.iter().for_each(|remark| shown.text += &format!("\n({remark})")),
            ResultFormat::Json { notes } => {
                if let Ok(mut object) = serde_json::from_str::<Value>(&shown.text) {
                    let place = notes.iter().fold(&mut object, |place, name| &mut place[*name]);
                    let told = place.take();
                    *place = list(&told).iter().cloned().chain(untold.into_iter().map(Value::from)).collect();
                    shown.text = object.to_string();
                }
            }
        }
        shown
    }
}

/// A remark, and the part of a payload that says the same.
struct Remark {
    text: String,
    said_by: String,
}

impl Remark {
    fn is_told_in(&self, shown: &str, format: ResultFormat) -> bool {
        let is_there = |text: &str| !text.is_empty() && shown.contains(text);
        is_there(&self.said_by)
            || match format {
                ResultFormat::Text => is_there(&self.text),
                // In JSON a text has its escapes.
                ResultFormat::Json { .. } => is_there(json!(self.text).to_string().trim_matches('"')),
            }
    }
}

fn remarks(reply: &Reply) -> Vec<Remark> {
    let fields = reply.payload.as_ref().and_then(Value::as_object);
    let mut remarks: Vec<Remark> = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        for text in of_field(name, value) {
            remarks.push(Remark { text, said_by: format!("\"{name}\":{value}") });
        }
    }
    let artifact = reply.truncated.as_ref().and_then(|cut| cut.artifact.as_deref());
    remarks.extend(artifact.map(|id| Remark {
        text: format!("More of this is in the artifact {id}, which the tool `artifact` reads."),
        said_by: id.to_owned(),
    }));
    remarks
}

/// What a field of a payload remarks, whichever tool's it is.
fn of_field(name: &str, value: &Value) -> Vec<String> {
    let count = || value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    match name {
        "note" => value.as_str().map(str::to_owned).into_iter().collect(),
        "notes" | "decoys" => texts(value),
        "new_errors" => new_errors(value).into_iter().collect(),
        "denied" => list(value).iter().flat_map(denial).collect(),
        "changes" => changes(value),
        "output_limit" if *value == true => vec!["It was stopped, as it wrote more output than is allowed.".to_owned()],
        "unreadable" => {
            count().map(|count| format!("{} couldn't be read.", counted(count, "directory"))).into_iter().collect()
        }
        "cut_bytes" => count()
            .map(|count| format!("{} of very long lines aren't shown.", counted(count, "byte")))
            .into_iter()
            .collect(),
        "replaced" => count()
            .map(|count| format!("{} invalid in the file's encoding: each is shown as U+FFFD.", places(count)))
            .into_iter()
            .collect(),
        "complete" if *value == false => vec!["This isn't all of it: it is longer than what is loaded.".to_owned()],
        "omitted" => list(value).iter().filter_map(omitted).collect(),
        _ => Vec::new(),
    }
}

fn places(count: usize) -> String {
    if count == 1 { "1 place is".to_owned() } else { format!("{count} places are") }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Errors that language servers found since the change.
fn new_errors(errors: &Value) -> Option<String> {
    let line = |error: &Value| {
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        format!("\n{}:{}: {}", text("path"), error["line"], text("message"))
    };
    let lines: String = list(errors).iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("Errors that weren't there before this change:{lines}"))
}

/// What the sandbox denied, and what to do instead.
fn denial(denied: &Value) -> Vec<String> {
    ["reason", "next"].iter().filter_map(|name| denied[*name].as_str().map(str::to_owned)).collect()
}

/// What came of the changes of a command, but for the changes themselves.
fn changes(changes: &Value) -> Vec<String> {
    let kept = list(&changes["kept_aside"]).iter().map(|kept| {
        let text = |name: &str| kept[name].as_str().unwrap_or_default();
        format!("`{}` was quarantined, not written to the workspace: {}.", text("path"), text("reason"))
    });
    let more = changes["more_kept_aside"].as_u64().filter(|more| *more > 0);
    let more = more.map(|more| format!("{more} more were quarantined."));
    let refused = texts(&changes["refused"]);
    let refused = (!refused.is_empty()).then(|| format!("It couldn't change: {}.", refused.join(", ")));
    texts(&changes["notes"]).into_iter().chain(kept).chain(more).chain(refused).collect()
}

/// What the model has to know of a command beside its output.
pub(crate) fn of_command(payload: &Value) -> Vec<String> {
    ["denied", "changes"].into_iter().flat_map(|name| of_field(name, &payload[name])).collect()
}

fn omitted(list: &Value) -> Option<String> {
    let count = usize::try_from(list["entries"].as_u64()?).ok()?;
    let name = list["field"].as_str().unwrap_or_default().trim_start_matches('/');
    Some(format!("{} of `{name}` aren't shown.", counted(count, "more entry")))
}
