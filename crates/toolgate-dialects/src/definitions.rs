//! A tool's declaration in the formats of model APIs and clients.

use serde_json::{Value, json};
use toolgate_contract::{ArgumentFormat, Declaration, Permission, Risk, SideEffect};

use crate::concise_schema::concise_schema;
use crate::schema_subset::{gemini_schema, strict_schema};

/// The format of a tool definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionFormat {
    /// OpenAI chat completions: functions, and custom tools for free text.
    OpenAi,
    /// OpenAI responses: functions and custom tools, without nesting.
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini's function declarations.
    Gemini,
    /// The Model Context Protocol.
    Mcp,
}

/// The declaration in this format. A tool is declared as strict only where its schema can be a strict one.
pub fn definition(tool: &Declaration, format: DefinitionFormat) -> Value {
    let (name, description, schema) = (&tool.name, &tool.description, &told_schema(tool));
    match (format, &tool.form) {
        (DefinitionFormat::OpenAi, ArgumentFormat::Function { strict }) => {
            let (parameters, strict) = checked(schema, *strict);
            let function =
                json!({ "name": name, "description": description, "parameters": parameters, "strict": strict });
            json!({ "type": "function", "function": function })
        }
        (DefinitionFormat::OpenAi, ArgumentFormat::Freeform { syntax, grammar, .. }) => {
            let format = json!({ "type": "grammar", "grammar": { "syntax": syntax, "definition": grammar } });
            json!({ "type": "custom", "custom": { "name": name, "description": description, "format": format } })
        }
        (DefinitionFormat::OpenAiResponses, ArgumentFormat::Function { strict }) => {
            let (parameters, strict) = checked(schema, *strict);
            json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": parameters,
                "strict": strict,
            })
        }
        (DefinitionFormat::OpenAiResponses, ArgumentFormat::Freeform { syntax, grammar, .. }) => {
            let format = json!({ "type": "grammar", "syntax": syntax, "definition": grammar });
            json!({ "type": "custom", "name": name, "description": description, "format": format })
        }
        (DefinitionFormat::Anthropic, form) => {
            let is_strict = matches!(form, ArgumentFormat::Function { strict: true });
            let (parameters, strict) = checked(schema, is_strict);
            let mut tool = json!({ "name": name, "description": description, "input_schema": parameters });
            if strict {
                tool["strict"] = true.into();
            }
            tool
        }
        (DefinitionFormat::Gemini, _) => {
            json!({ "name": name, "description": description, "parametersJsonSchema": gemini_schema(schema) })
        }
        (DefinitionFormat::Mcp, _) => json!({
            "name": name,
            "description": description,
            "inputSchema": schema,
            "outputSchema": tool.return_schema,
            "annotations": annotations(tool),
        }),
    }
}

/// The schema as a model is told it. A server's is told as a person has approved it, and a strict one says everything.
fn told_schema(tool: &Declaration) -> Value {
    let schema = tool.args_schema.as_value();
    let is_whole = tool.required_permissions.contains(&Permission::McpCall)
        || matches!(tool.form, ArgumentFormat::Function { strict: true });
    if is_whole { schema.clone() } else { concise_schema(schema) }
}

/// The schema, and whether it is strict: as wished, if it can be.
fn checked(schema: &Value, wishes_strict: bool) -> (Value, bool) {
    match strict_schema(schema).filter(|_| wishes_strict) {
        Some(strict) => (strict, true),
        None => (schema.clone(), false),
    }
}

/// Annotations for clients, derived from the declaration and never written by hand.
fn annotations(tool: &Declaration) -> Value {
    let does = |effect| tool.side_effects.contains(&effect);
    // A request over the network may change something on the server.
    let changes =
        [SideEffect::WritesFiles, SideEffect::DeletesFiles, SideEffect::StartsProcesses, SideEffect::UsesNetwork]
            .into_iter()
            .any(does);
    let reads_only = tool.risk == Risk::Low && !changes && !does(SideEffect::KeepsNotes);
    json!({
        "readOnlyHint": reads_only,
        "destructiveHint": changes,
        "idempotentHint": reads_only,
        "openWorldHint": tool.required_permissions.contains(&Permission::NetConnect),
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_json_snapshot;
    use toolgate_contract::schemars::{self, JsonSchema};
    use toolgate_contract::{AnyTool, Effect, Hands, Spec, Tool, ToolError, erase};

    use super::*;

    struct Shout;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Words {
        /// What to shout.
        text: String,
    }

    impl Tool for Shout {
        type Args = Words;
        type Output = std::collections::BTreeMap<String, String>;
        const SPEC: Spec = Spec {
            name: "shout",
            version: "1.0.0",
            description: "Say it louder.",
            risk: Risk::Low,
            permissions: &[],
            side_effects: &[],
            parallel: true,
        };

        fn effects(&self, _args: &Words) -> Vec<Effect> {
            vec![]
        }

        async fn run(&self, args: Words, _hands: &dyn Hands) -> Result<Self::Output, ToolError> {
            Ok([("said".to_owned(), args.text.to_uppercase())].into())
        }
    }

    #[test]
    fn each_reader_gets_its_own_form() {
        let tool = erase(Shout);
        let formats = [
            ("openai", DefinitionFormat::OpenAi),
            ("openai_responses", DefinitionFormat::OpenAiResponses),
            ("anthropic", DefinitionFormat::Anthropic),
            ("gemini", DefinitionFormat::Gemini),
            ("mcp", DefinitionFormat::Mcp),
        ];
        for (name, format) in formats {
            assert_json_snapshot!(name, definition(AnyTool::declaration(tool.as_ref()), format));
        }
    }

    #[test]
    fn free_text_goes_to_openai_as_a_custom_tool_and_to_others_as_an_argument() {
        let mut tool = AnyTool::declaration(erase(Shout).as_ref()).clone();
        tool.form =
            ArgumentFormat::Freeform { syntax: "lark".into(), grammar: "start: /.+/".into(), argument: "text".into() };
        assert_json_snapshot!("freeform", definition(&tool, DefinitionFormat::OpenAi));
        assert_json_snapshot!("freeform_responses", definition(&tool, DefinitionFormat::OpenAiResponses));
        assert_eq!(definition(&tool, DefinitionFormat::Anthropic)["input_schema"]["required"], json!(["text"]));
    }
}
