//! Cuts a reply's payload to the limits and stores every cut text in full. The texts share one budget: the largest are
//! cut first, to a common size, so that a long log doesn't displace a short error message. A payload with too many
//! entries or too many long texts is stored as one artifact; the reply keeps its fields and the beginning of its lists,
//! because fields such as an exit code or a handle are what the caller goes on with.

use memchr::memchr_iter;
use serde_json::{Value, json};
use toolgate_contract::{ArtifactRef, OmittedText, ToolError, Truncated};

use super::shorten_lists::{OmittedEntries, shorten_lists};
use super::{StoredRemainder, TrimLimits, TrimmedText, count_lines, fits, trim_with_rest};

/// With more texts to cut than this, the payload is stored as one artifact: nobody wants to open dozens.
const MAX_CUTS: usize = 16;
/// A text of at most so many bytes is never cut to make room for others: it may be a handle or a name.
const SHORT_TEXT: usize = 64;

/// What was cut from a payload, and where it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PayloadCut {
    /// How much is missing.
    pub truncated: Truncated,
    /// The artifacts with everything that was cut, in full.
    pub refs: Vec<ArtifactRef>,
}

/// Stores a text, given with the JSON pointer of its field, and returns its artifact; for a text that is stored already
/// and is incomplete here, also how much is missing.
type TextStore<'a> = dyn FnMut(&str, &str) -> Result<OmittedText, ToolError> + 'a;

/// Cuts `payload` to `limits`; none if it fits unchanged. Every text is passed to `store` in full before it is cut,
/// with the JSON pointer of its field; the empty pointer means the entire payload, as JSON unless it is a text itself.
/// If storing fails, the payload stays unchanged.
pub fn trim_payload(
    payload: &mut Value,
    limits: &TrimLimits,
    store: &mut TextStore<'_>,
) -> Result<Option<PayloadCut>, ToolError> {
    if TrimBudget::in_all(limits).fits(payload) {
        return Ok(None);
    }
    let survey = PayloadSurvey::of(payload, limits);
    if survey.structure > limits.bytes || survey.to_cut().count() > MAX_CUTS {
        return trim_whole(payload, limits, store).map(Some);
    }
    let mut outcome = PayloadCutBuilder::default();
    let shown = outcome.cut_texts(payload, &survey, None, store)?;
    show(payload, shown);
    Ok(outcome.finish())
}

/// Stores the entire payload as one artifact, then leaves the beginnings of its lists and cuts its texts. The fields
/// stay, whatever the size of their neighbours.
fn trim_whole(payload: &mut Value, limits: &TrimLimits, store: &mut TextStore<'_>) -> Result<PayloadCut, ToolError> {
    let full = serde_json::to_string_pretty(payload)
        .map_err(|fault| ToolError::internal(format!("The payload couldn't be written as JSON: {fault}.")))?;
    let OmittedText { artifact, .. } = store(&full, "")?;
    let whole = ArtifactRef { field: Some(String::new()), mime: "application/json".to_owned(), ..artifact };
    let mut shortened = payload.clone();
    let omitted = shorten_lists(&mut shortened, limits);
    let survey = PayloadSurvey::of(&shortened, limits);
    if survey.structure > limits.bytes || survey.to_cut().filter(|text| !text.is_in_list).count() > MAX_CUTS {
        let (preview, cut) = preview(&full, limits, whole);
        *payload = preview;
        return Ok(cut);
    }
    let mut outcome = PayloadCutBuilder::default();
    let shown = outcome.cut_texts(&shortened, &survey, Some(&whole), store)?;
    show(&mut shortened, shown);
    outcome.leave_out(&omitted);
    name_omitted(&mut shortened, &omitted);
    *payload = shortened;
    outcome.refs.insert(0, whole.clone());
    outcome.truncated.artifact = Some(whole.id);
    Ok(PayloadCut { truncated: outcome.truncated, refs: outcome.refs })
}

/// Replaces texts by what is shown of them.
fn show(payload: &mut Value, shown: Vec<(String, String)>) {
    for (pointer, text) in shown {
        if let Some(field) = payload.pointer_mut(&pointer) {
            *field = Value::String(text);
        }
    }
}

