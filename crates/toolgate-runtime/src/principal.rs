//! Who stands behind a request, as whoever let it in has found out. One front end's door tells another front end so, in
//! the request's extensions.

/// Whoever a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);
