//! What policy needs to know beyond names, found out from the files themselves: whether a file is a private key or holds
//! public certificates, and whether the session made what it deletes.

use std::sync::Arc;

use toolgate_changes::WorkspaceChanges;
use toolgate_contract::{Access, Denial, Files, HiddenPaths, WorkspacePath};
use toolgate_policy::{Policy, WorkspaceFacts, holds_only_certificates};

/// The largest file that is looked into; the certificates of all public authorities are a quarter of a megabyte.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Whether the file at this path holds public certificates and nothing else. It is read every time: a file that was one a
/// moment ago may be a key now. What is a link, too large or can't be read is taken for a key.
fn is_public(files: &dyn Files, place: &WorkspacePath) -> bool {
    let content = files.content(place, MAX_BYTES).ok().flatten();
    content.is_some_and(|content| !content.is_link() && holds_only_certificates(&content.bytes))
}

/// The paths that policy hides, as the files are now.
pub struct ContentHiddenPaths {
    policy: Arc<Policy>,
    files: Arc<dyn Files>,
}

impl ContentHiddenPaths {
    /// What this policy hides among these files.
    pub fn new(policy: Arc<Policy>, files: Arc<dyn Files>) -> Self {
        Self { policy, files }
    }
}

impl HiddenPaths for ContentHiddenPaths {
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool {
        self.policy.hides(access, place)
            && !(self.policy.hides_as_possible_key(access, place) && is_public(self.files.as_ref(), place))
    }

    fn depends_on_content(&self, place: &WorkspacePath) -> bool {
        self.policy.hides_as_possible_key(Access::Read, place)
    }

    fn hides_as_secret(&self, place: &WorkspacePath) -> bool {
        self.policy.hides_as_secret(place)
    }

    fn denial(&self, place: &WorkspacePath, shown: &str) -> Denial {
        self.policy.denial_of(place, shown)
    }
}

/// The facts for a call of one session.
pub(crate) struct SessionFacts<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) changes: &'a WorkspaceChanges,
    /// None if no session makes the call.
    pub(crate) session: Option<&'a str>,
}

impl WorkspaceFacts for SessionFacts<'_> {
    fn holds_only_certificates(&self, place: &WorkspacePath) -> bool {
        is_public(self.files, place)
    }

    fn is_own(&self, place: &WorkspacePath) -> bool {
        self.session.is_some_and(|session| self.changes.is_own(session, place))
    }
}