/// Says in the payload which lists are shown in part. A payload that is a list itself has no place for that.
fn name_omitted(payload: &mut Value, omitted: &[OmittedEntries]) {
    if let (Value::Object(fields), false) = (payload, omitted.is_empty()) {
        let lists = omitted.iter().map(|list| json!({ "field": list.pointer, "entries": list.entries }));
        fields.insert("omitted".to_owned(), lists.collect());
    }
}

/// Stores a text and cuts it.
fn cut(
    full: &str,
    pointer: &str,
    limits: &TrimLimits,
    store: &mut TextStore<'_>,
) -> Result<Option<(ArtifactRef, TrimmedText)>, ToolError> {
    if trim_with_rest(full, limits, &StoredRemainder::default()).is_none() {
        return Ok(None);
    }
    let OmittedText { lines, bytes, artifact } = store(full, pointer)?;
    let stored = ArtifactRef { field: Some(pointer.to_owned()), ..artifact };
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let rest = StoredRemainder { lines: size(lines), bytes: size(bytes), ..StoredRemainder::in_artifact(&stored) };
    Ok(trim_with_rest(full, limits, &rest).map(|trimmed| (stored, trimmed)))
}

/// The beginning and end of a payload's JSON, for one that has neither lists nor texts to shorten.
fn preview(full: &str, limits: &TrimLimits, whole: ArtifactRef) -> (Value, PayloadCut) {
    let mut outcome = PayloadCutBuilder::default();
    let trimmed = trim_with_rest(full, limits, &StoredRemainder::in_artifact(&whole));
    let text = trimmed.map_or_else(|| full.to_owned(), |trimmed| outcome.count(trimmed));
    outcome.truncated.artifact = Some(whole.id.clone());
    (json!({ "preview": text }), PayloadCut { truncated: outcome.truncated, refs: vec![whole] })
}

/// A [`PayloadCut`] under construction.
#[derive(Default)]
struct PayloadCutBuilder {
    truncated: Truncated,
    refs: Vec<ArtifactRef>,
}

impl PayloadCutBuilder {
    /// Cuts the texts that are too long; what is shown of each, by its pointer. Each is stored on its own, except for
    /// those in lists if the `whole` payload is stored.
    fn cut_texts(
        &mut self,
        payload: &Value,
        survey: &PayloadSurvey,
        whole: Option<&ArtifactRef>,
        store: &mut TextStore<'_>,
    ) -> Result<Vec<(String, String)>, ToolError> {
        let mut shown = Vec::new();
        for text in survey.to_cut() {
            let Some(Value::String(full)) = payload.pointer(&text.pointer) else { continue };
            let trimmed = match whole.filter(|_| text.is_in_list) {
                Some(whole) => trim_with_rest(full, &survey.caps, &StoredRemainder::in_artifact(whole)),
                None => cut(full, &text.pointer, &survey.caps, store)?.map(|(stored, trimmed)| {
                    self.refs.push(stored);
                    trimmed
                }),
            };
            shown.extend(trimmed.map(|trimmed| (text.pointer.clone(), self.count(trimmed))));
        }
        Ok(shown)
    }

    /// Counts what is missing from a text and returns the remaining text.
    fn count(&mut self, trimmed: TrimmedText) -> String {
        self.truncated.lines += trimmed.missing_lines as u64;
        self.truncated.bytes += trimmed.missing_bytes as u64;
        trimmed.text
    }

    /// Counts the entries that lists no longer have.
    fn leave_out(&mut self, omitted: &[OmittedEntries]) {
        self.truncated.lines += omitted.iter().map(|list| list.lines as u64).sum::<u64>();
        self.truncated.bytes += omitted.iter().map(|list| list.bytes as u64).sum::<u64>();
    }

    fn finish(mut self) -> Option<PayloadCut> {
        let largest = self.refs.iter().rev().max_by_key(|stored| stored.bytes)?;
        self.truncated.artifact = Some(largest.id.clone());
        Some(PayloadCut { truncated: self.truncated, refs: self.refs })
    }
}

/// One text of the payload.
struct PayloadText {
    pointer: String,
    bytes: usize,
    lines: usize,
    widest_fits: bool,
    /// Whether it is an entry of a list, or part of one.
    is_in_list: bool,
}

/// What is left of the limits while a payload is scanned. Nearly every payload fits, so this check comes first and
/// doesn't record positions.
struct TrimBudget {
    bytes: usize,
    lines: usize,
    structure: usize,
    line_chars: usize,
}

