//! One layer of configuration, and what it may do to the others.

use toolgate_contract::Layer;

use crate::config::Config;

/// One layer, read but not yet merged.
#[derive(Debug, Clone)]
pub struct ConfigLayer {
    /// Whose it is.
    pub layer: Layer,
    /// How messages call it: a file, or the command line.
    pub source: String,
    /// For the workspace's layer: whether the user trusts it. The others are trusted by being theirs.
    pub trusted: bool,
    /// What it says.
    pub config: Config,
}

/// How the warning about something ends that takes effect once the workspace is trusted.
pub const UNTIL_TRUSTED: &str = " is ignored until you trust this workspace; run `toolgate trust`.";

impl ConfigLayer {
    /// Whether this layer may allow more than the defaults do. Only an untrusted workspace may not.
    pub fn may_loosen(&self) -> bool {
        self.trusted || self.layer != Layer::Workspace
    }

    /// The warning about something that is ignored: a more authoritative layer is stricter, or this one isn't trusted.
    pub fn ignored(&self, what: &str, outranked: bool) -> String {
        if self.may_loosen() || outranked {
            format!("{}: {what} is ignored, because a layer with more authority is stricter.", self.source)
        } else {
            format!("{}: {what}{UNTIL_TRUSTED}", self.source)
        }
    }
}
