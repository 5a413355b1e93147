//! A question that a person answers with yes or no.

use std::io::IsTerminal;

use anyhow::{Context, Result};

use super::{BOLD, paint};
use crate::output::err;

/// Whether the person at the terminal agrees. Without a terminal nobody does, and `otherwise` says what to run instead.
pub(crate) fn confirm(question: &str, otherwise: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        anyhow::bail!("Nobody can be asked here. Read what is shown, then run `{otherwise}`.");
    }
    err!("{} ", paint(BOLD, format!("{question} [y/N]")));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the answer can't be read")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
