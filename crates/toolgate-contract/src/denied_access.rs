//! What confinement kept from a command, as a reply tells it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Denial, Right};

/// Something that a command wanted and didn't get.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeniedAccess {
    /// `network_denied`, `sandbox_denied` or `sensitive_path`; `not_found` or `io_error` of a host that may be reached and couldn't
    /// be.
    code: &'static str,
    /// What would have been needed.
    #[serde(skip_serializing_if = "String::is_empty")]
    missing: String,
    /// Why it was refused.
    reason: String,
    /// What to ask for in `requested_permissions`, if it is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    request: Vec<String>,
    /// By which rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// What to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<&Denial> for DeniedAccess {
    fn from(denial: &Denial) -> Self {
        let request: Vec<String> = denial.missing.iter().filter_map(Right::of).map(|right| right.to_string()).collect();
        let rule = denial.rule.as_ref().map(|name| format!("{} ({})", name.rule, name.layer));
        let next = (request.is_empty() && !denial.is_mere_reason()).then(|| denial.code.next_step().to_owned());
        let (missing, reason) = (denial.missing_in_words(), denial.reason.clone());
        Self { code: denial.code.as_str(), missing, reason, request, rule, next }
    }
}

impl DeniedAccess {
    /// Stops suggesting to ask for a right, because policy denies it anyway, for this reason.
    pub fn withdraw(&mut self, right: &str, why: &str) {
        let before = self.request.len();
        self.request.retain(|request| request != right);
        if self.request.is_empty() && before > 0 {
            self.next = Some(format!("Work without it; asking for it won't help. {why}"));
        }
    }

    /// What to do now instead of asking for it, since that was answered already; after a no it isn't worth asking again.
    pub fn answered(&mut self, next: &str, is_refused: bool) {
        if self.request.is_empty() {
            return;
        }
        self.next = Some(next.to_owned());
        if is_refused {
            self.request.clear();
        }
    }
}
