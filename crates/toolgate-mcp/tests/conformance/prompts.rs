//! Prompts that the suite asks for.

use serde_json::{Map, Value, json};
use toolgate_mcp::JsonRpcError;

use crate::extension::{PIXEL, accepted, question, text};

/// Every prompt.
pub(crate) fn all() -> Vec<Value> {
    let prompt = |name: &str, arguments: &[&str]| {
        let argument = |name: &&str| json!({ "name": name, "description": "For the suite.", "required": true });
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({ "name": name, "description": "For the conformance suite.", "arguments": arguments })
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

/// Answers `prompts/get`.
pub(crate) fn get(params: &Map<String, Value>) -> Result<Value, JsonRpcError> {
    let words = |text: &str| json!({ "type": "text", "text": text });
    let contents = match text(params, "name")? {
        "test_simple_prompt" => vec![words("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument(params, "arg1")?, argument(params, "arg2")?);
            vec![words(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument(params, "resourceUri")?;
            let text = "Embedded resource content for testing.";
            let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": text });
            vec![
                json!({ "type": "resource", "resource": resource }),
                words("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
            vec![image, words("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let none = Map::new();
            let inputs = params.get("inputResponses").and_then(Value::as_object).unwrap_or(&none);
            let Some(content) = accepted(inputs, "user_context") else {
                let question = question("What context should the prompt use?", "context", "string");
                return Ok(json!({ "resultType": "input_required", "inputRequests": { "user_context": question } }));
            };
            vec![words(&format!("Context: {}", content["context"]))]
        }
        name => return Err(JsonRpcError::invalid_params(format!("There is no prompt `{name}`."))),
    };
    let messages: Vec<Value> = contents.iter().map(|content| json!({ "role": "user", "content": content })).collect();
    Ok(json!({ "messages": messages }))
}

fn argument<'a>(params: &'a Map<String, Value>, field: &str) -> Result<&'a str, JsonRpcError> {
    let arguments = params.get("arguments").and_then(Value::as_object);
    text(arguments.ok_or_else(|| JsonRpcError::invalid_params("`params.arguments` is missing."))?, field)
}
