//! The built-in tools, one file each. A tool sees its arguments and its hands, and nothing else: not policy, not the
//! gate, not the journal.

mod artifact;
mod display;
mod encoding;
mod image;
mod lines;
mod list;
mod pages;
mod picture;
mod read;
mod transcode;

use std::sync::Arc;

use toolgate_contract::{AnyTool, erase};

pub use artifact::Artifact;
pub use display::Display;
pub use self::image::Image;
pub use list::List;
pub use read::Read;

/// Every built-in tool.
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(Artifact), // reads back stored output
        erase(Display),  // shows the person something
        erase(Image),    // shows an image
        erase(List),     // shows what is in a folder
        erase(Read),     // shows a file, by lines
    ]
}

/// The walk through a new tool in `CONTRIBUTING.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
