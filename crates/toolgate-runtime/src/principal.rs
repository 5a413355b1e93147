//! The authenticated sender of a request. One front end passes it to another in the request's extensions.

/// The authenticated sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);
