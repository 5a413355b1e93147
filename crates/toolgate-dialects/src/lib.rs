//! Each client's own words for the same abilities. Mapping only: nothing here can reach the gate.

mod definitions;
mod neutral;
mod tool_call;

pub use definitions::{Dialect, definition};
pub use neutral::{NeutralAnswer, neutral_instructions, parse_neutral};
pub use tool_call::{MOST_ARGUMENT_BYTES, ToolCall, ToolCallKind, too_long};
