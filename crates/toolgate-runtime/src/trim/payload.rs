//! Cuts a reply's payload to the limits and stores every cut text in full. The texts share one budget: the largest are
//! cut first, to a common size, so that a long log doesn't displace a short error message. A payload whose structure is
//! too large is stored as one artifact and shown as a preview; if only one of its fields is too large, that field is.

use memchr::memchr_iter;
use serde_json::{Value, json};
use toolgate_contract::{ArtifactRef, OmittedText, ToolError, Truncated};

use super::{StoredRemainder, TrimLimits, TrimmedText, count_lines, fits, trim_with_rest};

/// With more texts to cut than this, the payload is stored as one artifact: nobody wants to open dozens.
const MAX_CUTS: usize = 16;

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
    let mut survey = PayloadSurvey::default();
    survey.visit(payload, &mut String::new(), limits.line_chars);
    let caps = TrimLimits {
        bytes: common_cap(survey.texts.iter().map(|text| text.bytes), limits.bytes),
        lines: common_cap(survey.texts.iter().map(|text| text.lines), limits.lines),
        ..*limits
    };
    let to_cut: Vec<&PayloadText> = survey.texts.iter().filter(|text| text.exceeds(&caps)).collect();
    let needs_preview = survey.structure > limits.bytes || to_cut.len() > MAX_CUTS;
    if needs_preview {
        let outcome = match largest_object(payload) {
            Some(name) => trim_apart(payload, &name, limits, store)?,
            None => preview(payload, "", limits, store)?,
        };
        if outcome.is_some() {
            return Ok(outcome);
        }
    }
    let (mut outcome, mut shown) = (PayloadCutBuilder::default(), Vec::new());
    for text in to_cut {
        if let Some(Value::String(full)) = payload.pointer(&text.pointer) {
            let cut = cut(full, &text.pointer, &caps, store)?;
            shown.extend(cut.map(|(stored, trimmed)| (&text.pointer, outcome.add(stored, trimmed))));
        }
    }
    for (pointer, text) in shown {
        if let Some(field) = payload.pointer_mut(pointer) {
            *field = Value::String(text);
        }
    }
    Ok(outcome.finish())
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
    let rest = StoredRemainder {
        advice: format!("artifact {} has all of it", stored.id),
        lines: size(lines),
        bytes: size(bytes),
    };
    Ok(trim_with_rest(full, limits, &rest).map(|trimmed| (stored, trimmed)))
}

/// The share of the limits that a field gets which is shown as a preview beside the others.
const PREVIEW_SHARE: usize = 4;

/// The field that is shown as a preview while the others stay fields: the largest object among several fields, such as the
/// changes of a command beside its exit code and output.
fn largest_object(payload: &Value) -> Option<String> {
    let fields = payload.as_object().filter(|fields| fields.len() > 1)?;
    let objects = fields.iter().filter(|(_, field)| field.is_object());
    objects.max_by_key(|(_, field)| field.to_string().len()).map(|(name, _)| name.clone())
}

/// Shows one field as a preview, and cuts the others to what is left of the limits.
fn trim_apart(
    payload: &mut Value,
    name: &str,
    limits: &TrimLimits,
    store: &mut TextStore<'_>,
) -> Result<Option<PayloadCut>, ToolError> {
    let of_field = TrimLimits { bytes: limits.bytes / PREVIEW_SHARE, lines: limits.lines / PREVIEW_SHARE, ..*limits };
    let of_others =
        TrimLimits { bytes: limits.bytes - of_field.bytes, lines: limits.lines - of_field.lines, ..*limits };
    let mut others = payload.clone();
    let mut field = others[name].take();
    let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let previewed = preview(&mut field, &pointer, &of_field, store)?;
    let cut = trim_payload(&mut others, &of_others, store)?;
    others[name] = field;
    *payload = others;
    let mut outcome = PayloadCutBuilder::default();
    for PayloadCut { truncated, refs } in previewed.into_iter().chain(cut) {
        outcome.truncated.lines += truncated.lines;
        outcome.truncated.bytes += truncated.bytes;
        outcome.refs.extend(refs);
    }
    Ok(outcome.finish())
}

/// Stores a value, which is at `pointer` of the payload, and leaves the beginning and end of its JSON.
fn preview(
    payload: &mut Value,
    pointer: &str,
    limits: &TrimLimits,
    store: &mut TextStore<'_>,
) -> Result<Option<PayloadCut>, ToolError> {
    let full = serde_json::to_string_pretty(payload)
        .map_err(|fault| ToolError::internal(format!("The payload couldn't be written as JSON: {fault}.")))?;
    let Some((stored, trimmed)) = cut(&full, pointer, limits, store)? else { return Ok(None) };
    let stored = ArtifactRef { mime: "application/json".to_owned(), ..stored };
    let mut outcome = PayloadCutBuilder::default();
    *payload = json!({ "preview": outcome.add(stored, trimmed) });
    Ok(outcome.finish())
}

