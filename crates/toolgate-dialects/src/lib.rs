//! The dialects of model APIs and clients: tool definitions and tool calls in each one's own format, and the strict JSON
//! that all of them are read as. Conversion only; nothing here depends on the gate.

mod definitions;
mod neutral;
pub mod strict_json;
mod tool_call;

pub use definitions::{Dialect, definition};
pub use neutral::{NeutralAnswer, neutral_instructions, parse_neutral};
pub use tool_call::{MOST_ARGUMENT_BYTES, ToolCall, ToolCallKind, too_long};
