//! The built-in tools, one file each. A tool sees its arguments and its hands, and nothing else: not policy, not the
//! gate, not the journal.

mod artifact;
mod cursor;
mod delete;
mod display;
mod edit;
mod encoding;
mod excerpt;
mod file;
mod find;
mod first;
mod grep;
mod image;
mod left_out;
mod lines;
mod list;
mod move_file;
mod pages;
mod patch;
mod picture;
mod process;
mod read;
mod shell;
pub mod text;
mod transcode;
mod write;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use self::image::Image;
pub use artifact::Artifact;
pub use delete::Delete;
pub use display::Display;
pub use edit::Edit;
pub use find::Find;
pub use grep::Grep;
pub use list::List;
pub use move_file::Move;
pub use patch::Patch;
pub use process::Process;
pub use read::Read;
pub use shell::Shell;
pub use write::Write;

/// Every built-in tool.
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(Artifact), // reads back stored output
        erase(Delete),   // removes a file or folder
        erase(Display),  // shows the person something
        erase(Edit),     // replaces text inside a file
        erase(Find),     // finds files by their paths
        erase(Grep),     // finds lines by their content
        erase(Image),    // shows an image
        erase(List),     // shows what is in a folder
        erase(Move),     // gives a file another path
        erase(Patch),    // applies a diff to many files at once
        erase(Process),  // goes on with a running command
        erase(Read),     // shows a file, by lines
        erase(Shell),    // runs a command, confined
        erase(Write),    // puts a whole file in place
    ]
}

/// The walk through a new tool in `CONTRIBUTING.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
