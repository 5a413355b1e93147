//! The engines behind `edit`, `patch` and every diff: pure functions from bytes to bytes, without file access.
//!
//! Text is matched on a normalised view and changed by splicing bytes, so everything outside the change stays
//! unchanged, in any encoding and with any line ending. Leniency comes in tiers, and the result names the tier.

mod diff;
mod differ;
mod edit;
mod indent;
mod indexed_text;
mod line_block;
mod lines;
mod match_tier;
mod nearest;
mod normalized_view;
pub mod patch;
mod reencode;
mod splice;

pub use diff::{Diff, DiffSide, between, unified};
pub use differ::UnifiedDiffer;
pub use edit::{EditFault, EditedText, edit, edit_in};
pub use match_tier::MatchTier;
pub use nearest::{LineDifference, NearestMatch, NumberedLine};
pub use reencode::{Encoding, EncodingFault};
