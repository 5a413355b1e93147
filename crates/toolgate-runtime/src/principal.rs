//! The authenticated sender of a request. One front end passes it to another in the request's extensions.

use std::sync::Arc;

use toolgate_contract::CancellationToken;

use crate::call_registry::CallRegistry;
use crate::session::Session;

/// The authenticated sender of a request.
#[derive(Clone)]
pub struct Principal {
    /// Who it is. Two principals have different names, also when one of them is gone.
    pub name: String,
    /// The session that its requests belong to; none for the owner, whose clients get sessions of their own.
    pub session: Option<PrincipalSession>,
}

/// The session that a principal acts in, with the rights that it was given.
#[derive(Clone)]
pub struct PrincipalSession {
    /// The session: its run, its tools, its grants.
    pub session: Session,
    /// Whether it may answer its own approvals and questions.
    pub may_answer: bool,
    /// Its running calls, of every front end.
    pub calls: Arc<CallRegistry>,
    /// Cancelled when the session ends.
    pub stop: CancellationToken,
}