impl TrimBudget {
    fn in_all(limits: &TrimLimits) -> Self {
        Self { bytes: limits.bytes, lines: limits.lines, structure: limits.bytes, line_chars: limits.line_chars }
    }

    /// Whether this value fits into the rest of the budget, which is reduced by it.
    fn fits(&mut self, value: &Value) -> bool {
        take(&mut self.structure, STRUCTURE)
            && match value {
                Value::String(text) => {
                    take(&mut self.bytes, text.len())
                        && take(&mut self.lines, lines_of(text))
                        && all_lines_fit(text, self.line_chars)
                }
                Value::Array(items) => items.iter().all(|item| self.fits(item)),
                Value::Object(fields) => {
                    fields.iter().all(|(name, field)| take(&mut self.structure, name.len() + FIELD) && self.fits(field))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => true,
            }
    }
}

/// Subtracts `amount` if that much is left.
fn take(left: &mut usize, amount: usize) -> bool {
    let rest = left.checked_sub(amount);
    *left = rest.unwrap_or_default();
    rest.is_some()
}

/// The minimum size of a value in JSON, in bytes.
pub(super) const STRUCTURE: usize = 2;
/// The bytes of JSON around the name of a field.
pub(super) const FIELD: usize = 3;

/// The lines of a text; a text of a single line counts as none, so that long lists of names aren't counted by their
/// entries.
pub(super) fn lines_of(text: &str) -> usize {
    if text.contains('\n') { count_lines(text) } else { 0 }
}

fn all_lines_fit(text: &str, line_chars: usize) -> bool {
    if text.len() <= line_chars {
        return true;
    }
    let mut start = 0;
    let mut ends = memchr_iter(b'\n', text.as_bytes());
    ends.all(|end| fits(&text[std::mem::replace(&mut start, end + 1)..end], line_chars))
        && fits(&text[start..], line_chars)
}

/// The texts and the size of a payload, and to which size its largest texts have to be cut.
struct PayloadSurvey {
    texts: Vec<PayloadText>,
    /// Bytes of JSON besides the texts, a lower bound.
    structure: usize,
    caps: TrimLimits,
    /// A text of so many bytes is never cut for its bytes.
    short: usize,
}

impl PayloadSurvey {
    fn of(payload: &Value, limits: &TrimLimits) -> Self {
        let mut survey = Self { texts: Vec::new(), structure: 0, caps: *limits, short: SHORT_TEXT.min(limits.bytes) };
        survey.visit(payload, &mut String::new(), false);
        survey.caps.bytes = common_cap(survey.texts.iter().map(|text| text.bytes), limits.bytes);
        survey.caps.lines = common_cap(survey.texts.iter().map(|text| text.lines), limits.lines);
        survey
    }

    /// The texts that don't fit.
    fn to_cut(&self) -> impl Iterator<Item = &PayloadText> {
        let bytes = self.caps.bytes.max(self.short);
        self.texts.iter().filter(move |text| text.bytes > bytes || text.lines > self.caps.lines || !text.widest_fits)
    }

