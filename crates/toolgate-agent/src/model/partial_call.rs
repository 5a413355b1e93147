//! Calls whose arguments arrive in pieces. Arguments beyond the size limit are dropped at once; only their length is
//! kept.

use toolgate_dialects::{MOST_ARGUMENT_BYTES, ToolCall, ToolCallKind, too_long};

/// A call under construction.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_custom: bool,
    arguments: String,
    length: usize,
}

impl PartialCall {
    pub(super) fn of(id: String, name: String) -> Self {
        Self { id, name, ..Self::default() }
    }

    /// Adds the next piece of the arguments.
    pub(super) fn push(&mut self, piece: &str) {
        self.length += piece.len();
        match self.length {
            ..=MOST_ARGUMENT_BYTES => self.arguments.push_str(piece),
            _ => self.arguments = String::new(),
        }
    }

    /// The call, now that it is complete.
    pub(super) fn finish(self) -> ToolCall {
        let shape = if self.is_custom { ToolCallKind::Custom } else { ToolCallKind::Function };
        match self.length {
            length if length > MOST_ARGUMENT_BYTES => {
                ToolCall { id: self.id, name: self.name, args: Err(too_long(length)), shape }
            }
            _ if self.is_custom => ToolCall::custom(self.id, self.name, &self.arguments),
            _ => ToolCall::function(self.id, self.name, &self.arguments),
        }
    }
}
