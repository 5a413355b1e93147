//! The parameters of a dialect's tool: one table from which its JSON Schema is made, and by which arguments are read. What is
//! declared is what is accepted.

use serde_json::{Map, Value, json};

/// A parameter of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParameterKind,
    /// Whether it has to be given.
    pub required: bool,
    /// What it is for, in a few words for the model.
    pub about: &'static str,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy)]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A whole number, within these bounds.
    Integer(i64, i64),
    /// True or false.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of objects with these fields.
    Objects(&'static [Parameter]),
    /// An object with these fields.
    Object(&'static [Parameter]),
    /// Anything.
    Any,
}

/// The bounds of a number that may have any value.
pub const ANY_INTEGER: ParameterKind = ParameterKind::Integer(i64::MIN, i64::MAX);

impl Parameter {
    /// A parameter that has to be given.
    pub const fn required(name: &'static str, kind: ParameterKind, about: &'static str) -> Self {
        Self { name, kind, required: true, about }
    }

    /// A parameter that can be left out.
    pub const fn optional(name: &'static str, kind: ParameterKind, about: &'static str) -> Self {
        Self { name, kind, required: false, about }
    }
}

/// The JSON Schema of these parameters. A closed one accepts no others.
pub fn schema(parameters: &[Parameter], is_closed: bool) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|parameter| {
            let mut schema = parameter.kind.schema(is_closed);
            if !parameter.about.is_empty() {
                schema["description"] = parameter.about.into();
            }
            (parameter.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> =
        parameters.iter().filter(|parameter| parameter.required).map(|parameter| parameter.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if is_closed {
        schema["additionalProperties"] = false.into();
    }
    schema
}

impl ParameterKind {
    fn schema(self, is_closed: bool) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Integer(least, most) => {
                let mut schema = json!({ "type": "integer" });
                if least > i64::MIN {
                    schema["minimum"] = least.into();
                }
                if most < i64::MAX {
                    schema["maximum"] = most.into();
                }
                schema
            }
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Choice(words) => json!({ "type": "string", "enum": words }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Objects(fields) => json!({ "type": "array", "items": schema(fields, is_closed) }),
            Self::Object(fields) => schema(fields, is_closed),
            Self::Any => json!({}),
        }
    }

    /// The type's name, as a message says it.
    fn name(self) -> &'static str {
        match self {
            Self::Text | Self::Choice(_) => "string",
            Self::Integer(..) => "integer",
            Self::Boolean => "boolean",
            Self::Texts | Self::Objects(_) => "array",
            Self::Object(_) => "object",
            Self::Any => "value",
        }
    }
}

/// What is wrong with an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentError {
    /// It is required and isn't there.
    Missing {
        /// Where it should be, such as `edits[0].old_string`.
        at: String,
    },
    /// The tool has no such parameter.
    Unexpected {
        /// Where it is.
        at: String,
    },
    /// It has another type, or a value that isn't possible.
    Wrong {
        /// Where it is.
        at: String,
        /// What the parameter takes.
        expected: String,
        /// What was given.
        given: String,
    },
}

impl std::fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { at } => write!(f, "`{at}` is missing"),
            Self::Unexpected { at } => write!(f, "`{at}` is unknown"),
            Self::Wrong { at, expected, given } => write!(f, "`{at}` is {given}, expected {expected}"),
        }
    }
}