    fn visit(&mut self, value: &Value, pointer: &mut String, is_in_list: bool) {
        self.structure += STRUCTURE;
        let length = pointer.len();
        match value {
            Value::String(text) => self.texts.push(PayloadText {
                pointer: pointer.clone(),
                bytes: text.len(),
                lines: lines_of(text),
                widest_fits: all_lines_fit(text, self.caps.line_chars),
                is_in_list,
            }),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.visit(item, pointer, true);
                    pointer.truncate(length);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.structure += name.len() + FIELD;
                    push_name(pointer, name);
                    self.visit(field, pointer, is_in_list);
                    pointer.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Adds the name of a field to a JSON pointer.
pub(super) fn push_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

/// The size to which the largest texts have to be cut so that all together fit in `budget`.
pub(super) fn common_cap(sizes: impl Iterator<Item = usize>, budget: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    let mut left = budget;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    budget
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolgate_contract::ErrorCode;

    use super::*;

    const LIMITS: TrimLimits = TrimLimits { lines: 100, bytes: 1000, line_chars: 200 };

    fn stored(id: String, text: &str) -> OmittedText {
        let (sha256, mime) = (String::new(), "text/plain".to_owned());
        let artifact = ArtifactRef { id, sha256, bytes: text.len() as u64, lines: None, mime, field: None };
        OmittedText { lines: 0, bytes: 0, artifact }
    }

    /// Trims into a store that numbers what it is given.
    fn trim(payload: &mut Value, limits: &TrimLimits) -> (Option<PayloadCut>, Vec<(String, String)>) {
        let mut kept: Vec<(String, String)> = Vec::new();
        let outcome = trim_payload(payload, limits, &mut |text, pointer| {
            kept.push((pointer.to_owned(), text.to_owned()));
            Ok(stored(format!("art_{}", kept.len()), text))
        });
        (outcome.unwrap(), kept)
    }

    #[test]
    fn what_fits_is_left_alone() {
        for payload in [json!({"content": "short\n", "n": [1, 2, {"a": null}]}), json!("text"), json!(null)] {
            let mut trimmed = payload.clone();
            assert_eq!(trim(&mut trimmed, &LIMITS), (None, vec![]));
            assert_eq!(trimmed, payload);
        }
    }

    #[test]
    fn the_largest_text_gives_way_and_is_stored_in_full() {
        let log = "a line of the log\n".repeat(500);
        let mut payload = json!({"std/out": log, "stderr": "error: it broke\n", "code": 1});
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        let outcome = outcome.unwrap();
        assert_eq!(kept, [("/std~1out".to_owned(), log.clone())]);
        assert_eq!(payload["stderr"], "error: it broke\n");
        let shown = payload["std/out"].as_str().unwrap();
        assert!(shown.starts_with("a line of the log\n") && shown.ends_with("a line of the log\n"));
        assert!(shown.contains("artifact art_1 has all of it") && shown.len() < 1100, "{shown}");
        assert_eq!(outcome.refs[0].field.as_deref(), Some("/std~1out"));
        assert_eq!(outcome.truncated.artifact.as_deref(), Some("art_1"));
        let whole_lines = shown.matches("a line of the log\n").count() as u64;
        assert_eq!(outcome.truncated.lines, 500 - whole_lines);
        assert_eq!(outcome.truncated.bytes, log.len() as u64 - 18 * whole_lines);
    }

    #[test]
    fn a_text_that_is_stored_already_says_how_much_is_missing_in_all() {
        let part = "a line of the log\n".repeat(500);
        let mut payload = json!({ "stdout": part });
        let mut store =
            |_: &str, _: &str| Ok(OmittedText { lines: 7000, bytes: 126_000, ..stored("art_9".into(), "") });
        let outcome = trim_payload(&mut payload, &LIMITS, &mut store).unwrap().unwrap();
        let whole_lines = payload["stdout"].as_str().unwrap().matches("a line of the log\n").count() as u64;
        assert_eq!(
            (outcome.truncated.lines, outcome.truncated.artifact.as_deref()),
            (7500 - whole_lines, Some("art_9"))
        );
        assert_eq!(outcome.truncated.bytes, 18 * (7500 - whole_lines));
    }

    #[test]
    fn two_large_texts_share_and_the_larger_is_the_artifact() {
        let mut payload = json!({"a": "x".repeat(150).repeat(20), "b": "yy\n".repeat(2000), "c": "z".repeat(100)});
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        assert_eq!(kept.len(), 2);
        assert_eq!(outcome.unwrap().truncated.artifact.as_deref(), Some("art_2"));
        assert_eq!(payload["c"], "z".repeat(100));
    }

    #[test]
    fn of_a_long_list_the_beginning_is_shown_and_everything_is_stored() {
        let original =
            json!({"entries": (0..1000).map(|n| json!({"name": format!("f{n}"), "size": n})).collect::<Vec<_>>()});
        let mut payload = original.clone();
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        let outcome = outcome.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&kept[0].1).unwrap(), original);
        assert_eq!((outcome.refs[0].mime.as_str(), outcome.refs[0].field.as_deref()), ("application/json", Some("")));
        let shown = payload["entries"].as_array().unwrap();
        assert!(shown.len() > 20 && original["entries"].as_array().unwrap().starts_with(shown), "{payload}");
        assert_eq!(payload["omitted"], json!([{"field": "/entries", "entries": 1000 - shown.len()}]));
        assert_eq!(outcome.truncated.lines, 1000 - shown.len() as u64);
        assert_eq!(outcome.truncated.artifact.as_deref(), Some("art_1"));
    }

    #[test]
    fn many_texts_to_cut_are_stored_as_one() {
        let mut payload = json!((0..40).map(|n| format!("{n} ").repeat(60)).collect::<Vec<_>>());
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        assert_eq!((outcome.unwrap().refs.len(), kept.len()), (1, 1));
        assert!(payload.to_string().len() < 1100, "{payload}");
    }

    /// Whoever gets a reply goes on with its exit code, its process or the handle of its rehearsal.
    #[test]
    fn fields_stay_however_long_their_neighbours_are() {
        let long = |of: usize| (0..of).map(|n| format!("+{}/{n}", "d".repeat(300))).collect::<Vec<_>>();
        let handle = "reh_01890a5d-ac96-774b-bcce-b302099a8057";
        for paths in [20, 50, 1000] {
            let mut payload = json!({
                "exit_code": 3, "stdout": "out\n".repeat(1000), "process": {"id": "proc_7"},
                "changes": {"created": paths, "paths": long(paths), "rehearsal": handle, "diff": "+line\n".repeat(1000)},
            });
            let (outcome, kept) = trim(&mut payload, &LIMITS);
            assert_eq!((&payload["exit_code"], &payload["process"]["id"]), (&json!(3), &json!("proc_7")));
            assert_eq!(
                (&payload["changes"]["rehearsal"], &payload["changes"]["created"]),
                (&json!(handle), &json!(paths))
            );
            let stdout = payload["stdout"].as_str().unwrap();
            assert!(stdout.starts_with("out\n") && stdout.contains("artifact art_"), "{stdout}");
            assert!(!payload["changes"]["paths"].as_array().unwrap().is_empty());
            assert!(payload.to_string().len() < 4 * LIMITS.bytes, "{payload}");
            assert_eq!((outcome.unwrap().refs.len(), kept[0].0.as_str()), (3, ""));
        }
    }

    #[test]
    fn what_has_no_lists_and_too_many_fields_becomes_a_preview() {
        let fields = (0..1000).map(|n| (format!("f{n}"), json!(n))).collect::<serde_json::Map<_, _>>();
        let mut payload = Value::Object(fields);
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        assert_eq!((outcome.unwrap().truncated.artifact.as_deref(), kept.len()), (Some("art_1"), 1));
        assert!(payload["preview"].as_str().unwrap().contains("artifact art_1 has all of it"));
    }

    #[test]
    fn if_storing_fails_nothing_is_lost() {
        let mut payload = json!({"a": "x\n".repeat(2000), "b": "y\n".repeat(2000)});
        let before = payload.clone();
        let mut calls = 0;
        let error = trim_payload(&mut payload, &LIMITS, &mut |text, pointer| {
            calls += 1;
            match calls {
                1 => Ok(stored(pointer.to_owned(), text)),
                _ => Err(ToolError::new(ErrorCode::IoError, "The disk is full.")),
            }
        });
        assert_eq!(error.unwrap_err().code, ErrorCode::IoError);
        assert_eq!(payload, before);
    }

    proptest! {
        #[test]
        fn a_common_cap_uses_the_budget_and_no_more(
            sizes in proptest::collection::vec(0..500usize, 0..20),
            budget in 0..3000usize,
        ) {
            let cap = common_cap(sizes.iter().copied(), budget);
            let total: usize = sizes.iter().map(|size| size.min(&cap)).sum();
            prop_assert!(total <= budget);
            let cut = sizes.iter().filter(|size| **size > cap).count();
            prop_assert!(cut == 0 || budget - total < cut, "what is left over is less than a byte for each");
        }

        #[test]
        fn whatever_is_cut_can_be_put_back(texts in proptest::collection::vec("([a-zä]{0,30}\n?){0,60}", 0..24)) {
            let original = json!(texts);
            let mut payload = original.clone();
            let (outcome, kept) = trim(&mut payload, &LIMITS);
            prop_assert_eq!(outcome.is_some(), payload != original);
            for (pointer, text) in kept {
                match pointer.as_str() {
                    "" => payload = serde_json::from_str(&text).unwrap(),
                    _ => *payload.pointer_mut(&pointer).unwrap() = json!(text),
                }
            }
            prop_assert_eq!(payload, original);
        }
    }
}
