//! Says which language servers are installed, and how to install one for each language that has none.

use std::collections::BTreeSet;

use anyhow::Result;
use toolgate_lsp::InstalledServer;
use toolgate_workspace::language_servers;

use super::{DoctorCheck, held};
use crate::commands::Invocation;

const NAME: &str = "language servers";

/// Which servers are installed. That one is missing breaks nothing: its language is searched with `grep`.
pub(super) fn installed(invocation: &Invocation) -> Result<DoctorCheck> {
    let settings = invocation.location.load()?.settings;
    let known = language_servers(&invocation.location, &settings, &std::env::vars_os().collect())?.installed();
    let present: Vec<&str> = known.iter().filter(|one| one.program.is_some()).map(|one| one.name.as_str()).collect();
    let missing: Vec<String> =
        missing(&known).into_iter().map(|(language, install)| format!("{language} ({install})")).collect();
    let found = match (present.is_empty(), missing.is_empty()) {
        (true, _) => format!("none installed; for {}", missing.join(", ")),
        (false, true) => present.join(", "),
        (false, false) => format!("{}; missing for {}", present.join(", "), missing.join(", ")),
    };
    Ok(held(NAME, found))
}

/// The languages that no installed server understands, each with the command that installs the first choice. Of the languages that
/// one server brings, the first is named.
fn missing(known: &[InstalledServer]) -> Vec<(&str, &str)> {
    let is_covered =
        |language: &String| known.iter().any(|one| one.program.is_some() && one.languages.contains(language));
    let mut named: BTreeSet<&String> = BTreeSet::new();
    let mut missing = Vec::new();
    for server in known {
        let mut open = server.languages.iter().filter(|language| !is_covered(language) && !named.contains(language));
        if let Some(first) = open.next() {
            missing.push((first.as_str(), server.install.as_str()));
            named.extend(&server.languages);
        }
    }
    missing
}
