//! The engines behind `edit`, `patch` and every diff: functions from bytes to bytes, with no file in sight.
//!
//! Text is matched on a normalised view and changed by splicing bytes, so that whatever lies outside the change stays
//! as it was, in any encoding and with any line ending. Leniency comes in tiers, and a receipt names the tier.

mod block;
mod change;
mod diff;
mod edit;
mod encoding;
mod indent;
mod lines;
mod nearest;
mod page;
pub mod patch;
mod splice;
mod tier;
mod view;

pub use change::Diffs;
pub use diff::{Diff, Side, between, unified};
pub use edit::{EditFault, Edited, edit, edit_in};
pub use encoding::{Encoding, EncodingFault};
pub use nearest::{Difference, Nearest, Spot};
pub use tier::Tier;