/// The arguments of a call, read by the table of parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads arguments. `null` counts as left out where the parameter is optional. Names in `ignored` are accepted and dropped:
    /// models send them out of habit. With `is_open`, every other name is accepted and dropped as well.
    pub fn read(
        args: &Value,
        parameters: &[Parameter],
        ignored: &[&str],
        is_open: bool,
    ) -> Result<Self, Vec<ArgumentError>> {
        let mut faults = Vec::new();
        let Value::Object(given) = args else {
            let (expected, given) = ("object".to_owned(), type_name(args).to_owned());
            return Err(vec![ArgumentError::Wrong { at: String::new(), expected, given }]);
        };
        let read = read_object(given, parameters, ignored, is_open, &String::new, &mut faults);
        if faults.is_empty() { Ok(Self(read)) } else { Err(faults) }
    }

    /// A text that was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A text that has to be given, or nothing where it wasn't.
    pub fn word(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// A number that was given.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    /// Whether a switch is on.
    pub fn is(&self, name: &str) -> bool {
        self.flag(name).unwrap_or(false)
    }

    /// A switch that was given.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// A list of texts that was given.
    pub fn texts(&self, name: &str) -> Option<Vec<&str>> {
        Some(self.0.get(name)?.as_array()?.iter().filter_map(Value::as_str).collect())
    }

    /// A list of objects.
    pub fn objects(&self, name: &str) -> Vec<Self> {
        let list = self.0.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let object = |value| match value {
            Value::Object(fields) => Some(Self(fields)),
            _ => None,
        };
        list.into_iter().filter_map(object).collect()
    }

    /// All of them.
    pub fn all(&self) -> Map<String, Value> {
        self.0.clone()
    }

    /// An argument as it is.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// Where a value is among the arguments. Only a fault has to say so, and most calls have none.
type Place<'a> = &'a dyn Fn() -> String;

fn read_object(
    given: &Map<String, Value>,
    parameters: &[Parameter],
    ignored: &[&str],
    is_open: bool,
    at: Place<'_>,
    faults: &mut Vec<ArgumentError>,
) -> Map<String, Value> {
    let place = |name: &str| match at() {
        at if at.is_empty() => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    let mut read = Map::with_capacity(given.len());
    for parameter in parameters {
        match given.get(parameter.name) {
            None | Some(Value::Null) if !parameter.required => {}
            None => faults.push(ArgumentError::Missing { at: place(parameter.name) }),
            Some(value) => {
                let value = read_value(value, parameter.kind, is_open, &|| place(parameter.name), faults);
                read.extend(value.map(|value| (parameter.name.to_owned(), value)));
            }
        }
    }
    let is_known = |name: &String| {
        is_open || ignored.contains(&name.as_str()) || parameters.iter().any(|parameter| parameter.name == name)
    };
    faults
        .extend(given.keys().filter(|name| !is_known(name)).map(|name| ArgumentError::Unexpected { at: place(name) }));
    read
}

fn read_value(
    value: &Value,
    kind: ParameterKind,
    is_open: bool,
    at: Place<'_>,
    faults: &mut Vec<ArgumentError>,
) -> Option<Value> {
    match (kind, value) {
        (ParameterKind::Text, Value::String(_))
        | (ParameterKind::Boolean, Value::Bool(_))
        | (ParameterKind::Any, _) => return Some(value.clone()),
        (ParameterKind::Choice(words), Value::String(word)) if words.contains(&word.as_str()) => {
            return Some(value.clone());
        }
        (ParameterKind::Integer(least, most), Value::Number(number)) => {
            // Some clients send whole numbers as 5.0.
            let whole = number
                .as_i64()
                .or_else(|| number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64));
            if let Some(whole) = whole.filter(|whole| (least..=most).contains(whole)) {
                return Some(whole.into());
            }
        }
        (ParameterKind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => {
            return Some(value.clone());
        }
        (ParameterKind::Objects(fields), Value::Array(items)) => {
            let items = items.iter().enumerate();
            return items
                .map(|(index, item)| {
                    read_value(item, ParameterKind::Object(fields), is_open, &|| format!("{}[{index}]", at()), faults)
                })
                .collect();
        }
        (ParameterKind::Object(fields), Value::Object(given)) => {
            return Some(read_object(given, fields, &[], is_open, at, faults).into());
        }
        _ => {}
    }
    faults.push(ArgumentError::Wrong { at: at(), expected: expected(kind), given: given(value) });
    None
}

fn expected(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
        ParameterKind::Integer(least, most) if least > i64::MIN && most < i64::MAX => {
            format!("integer from {least} to {most}")
        }
        ParameterKind::Integer(least, _) if least > i64::MIN => format!("integer of at least {least}"),
        other => other.name().to_owned(),
    }
}

/// What was given: the value itself where it is short.
fn given(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        Value::String(text) if text.len() > 40 => type_name(value).to_owned(),
        short => short.to_string(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::ParameterKind::{Boolean, Choice, Integer, Objects, Text};
    use super::*;

    const EDITS: &[Parameter] = &[Parameter::required("old", Text, ""), Parameter::required("new", Text, "")];
    const ALL: &[Parameter] = &[
        Parameter::required("path", Text, "The file."),
        Parameter::optional("limit", Integer(1, 10), ""),
        Parameter::optional("all", Boolean, ""),
        Parameter::optional("mode", Choice(&["a", "b"]), ""),
        Parameter::optional("edits", Objects(EDITS), ""),
    ];

    fn faults(args: Value) -> Vec<ArgumentError> {
        Arguments::read(&args, ALL, &["description"], false).err().unwrap_or_default()
    }

    fn wrong(at: &str, expected: &str, given: &str) -> ArgumentError {
        ArgumentError::Wrong { at: at.into(), expected: expected.into(), given: given.into() }
    }

    #[test]
    fn everything_that_is_wrong_is_named_at_once() {
        let given = json!({ "limit": "5", "all": "true", "mode": "c", "edits": [{ "old": 1 }], "cmd": "x" });
        let expected = [
            ArgumentError::Missing { at: "path".into() },
            wrong("limit", "integer from 1 to 10", "\"5\""),
            wrong("all", "boolean", "\"true\""),
            wrong("mode", "one of a, b", "\"c\""),
            wrong("edits[0].old", "string", "1"),
            ArgumentError::Missing { at: "edits[0].new".into() },
            ArgumentError::Unexpected { at: "cmd".into() },
        ];
        assert_eq!(faults(given), expected);
        assert_eq!(faults(json!({ "path": "a", "limit": 11 })), [wrong("limit", "integer from 1 to 10", "11")]);
        assert_eq!(faults(json!([])), [wrong("", "object", "array")]);
    }

    #[test]
    fn null_is_left_out_only_where_it_may_be() {
        assert_eq!(faults(json!({ "path": "a", "limit": null, "description": "why" })), []);
        assert_eq!(faults(json!({ "path": null })), [wrong("path", "string", "null")]);
        let read = Arguments::read(&json!({ "path": "a", "limit": 5.0, "all": null }), ALL, &[], false).unwrap();
        assert_eq!((read.word("path"), read.integer("limit"), read.flag("all")), ("a", Some(5), None));
    }

    #[test]
    fn an_open_tool_drops_what_it_does_not_know() {
        let read = Arguments::read(&json!({ "path": "a", "what": 1 }), ALL, &[], true).unwrap();
        assert!(read.value("what").is_none());
    }

    #[test]
    fn the_schema_says_what_is_read() {
        let closed = schema(ALL, true);
        assert_eq!(closed["required"], json!(["path"]));
        assert_eq!(closed["properties"]["limit"], json!({ "type": "integer", "minimum": 1, "maximum": 10 }));
        assert_eq!(closed["properties"]["edits"]["items"]["additionalProperties"], json!(false));
        assert_eq!(schema(ALL, false).get("additionalProperties"), None);
    }
}
