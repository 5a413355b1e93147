//! `tools_find` and `tools_use`: for many tools of other servers, two that find and use them. A model that is told of all of them pays
//! for each with every request.

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_contract::{
    Declaration, Effect, Hands, Permission, ResultForm, Risk, SideEffect, Spec, TOOLS_FIND, TOOLS_USE, Tool, ToolError,
};

use crate::tool_search::ToolSearch;

/// How many tools are shown if the caller doesn't say.
const USUAL_LIMIT: usize = 5;

/// Finds tools of other servers by what they do.
pub struct FindTools {
    tools: Arc<[Declaration]>,
    /// Made for the first search: most sessions have none, and every start would pay for it.
    search: OnceLock<ToolSearch>,
}

impl FindTools {
    /// Finds among these.
    pub fn new(tools: Vec<Declaration>) -> Self {
        Self { tools: tools.into(), search: OnceLock::new() }
    }

    /// The tools for a query, best first.
    pub fn find(&self, query: &str) -> Vec<&Declaration> {
        let search = self.search.get_or_init(|| ToolSearch::new(self.tools.iter()));
        search.find(query).into_iter().map(|index| &self.tools[index]).collect()
    }
}

/// What is needed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    /// What the tool should do, in a few words.
    #[schemars(length(min = 1, max = 500))]
    query: String,
    /// How many tools to show, 5 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    limit: Option<usize>,
}

/// The tools that were found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindOutput {
    /// The best ones first.
    tools: Vec<FoundTool>,
    /// How many more share a word with the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

/// A tool that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundTool {
    /// Its name, for `tools_use`.
    name: String,
    /// What it says it does.
    description: String,
    /// The JSON Schema of its arguments.
    args: Value,
}

impl Tool for FindTools {
    type Args = FindArgs;
    type Output = FindOutput;

    const SPEC: Spec = Spec {
        name: TOOLS_FIND,
        version: "1.0.0",
        description: "Find tools of the configured MCP servers by what they do. Call what you found with `tools_use`.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, _: &FindArgs) -> Vec<Effect> {
        Vec::new()
    }

    async fn run(&self, args: FindArgs, _: &dyn Hands) -> Result<FindOutput, ToolError> {
        let (found, limit) = (self.find(&args.query), args.limit.unwrap_or(USUAL_LIMIT));
        let shown = |tool: &&Declaration| FoundTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            args: tool.args_schema.as_value().clone(),
        };
        let more = Some(found.len().saturating_sub(limit)).filter(|more| *more > 0);
        Ok(FindOutput { tools: found.iter().take(limit).map(shown).collect(), more })
    }
}

/// Uses a tool by its name. The gate unwraps such a call before it looks for the tool, so what is run here names another tool.
pub struct UseTool;

/// Which tool, and its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the gate reads these from the call itself")]
pub struct UseArgs {
    /// The tool's name, from `tools_find`.
    #[schemars(length(min = 1, max = 64))]
    tool: String,
    /// Its arguments.
    #[serde(default)]
    args: Map<String, Value>,
}

/// Never made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UseOutput {}

impl Tool for UseTool {
    type Args = UseArgs;
    type Output = UseOutput;

    const SPEC: Spec = Spec {
        name: TOOLS_USE,
        version: "1.0.0",
        description: "Use a tool that `tools_find` found, with the arguments of its schema.",
        risk: Risk::Medium,
        permissions: &[Permission::McpCall],
        side_effects: &[SideEffect::UsesNetwork],
        parallel: false,
    };

    /// As the tools that it stands for.
    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, _: &UseArgs) -> Vec<Effect> {
        Vec::new()
    }

    async fn run(&self, _: UseArgs, _: &dyn Hands) -> Result<UseOutput, ToolError> {
        Err(ToolError::invalid_args("`tools_use` is for tools of MCP servers; call others by their own name."))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::{AnyTool, RootAccess};

    use super::*;
    use crate::{Definition, ServerTool};

    /// 220 tools of fifteen servers, and what is asked for among them.
    const TOOLS: &str = include_str!("../tests/data/tools.txt");
    const NEEDS: &str = include_str!("../tests/data/needs.txt");

    /// The lines of such a file, each in its parts.
    fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('|').map(str::trim).collect())
    }

    fn tools() -> FindTools {
        let declared = rows(TOOLS).map(|row| {
            let [server, name, description, arguments] = row[..] else { panic!("{row:?}") };
            let properties: Map<String, Value> =
                arguments.split_whitespace().map(|name| (name.to_owned(), json!({ "type": "string" }))).collect();
            let schema = json!({ "type": "object", "properties": properties });
            let raw = json!({ "name": name, "description": description, "inputSchema": schema });
            let tool = ServerTool::new(server, "", &Definition::read(raw).unwrap(), RootAccess::Read).unwrap();
            tool.declaration().clone()
        });
        FindTools::new(declared.collect())
    }

    #[test]
    fn the_right_tool_is_among_the_first_five_and_mostly_the_first() {
        let (tools, mut first, mut missed) = (tools(), 0, Vec::new());
        assert_eq!(rows(TOOLS).count(), 220);
        for row in rows(NEEDS) {
            let found: Vec<&str> = tools.find(row[0]).iter().map(|tool| tool.name.as_str()).take(5).collect();
            let is_right = |name: &&str| row[1].split(", ").any(|right| right == *name);
            first += usize::from(found.first().is_some_and(is_right));
            if !found.iter().any(is_right) {
                missed.push(format!("{}: {found:?}", row[0]));
            }
        }
        let all = rows(NEEDS).count();
        println!("{} of {all} needs are met by the first five, {first} by the first", all - missed.len());
        assert!((all - missed.len()) * 100 >= all * 95, "{missed:#?}");
        assert!(first * 10 >= all * 8, "{first} of {all} are the first");
        assert!(tools.find("zebra").is_empty());
        assert!(tools.find("").is_empty());
    }
}
