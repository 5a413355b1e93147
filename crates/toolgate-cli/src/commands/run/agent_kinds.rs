//! The kinds of subagents that the user has defined, in addition to the built-in ones. A workspace can't define any.
#![allow(clippy::disallowed_methods, reason = "reads the user's own configuration")]

use anyhow::{Context, Result, anyhow};
use toolgate_agent::AgentDefinition;

use toolgate_config::ConfigPaths;

/// One kind per file; the file name is the kind's name.
pub(super) fn user_agent_kinds(sources: &ConfigPaths) -> Result<Vec<AgentDefinition>> {
    let directory = sources.user.with_file_name("agents");
    let files = match std::fs::read_dir(&directory) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} can't be read", directory.display())),
    };
    let mut kinds = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(&path).with_context(|| format!("{} can't be read", path.display()))?;
        kinds.push(AgentDefinition::parse(&name, &text).map_err(|fault| anyhow!(fault))?);
    }
    Ok(kinds)
}
