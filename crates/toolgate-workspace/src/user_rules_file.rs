//! The user's configuration file, in which rules that were approved with "always" are written down.

use std::path::PathBuf;

use toolgate_config::append_rules;
use toolgate_contract::ToolError;
use toolgate_runtime::UserRules;

/// The user's configuration file.
pub(crate) struct UserRulesFile {
    pub(crate) file: PathBuf,
}

impl UserRules for UserRulesFile {
    fn append_rules(&self, rules: &str) -> Result<(), ToolError> {
        append_rules(&self.file, rules).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            ToolError::internal(format!("The rule could not be written to {}: {error}{cause}.", self.file.display()))
        })
    }
}
