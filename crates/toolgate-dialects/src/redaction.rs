//! What a model got redacted, it must not write back: the secret would be overwritten by its mask.

use toolgate_contract::ToolError;

use crate::dialect::EnterFault;

/// What stands in place of a secret.
const MASK: &str = "***REDACTED***";

/// Refuses texts that hold the mask of a secret.
pub(crate) fn refuse_mask(texts: &[&str]) -> Result<(), EnterFault> {
    if !texts.iter().any(|text| text.contains(MASK)) {
        return Ok(());
    }
    let message = format!("The text contains `{MASK}`, which stands for a secret that you weren't shown.");
    let hint = "Leave the lines with the secret alone: change only text around them.";
    Err(ToolError::invalid_args(message).with_hint(hint).into())
}
