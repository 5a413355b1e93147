//! Each client's own words for the same abilities. Mapping only: nothing here can reach the gate.

mod asked;
mod definitions;
mod neutral;

pub use asked::{Asked, MOST_ARGUMENT_BYTES, Shape, too_long};
pub use definitions::{Format, definition};
pub use neutral::{Neutral, neutral_instructions, read_neutral};
