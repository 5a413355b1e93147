//! Says which language servers are installed, and how to install one for each language that has none.

use std::collections::BTreeMap;

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
        missing(&known).into_iter().map(|(language, install)| format!("{language}: {install}")).collect();
    let found = match (present.is_empty(), missing.is_empty()) {
        (true, _) => format!("none installed; {}", missing.join("; ")),
        (false, true) => present.join(", "),
        (false, false) => format!("{}; missing for {}", present.join(", "), missing.join("; ")),
    };
    Ok(held(NAME, found))
}

/// The languages that no installed server understands, each with the command that installs the first choice.
fn missing(known: &[InstalledServer]) -> BTreeMap<String, String> {
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for server in known {
        for language in &server.languages {
            missing.entry(language.clone()).or_insert_with(|| server.install.clone());
        }
    }
    let covered = known.iter().filter(|one| one.program.is_some()).flat_map(|one| &one.languages);
    covered.for_each(|language| drop(missing.remove(language)));
    missing
}
