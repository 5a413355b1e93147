//! Strict JSON parsing: the value that is judged must be the value that is used, so duplicate keys are rejected, and so
//! are numbers that their type can't represent exactly.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use toolgate_contract::{Call, Clock, ToolError};

/// Parses one JSON document strictly: UTF-8, no duplicate keys, no integer beyond 64 bits, bounded nesting.
pub fn parse(bytes: &[u8]) -> Result<Value, ToolError> {
    let text = std::str::from_utf8(bytes).map_err(|fault| {
        ToolError::invalid_args(format!("The JSON is not valid UTF-8 (first bad byte at {}).", fault.valid_up_to()))
            .with_hint("Send the arguments as UTF-8.")
    })?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value =
        StrictVisitor.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value)).map_err(|fault| {
            ToolError::invalid_args(format!("This is not usable JSON: {fault}."))
                .with_hint("Send one JSON value with each key once, numbers within 64 bits, nested at most 127 deep.")
        })?;
    match oversized_integer(text, &value) {
        Some(number) => Err(ToolError::invalid_args(format!("The number {number} doesn't fit in 64 bits."))
            .with_hint("Send a smaller number, or a string if it is an id.")),
        None => Ok(value),
    }
}

/// Parses a call strictly, and fills in what the caller omitted.
pub fn parse_call(bytes: &[u8], clock: &dyn Clock) -> Result<Call, ToolError> {
    Call::from_value(parse(bytes)?, clock)
}

/// Builds a [`Value`] and rejects duplicate keys.
struct StrictVisitor;

impl<'de> DeserializeSeed<'de> for StrictVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictVisitor)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(StrictVisitor)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key \"{key}\" appears twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// serde_json turns an integer beyond 64 bits into the nearest float. This finds the first such integer: a long run of
/// digits outside a string. It only searches if the value contains a float of that size.
fn oversized_integer<'a>(text: &'a str, value: &Value) -> Option<&'a str> {
    if !holds_huge_float(value) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end =
                    (at..bytes.len()).find(|&i| !matches!(bytes[i], b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
                let number = &text[at..end.unwrap_or(bytes.len())];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
                {
                    return Some(number);
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn holds_huge_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|n| n.abs() >= 9.0e18),
        Value::Array(items) => items.iter().any(holds_huge_float),
        Value::Object(fields) => fields.values().any(holds_huge_float),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_contract::{ErrorCode, SystemClock};

    #[test]
    fn what_is_refused_and_why() {
        let nested = "[".repeat(1_000_000);
        let cases: &[(&[u8], &str)] = &[
            (br#"{"a":1,"a":2}"#, "the key \"a\" appears twice"),
            (br#"{"x":{"b":1,"b":1}}"#, "the key \"b\" appears twice"),
            (b"\xff\xfe", "not valid UTF-8"),
            (br#"{"n":1e999}"#, "number out of range"),
            (br#"{"s":"99999999999999999999","n":99999999999999999999}"#, "99999999999999999999 doesn't fit"),
            (br#"{"n":-9999999999999999999}"#, "-9999999999999999999 doesn't fit"),
            (b"{} {}", "trailing characters"),
            (b"", "EOF"),
            (nested.as_bytes(), "recursion limit"),
        ];
        for (input, expected) in cases {
            let error = parse(input).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgs);
            assert!(error.message.contains(expected), "{} should say {expected}", error.message);
        }
    }

    #[test]
    fn a_call_has_each_key_once() {
        let call = parse_call(br#"{"name":"read","args":{"path":"a"}}"#, &SystemClock).unwrap();
        assert_eq!((call.name.as_str(), &call.args["path"]), ("read", &Value::from("a")));
        let error = parse_call(br#"{"name":"read","args":{"path":"a","path":".env"}}"#, &SystemClock).unwrap_err();
        assert!(error.message.contains("the key \"path\" appears twice"), "{}", error.message);
    }

    #[test]
    fn ordinary_json_is_read_as_serde_json_reads_it() {
        for text in [
            r#"{"b":[1,-2,3.5,1e20,null,true,"\u00e9\n"],"a":{}}"#,
            "18446744073709551615",
            "\"9999999999999999999999\"",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
    }
}
