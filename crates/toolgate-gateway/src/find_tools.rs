//! `tools_find` and `tools_use`: for many tools of other servers, two that find and use them. A model that is told of all of them pays
//! for each with every request.

use std::sync::Arc;

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
    search: ToolSearch,
}

impl FindTools {
    /// Finds among these.
    pub fn new(tools: Vec<Declaration>) -> Self {
        Self { search: ToolSearch::new(&tools), tools: tools.into() }
    }

    /// The tools for a query, best first.
    pub fn find(&self, query: &str) -> Vec<&Declaration> {
        self.search.find(query).into_iter().map(|index| &self.tools[index]).collect()
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

    /// Tools as servers describe them: the name, what it says, and its arguments.
    const TOOLS: &[(&str, &str, &str, &[&str])] = &[
        (
            "files",
            "read_text_file",
            "Read the complete contents of a file from the file system as text.",
            &["path", "head", "tail"],
        ),
        (
            "files",
            "write_file",
            "Create a new file or completely overwrite an existing file with new content.",
            &["path", "content"],
        ),
        (
            "files",
            "directory_tree",
            "Get a recursive tree view of files and directories as a JSON structure.",
            &["path"],
        ),
        ("files", "move_file", "Move or rename files and directories.", &["source", "destination"]),
        (
            "files",
            "get_file_info",
            "Retrieve detailed metadata about a file or directory: size, times, permissions.",
            &["path"],
        ),
        ("git", "git_log", "Shows the commit logs", &["repo_path", "max_count"]),
        ("git", "git_diff_staged", "Shows changes that are staged for commit", &["repo_path"]),
        (
            "git",
            "git_create_branch",
            "Creates a new branch from an optional base branch",
            &["repo_path", "branch_name"],
        ),
        ("github", "create_issue", "Create a new issue in a GitHub repository", &["owner", "repo", "title", "body"]),
        ("github", "list_pull_requests", "List and filter repository pull requests", &["owner", "repo", "state"]),
        ("github", "search_code", "Search for code across GitHub repositories", &["q"]),
        ("time", "get_current_time", "Get current time in a specific timezone", &["timezone"]),
        ("time", "convert_time", "Convert time between timezones", &["source_timezone", "time", "target_timezone"]),
        ("memory", "create_entities", "Create multiple new entities in the knowledge graph", &["entities"]),
        ("memory", "search_nodes", "Search for nodes in the knowledge graph based on a query", &["query"]),
        ("browser", "browser_navigate", "Navigate to a URL", &["url"]),
        ("browser", "browser_take_screenshot", "Take a screenshot of the current page", &["filename"]),
        ("browser", "browser_click", "Perform click on a web page", &["element"]),
        ("sqlite", "read_query", "Execute a SELECT query on the SQLite database", &["query"]),
        ("sqlite", "list_tables", "List all tables in the SQLite database", &[]),
        (
            "fetch",
            "fetch",
            "Fetches a URL from the internet and optionally extracts its contents as markdown.",
            &["url"],
        ),
    ];

    /// What people need, and the tool for it.
    const NEEDS: &[(&str, &str)] = &[
        ("what time is it in Tokyo", "time__get_current_time"),
        ("convert 9:00 Berlin time to New York", "time__convert_time"),
        ("rename a directory", "files__move_file"),
        ("size and permissions of a file", "files__get_file_info"),
        ("tree of directories", "files__directory_tree"),
        ("overwrite a file", "files__write_file"),
        ("show staged changes", "git__git_diff_staged"),
        ("history of commits", "git__git_log"),
        ("make a new branch", "git__git_create_branch"),
        ("open an issue", "github__create_issue"),
        ("which pull requests are open", "github__list_pull_requests"),
        ("screenshot of the page", "browser__browser_take_screenshot"),
        ("click a button", "browser__browser_click"),
        ("go to a url in the browser", "browser__browser_navigate"),
        ("select rows from the database", "sqlite__read_query"),
        ("tables of the database", "sqlite__list_tables"),
        ("search the knowledge graph", "memory__search_nodes"),
        ("download a url as markdown", "fetch__fetch"),
        ("search code on github", "github__search_code"),
        ("read the text of a file", "files__read_text_file"),
    ];

    fn tools() -> FindTools {
        let declared = TOOLS.iter().map(|(server, name, description, arguments)| {
            let properties: Map<String, Value> =
                arguments.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
            let schema = json!({ "type": "object", "properties": properties });
            let raw = json!({ "name": name, "description": description, "inputSchema": schema });
            let tool = ServerTool::new(server, "", &Definition::read(raw).unwrap(), RootAccess::Read).unwrap();
            tool.declaration().clone()
        });
        FindTools::new(declared.collect())
    }

    #[test]
    fn the_right_tool_is_among_the_first_five_and_mostly_the_first() {
        let (tools, mut first) = (tools(), 0);
        for (need, expected) in NEEDS {
            let found: Vec<&str> = tools.find(need).iter().map(|tool| tool.name.as_str()).take(5).collect();
            assert!(found.contains(expected), "{need}: {found:?}");
            first += usize::from(found[0] == *expected);
        }
        assert!(first * 10 >= NEEDS.len() * 8, "{first} of {} are the first", NEEDS.len());
        assert!(tools.find("zebra").is_empty());
        assert!(tools.find("").is_empty());
    }
}
