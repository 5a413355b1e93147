//! What a server says that the data of a tool look like. It is compiled with the first result, since it costs more than a result does, and
//! checked with every one.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::definition::validator;

/// The schema of a tool's data.
pub(crate) struct OutputSchema {
    schema: Value,
    /// None if the schema can't be used.
    validator: OnceLock<Option<Validator>>,
}

impl OutputSchema {
    pub(crate) fn new(schema: Value) -> Self {
        Self { schema, validator: OnceLock::new() }
    }

    /// Whether data are what the schema says. One that can't be used says nothing.
    pub(crate) fn fits(&self, data: &Value) -> bool {
        let validator = self.validator.get_or_init(|| validator(&self.schema));
        validator.as_ref().is_none_or(|validator| validator.is_valid(data))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_are_compared_with_what_the_server_says_of_them() {
        let schema = OutputSchema::new(json!({ "type": "object", "properties": { "v": { "type": "number" } } }));
        assert!(schema.fits(&json!({ "v": 1 })));
        assert!(!schema.fits(&json!({ "v": "1" })));
        assert!(schema.fits(&json!({ "v": 2 })), "compiled once, used again");
        for unusable in [json!({ "$ref": "http://169.254.169.254/" }), json!({ "type": "strinng" }), json!(5)] {
            assert!(OutputSchema::new(unusable).fits(&json!({})), "it says nothing");
        }
    }
}
