//! The built-in tools, one file each. A tool sees its arguments and its hands, and nothing else: not policy, not the
//! gate, not the journal.

mod artifact;
mod ask;
mod cursor;
mod delete;
mod display;
mod edit;
mod encoding;
mod ended;
mod excerpt;
mod fetch;
mod file;
mod find;
mod first;
mod grep;
mod html;
mod image;
mod left_out;
mod lines;
mod list;
mod memory;
mod move_file;
mod pages;
mod patch;
mod picture;
mod plan;
mod process;
mod read;
mod script;
mod shell;
mod skill;
pub mod text;
mod todo;
mod todo_read;
mod todo_write;
mod transcode;
mod write;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use self::image::Image;
pub use artifact::Artifact;
pub use ask::Ask;
pub use delete::Delete;
pub use display::Display;
pub use edit::Edit;
pub use fetch::Fetch;
pub use find::Find;
pub use grep::Grep;
pub use list::List;
pub use memory::Memory;
pub use move_file::Move;
pub use patch::Patch;
pub use plan::Plan;
pub use process::Process;
pub use read::Read;
pub use script::Script;
pub use shell::Shell;
pub use skill::Skill;
pub use todo_read::TodoRead;
pub use todo_write::TodoWrite;
pub use write::Write;

/// Every built-in tool.
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(Artifact),  // reads back stored output
        erase(Ask),       // asks the person something
        erase(Delete),    // removes a file or folder
        erase(Display),   // shows the person something
        erase(Edit),      // replaces text inside a file
        erase(Fetch),     // gets something over HTTP
        erase(Find),      // finds files by their paths
        erase(Grep),      // finds lines by their content
        erase(Image),     // shows an image
        erase(List),      // shows what is in a folder
        erase(Memory),    // keeps what is worth remembering
        erase(Move),      // gives a file another path
        erase(Patch),     // applies a diff to many files at once
        erase(Plan),      // keeps the plan
        erase(Process),   // goes on with a running command
        erase(Read),      // shows a file, by lines
        erase(Script),    // runs a script of a skill
        erase(Shell),     // runs a command, confined
        erase(Skill),     // lists and loads skills
        erase(TodoRead),  // shows the list of things to do
        erase(TodoWrite), // replaces it
        erase(Write),     // puts a whole file in place
    ]
}

/// The walk through a new tool in `CONTRIBUTING.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