/// A [`PayloadCut`] under construction.
#[derive(Default)]
struct PayloadCutBuilder {
    truncated: Truncated,
    refs: Vec<ArtifactRef>,
}

impl PayloadCutBuilder {
    /// Counts a text that was cut and returns the remaining text.
    fn add(&mut self, stored: ArtifactRef, trimmed: TrimmedText) -> String {
        self.truncated.lines += trimmed.missing_lines as u64;
        self.truncated.bytes += trimmed.missing_bytes as u64;
        self.refs.push(stored);
        trimmed.text
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
}

impl PayloadText {
    fn exceeds(&self, caps: &TrimLimits) -> bool {
        self.bytes > caps.bytes || self.lines > caps.lines || !self.widest_fits
    }
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
                    fields.iter().all(|(name, field)| take(&mut self.structure, name.len() + 3) && self.fits(field))
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
const STRUCTURE: usize = 2;

/// The lines of a text; a text of a single line counts as none, so that long lists of names aren't counted by their
/// entries.
fn lines_of(text: &str) -> usize {
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

/// The texts and the size of a payload.
#[derive(Default)]
struct PayloadSurvey {
    texts: Vec<PayloadText>,
    /// Bytes of JSON besides the texts, a lower bound.
    structure: usize,
}

impl PayloadSurvey {
    fn visit(&mut self, value: &Value, pointer: &mut String, line_chars: usize) {
        self.structure += STRUCTURE;
        let length = pointer.len();
        match value {
            Value::String(text) => self.texts.push(PayloadText {
                pointer: pointer.clone(),
                bytes: text.len(),
                lines: lines_of(text),
                widest_fits: all_lines_fit(text, line_chars),
            }),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.visit(item, pointer, line_chars);
                    pointer.truncate(length);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.structure += name.len() + 3;
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.visit(field, pointer, line_chars);
                    pointer.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The size to which the largest texts have to be cut so that all together fit in `budget`.
fn common_cap(sizes: impl Iterator<Item = usize>, budget: usize) -> usize {
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
    fn a_large_structure_becomes_a_preview() {
        let original =
            json!({"entries": (0..1000).map(|n| json!({"name": format!("f{n}"), "size": n})).collect::<Vec<_>>()});
        let mut payload = original.clone();
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        let outcome = outcome.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&kept[0].1).unwrap(), original);
        assert_eq!((outcome.refs[0].mime.as_str(), outcome.refs[0].field.as_deref()), ("application/json", Some("")));
        let shown = payload["preview"].as_str().unwrap();
        assert!(shown.starts_with("{\n  \"entries\": [") && shown.ends_with("]\n}"), "{shown}");
        assert!(outcome.truncated.lines > 1000);
    }

    #[test]
    fn one_large_field_leaves_the_others_fields() {
        let paths: Vec<String> = (0..60).map(|number| format!("+{}/{number}", "long-name/".repeat(18))).collect();
        for output in ["done\n".to_owned(), "a line of the log\n".repeat(500)] {
            let original = json!({"exit_code": 3, "stdout": output, "changes": {"created": 60, "paths": paths}});
            let mut payload = original.clone();
            let (outcome, kept) = trim(&mut payload, &LIMITS);
            assert_eq!((&payload["exit_code"], payload["stdout"].is_string()), (&json!(3), true), "{payload}");
            assert!(payload["changes"]["preview"].as_str().unwrap().contains("art_1 has all of it"), "{payload}");
            assert_eq!(kept[0].0, "/changes");
            assert_eq!(serde_json::from_str::<Value>(&kept[0].1).unwrap(), original["changes"]);
            assert_eq!(outcome.unwrap().refs.len(), kept.len());
            assert!(payload.to_string().len() < 1600, "{payload}");
        }
    }

    #[test]
    fn many_texts_to_cut_are_stored_as_one() {
        let mut payload = json!((0..40).map(|n| format!("{n} ").repeat(60)).collect::<Vec<_>>());
        let (outcome, kept) = trim(&mut payload, &LIMITS);
        assert_eq!((outcome.unwrap().refs.len(), kept.len()), (1, 1));
        assert!(payload["preview"].is_string());
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
