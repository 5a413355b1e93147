//! Ranked search in a workspace. Files are cut into functions, types and sections; each is counted by its words, and a
//! question is answered with the places whose words, names and paths fit best.
//!
//! The index holds numbers and paths, no text. It sees the workspace through the hands of a call, is brought up to date
//! before every answer, and reads each place anew before it shows it. So an answer is never older than the question, and never shows what
//! policy hides. Where the user gives weights of a model, places are also found by meaning, and the index has a vector of each.

mod analysis;
mod answer;
mod chunk;
mod index_state;
mod language;
mod meaning;
mod outline;
mod query;
mod ranking;
mod refresh;
mod segment;
mod static_model;
mod tally;
mod terms;
mod word_pieces;
mod word_scan;
mod workspace_index;

#[doc(hidden)]
pub mod measure;

pub use workspace_index::{IndexLimits, IndexStatus, WeightsReader, WorkspaceIndex};
