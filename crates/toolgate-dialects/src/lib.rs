//! Each client's own words for the same abilities. Mapping only: nothing here can reach the gate.

mod definitions;

pub use definitions::{Format, definition};
