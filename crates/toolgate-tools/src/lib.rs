//! The built-in tools, one file each, and the tools that a person configures. A tool sees only its arguments and its `Hands`: no policy, no gate, no journal.

mod artifact;
mod ask;
mod configured;
mod delete;
mod display;
mod edit;
mod fetch;
mod find;
mod grep;
mod image;
mod lints;
mod list;
mod lsp_calls;
mod lsp_definition;
mod lsp_diagnostics;
mod lsp_hover;
mod lsp_references;
mod lsp_rename;
mod lsp_symbols;
mod memory;
mod move_file;
mod notebook;
mod patch;
mod plan;
mod process;
mod read;
mod script;
mod search;
mod shell;
mod skill;
mod stat;
mod support;
mod todo_read;
mod todo_write;
mod write;

pub use support::text;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use self::image::ImageTool;
pub use artifact::ArtifactTool;
pub use ask::AskTool;
pub use configured::{CommandTemplate, ConfiguredTool};
pub use delete::DeleteTool;
pub use display::DisplayTool;
pub use edit::EditTool;
pub use fetch::FetchTool;
pub use find::FindTool;
pub use grep::GrepTool;
pub use lints::LintsTool;
pub use list::ListTool;
pub use lsp_calls::LspCallsTool;
pub use lsp_definition::LspDefinitionTool;
pub use lsp_diagnostics::LspDiagnosticsTool;
pub use lsp_hover::LspHoverTool;
pub use lsp_references::LspReferencesTool;
pub use lsp_rename::LspRenameTool;
pub use lsp_symbols::LspSymbolsTool;
pub use memory::MemoryTool;
pub use move_file::MoveTool;
pub use notebook::NotebookTool;
pub use patch::PatchTool;
pub use plan::PlanTool;
pub use process::ProcessTool;
pub use read::ReadTool;
pub use script::ScriptTool;
pub use search::SearchTool;
pub use shell::ShellTool;
pub use skill::{SkillTool, skill_commands};
pub use stat::StatTool;
pub use todo_read::TodoReadTool;
pub use todo_write::TodoWriteTool;
pub use write::WriteTool;

/// Every built-in tool.
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(ArtifactTool),       // reads back stored output
        erase(AskTool),            // asks the person a question
        erase(DeleteTool),         // removes a file or directory
        erase(DisplayTool),        // shows the person a message
        erase(EditTool),           // replaces text inside a file
        erase(FetchTool),          // makes an HTTP request
        erase(FindTool),           // finds files by their paths
        erase(GrepTool),           // finds lines by their content
        erase(ImageTool),          // shows an image
        erase(LintsTool),          // shows what linters find wrong
        erase(ListTool),           // shows what is in a directory
        erase(LspCallsTool),       // shows who calls a function
        erase(LspDefinitionTool),  // shows where a symbol is defined
        erase(LspDiagnosticsTool), // shows what language servers find wrong
        erase(LspHoverTool),       // shows what a symbol is
        erase(LspReferencesTool),  // shows where a symbol is used
        erase(LspRenameTool),      // renames a symbol everywhere
        erase(LspSymbolsTool),     // shows the symbols of a file
        erase(MemoryTool),         // saves notes across runs
        erase(MoveTool),           // moves or renames a file
        erase(NotebookTool),       // shows and changes the cells of a notebook
        erase(PatchTool),          // applies a diff to many files at once
        erase(PlanTool),           // stores the plan
        erase(ProcessTool),        // controls a running command
        erase(ReadTool),           // shows a file, by lines
        erase(ScriptTool),         // runs a skill's script
        erase(SearchTool),         // ranks places for a question
        erase(ShellTool),          // runs a command in the sandbox
        erase(SkillTool),          // lists and loads skills
        erase(StatTool),           // shows facts about a path
        erase(TodoReadTool),       // shows the todo list
        erase(TodoWriteTool),      // replaces the todo list
        erase(WriteTool),          // creates or replaces a file
    ]
}

/// The walk through a new tool in `CONTRIBUTING.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
