//! Reads JSON with comments and trailing commas, as editors keep their settings, and nothing looser.

use std::collections::HashSet;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// The object that is the whole text, with the position of everything in it; none when the text is anything else. Duplicate
/// keys are refused, because it is unclear which of them counts.
pub(in crate::commands) fn parse(text: &str) -> Option<Object<'_>> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &options).ok()?.value? {
        Value::Object(object) if has_unique_keys(&object) => Some(object),
        _ => None,
    }
}

fn has_unique_keys(object: &Object<'_>) -> bool {
    let mut keys = HashSet::new();
    object.properties.iter().all(|property| keys.insert(property.name.as_str()) && is_unambiguous(&property.value))
}

fn is_unambiguous(value: &Value<'_>) -> bool {
    match value {
        Value::Object(object) => has_unique_keys(object),
        Value::Array(array) => array.elements.iter().all(is_unambiguous),
        _ => true,
    }
}
