//! Validates arguments against the schema, before anything else. Every fault is reported at once, with its JSON pointer
//! and what was expected, so that the model can correct the call in one step.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, ToolError, counted};

use crate::nearest::nearest;

/// The largest number of reported faults.
const MAX_FAULTS: usize = 20;

/// Refuses invalid arguments, naming each fault.
pub(crate) fn validate(tool: &str, schema: &Value, validator: &Validator, args: &Value) -> Result<(), ToolError> {
    if validator.is_valid(args) {
        return Ok(());
    }
    let faults: Vec<ArgumentFault> =
        validator.iter_errors(args).flat_map(|error| faults_of(&error, schema)).take(MAX_FAULTS).collect();
    let words = faults.iter().map(ArgumentFault::sentence).collect::<Vec<_>>().join("; ");
    let stop = if words.ends_with('?') { "" } else { "." };
    Err(ToolError::new(ErrorCode::InvalidArgs, format!("The arguments of `{tool}` don't fit: {words}{stop}"))
        .with_details(json!({ "faults": faults.iter().map(ArgumentFault::to_json).collect::<Vec<_>>() })))
}

/// One fault, and where it is.
struct ArgumentFault {
    pointer: String,
    problem: String,
    expected: String,
    nearest: Option<String>,
}

impl ArgumentFault {
    fn sentence(&self) -> String {
        let place = if self.pointer.is_empty() { "the arguments" } else { &self.pointer };
        match &self.nearest {
            Some(name) => format!("{place}: {}, did you mean `{name}`?", self.problem),
            None => format!("{place}: {}, expected {}", self.problem, self.expected),
        }
    }

    fn to_json(&self) -> Value {
        let mut fault = json!({ "pointer": self.pointer, "problem": self.problem, "expected": self.expected });
        if let Some(name) = &self.nearest {
            fault["nearest"] = json!(name);
        }
        fault
    }
}

fn faults_of(error: &ValidationError<'_>, schema: &Value) -> Vec<ArgumentFault> {
    let pointer = error.instance_path().as_str().to_owned();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = known_fields(schema, &pointer);
            unexpected.iter().map(|field| unknown_field(&pointer, field, &known)).collect()
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![fault(format!("{pointer}/{}", escape(name)), "is missing".into(), "a value".into())]
        }
        kind => vec![fault(pointer, format!("is {}", describe(error.instance())), expectation(kind, error))],
    }
}

fn fault(pointer: String, problem: String, expected: String) -> ArgumentFault {
    ArgumentFault { pointer, problem, expected, nearest: None }
}

fn unknown_field(pointer: &str, field: &str, known: &[String]) -> ArgumentFault {
    let expected = match known {
        [] => "no fields".to_owned(),
        known => format!("only {}", known.join(", ")),
    };
    ArgumentFault {
        pointer: format!("{pointer}/{}", escape(field)),
        problem: "is not a known field".into(),
        expected,
        nearest: nearest(field, known.iter().map(String::as_str)).map(str::to_owned),
    }
}

/// What a schema keyword expects, in words.
fn expectation(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(one) } => one.to_string(),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(many) } => {
            many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
        }
        ValidationErrorKind::Enum { options } => format!("one of {options}"),
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::Minimum { limit } => format!("at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("at most {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("at least {}", counted(*limit, "character")),
        ValidationErrorKind::MaxLength { limit } => format!("at most {}", counted(*limit, "character")),
        ValidationErrorKind::MinItems { limit } => format!("at least {}", counted(*limit, "item")),
        ValidationErrorKind::MaxItems { limit } => format!("at most {}", counted(*limit, "item")),
        ValidationErrorKind::Pattern { pattern } => format!("text that matches {pattern}"),
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            match words(context) {
                Some(words) => format!("one of {words}"),
                None => format!("what the schema asks for ({})", error.masked()),
            }
        }
        _ => format!("what the schema asks for ({})", error.masked()),
    }
}

/// The possible values, where each branch of the schema is one constant: an enum with documented values. An optional
/// field has a branch for null, too.
fn words(branches: &[Vec<ValidationError<'_>>]) -> Option<Value> {
    let choices = |branch: &Vec<ValidationError<'_>>| match branch.iter().map(ValidationError::kind).collect::<Vec<_>>()
        [..]
    {
        [ValidationErrorKind::Constant { expected_value }] => Some(vec![(**expected_value).clone()]),
        [ValidationErrorKind::Enum { options }] => options.as_array().cloned(),
        [ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context }] => {
            words(context).and_then(|words| words.as_array().cloned())
        }
        [ValidationErrorKind::Type { kind: TypeKind::Single(one) }] if one.to_string() == "null" => Some(Vec::new()),
        _ => None,
    };
    let choices: Vec<Value> = branches.iter().map(choices).collect::<Option<Vec<_>>>()?.concat();
    (!choices.is_empty()).then(|| choices.into())
}

/// A short description of the value: long ones aren't repeated.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// The fields that the schema defines at `pointer`, for plain nested objects and arrays.
fn known_fields(schema: &Value, pointer: &str) -> Vec<String> {
    let mut here = schema;
    for step in pointer.split('/').skip(1) {
        let next = here.get("properties").and_then(|fields| fields.get(step)).or_else(|| here.get("items"));
        match next {
            Some(next) => here = next,
            None => return Vec::new(),
        }
    }
    here.get("properties").and_then(Value::as_object).map(|f| f.keys().cloned().collect()).unwrap_or_default()
}

/// Escapes a name for a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: Value) -> Result<(), ToolError> {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": ["integer", "null"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9},
                "mode": {"enum": ["a", "b"]},
                "level": {"oneOf": [{"const": "low", "type": "string"}, {"const": "high", "type": "string"}]},
                "nested": {"type": "object", "additionalProperties": false, "properties": {"deep": {"type": "boolean"}}}
            }
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        validate("read", &schema, &validator, &args)
    }

    #[test]
    fn every_fault_is_named_with_its_pointer() {
        let table = [
            (json!({}), "/path: is missing, expected a value"),
            (json!({"path": 1}), "/path: is the number 1, expected string"),
            (json!({"path": "a", "offset": "1"}), "/offset: is the string \"1\", expected null or integer"),
            (json!({"path": "a", "limit": 0}), "/limit: is the number 0, expected at least 1"),
            (json!({"path": "a", "limit": 10}), "/limit: is the number 10, expected at most 9"),
            (json!({"path": "a", "mode": "c"}), "/mode: is the string \"c\", expected one of [\"a\",\"b\"]"),
            (json!({"path": "a", "level": "mid"}), "/level: is the string \"mid\", expected one of [\"low\",\"high\"]"),
            (json!({"path": "a", "ofset": 1}), "/ofset: is not a known field, did you mean `offset`?"),
            (json!({"path": "a", "zzz": 1}), "/zzz: is not a known field, expected only path, offset, limit"),
            (
                json!({"path": "a", "nested": {"deap": true}}),
                "/nested/deap: is not a known field, did you mean `deep`?",
            ),
            (json!([]), "the arguments: is an array, expected object"),
            (json!({"a/b~": 1, "path": "x"}), "/a~1b~0: is not a known field"),
        ];
        for (args, expected) in table {
            let error = check(args.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgs);
            assert!(error.message.contains(expected), "{args}: {}", error.message);
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        let error = check(json!({"path": 1, "limit": 0, "extra": 1})).unwrap_err();
        assert_eq!(error.details.unwrap()["faults"].as_array().unwrap().len(), 3);
        assert!(check(json!({"path": "a", "offset": null})).is_ok());
    }
}
