//! A file in which a client keeps what it remembers, and also names MCP servers and rights, so that it can't be read-only. When the
//! client ends, what names programs or gives rights is as it was before: a confined session decides nothing for sessions outside.
#![allow(clippy::disallowed_methods, reason = "restores a file of the person's own")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::commands::init::replace;

/// What counts in every workspace: programs that are started, variables that programs are started with, and rights.
const EVERYWHERE: &[&str] = &[
    "mcpServers",
    "env",
    "hooks",
    "permissions",
    "apiKeyHelper",
    "statusLine",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "bypassPermissionsModeAccepted",
];
/// What is kept for one workspace in `projects`: programs that are started, and what a person has agreed to.
const OF_WORKSPACE: &[&str] = &[
    "mcpServers",
    "allowedTools",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "hasTrustDialogAccepted",
    "hasClaudeMdExternalIncludesApproved",
];

/// The file as it was before the client started.
pub(super) struct GuardedSettings {
    file: PathBuf,
    /// The workspace, by its name in the file.
    workspace: String,
    text: String,
}

impl GuardedSettings {
    pub(super) fn read(file: PathBuf, workspace: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(&file).with_context(|| format!("{} can't be read", file.display()))?;
        Ok(Self { file, workspace: workspace.display().to_string(), text })
    }

    /// Restores what a confined client may not decide. Says what that was.
    pub(super) fn restore(self) -> Result<Vec<String>> {
        let fault = || format!("{} can't be restored", self.file.display());
        let after = std::fs::read_to_string(&self.file).unwrap_or_default();
        let Ok(Value::Object(mut after)) = serde_json::from_str(&after) else {
            replace(&self.file.canonicalize().with_context(fault)?, &self.text)?;
            return Ok(vec!["all of it, since it can't be read any more".to_owned()]);
        };
        let before = serde_json::from_str(&self.text).unwrap_or_default();
        let restored = restore_parts(&before, &mut after, &self.workspace);
        if !restored.is_empty() {
            replace(&self.file.canonicalize().with_context(fault)?, &serde_json::to_string_pretty(&after)?)?;
        }
        Ok(restored)
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

/// Restores the parts that differ, and names them.
fn restore_parts(before: &Map<String, Value>, after: &mut Map<String, Value>, workspace: &str) -> Vec<String> {
    let mut restored = restore_keys(before, after, EVERYWHERE, "");
    let none = Map::new();
    let projects = before.get("projects").and_then(Value::as_object).unwrap_or(&none);
    let Some(now) = after.get_mut("projects").and_then(Value::as_object_mut) else {
        restored.extend(restore_keys(before, after, &["projects"], ""));
        return restored;
    };
    // What others remembered meanwhile of their workspaces stays.
    for (project, own) in now.iter_mut() {
        let Some(own) = own.as_object_mut() else { continue };
        let before = projects.get(project).and_then(Value::as_object).unwrap_or(&none);
        let name = if project == workspace { "this workspace" } else { project.as_str() };
        restored.extend(restore_keys(before, own, OF_WORKSPACE, &format!("projects.{name}.")));
    }
    let gone: Vec<&str> = projects.keys().map(String::as_str).filter(|project| !now.contains_key(*project)).collect();
    restored.extend(restore_keys(projects, now, &gone, "projects."));
    restored
}

fn restore_keys(
    before: &Map<String, Value>,
    after: &mut Map<String, Value>,
    keys: &[&str],
    prefix: &str,
) -> Vec<String> {
    let mut restored = Vec::new();
    for key in keys {
        if before.get(*key) == after.get(*key) {
            continue;
        }
        match before.get(*key) {
            Some(value) => after.insert((*key).to_owned(), value.clone()),
            None => after.shift_remove(*key),
        };
        restored.push(format!("{prefix}{key}"));
    }
    restored
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restored(before: Value, after: Value) -> (Value, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("settings.json");
        std::fs::write(&file, before.to_string()).unwrap();
        let guarded = GuardedSettings::read(file.clone(), Path::new("/w")).unwrap();
        std::fs::write(&file, after.to_string()).unwrap();
        let restored = guarded.restore().unwrap();
        (serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap(), restored)
    }

    #[test]
    fn what_names_programs_or_gives_rights_is_as_it_was_before() {
        let server = json!({ "evil": { "command": "sh" } });
        let before =
            json!({ "starts": 1, "projects": { "/w": { "history": [] }, "/other": { "history": [] }, "/gone": {} } });
        let after = json!({
            "starts": 2,
            "mcpServers": server,
            "projects": {
                "/w": { "history": ["hello"], "mcpServers": server, "hasTrustDialogAccepted": true },
                "/other": { "history": ["elsewhere"], "mcpServers": server },
                "/new": { "hasTrustDialogAccepted": true },
            },
            "env": { "NODE_OPTIONS": "--require /w/evil.js" },
        });
        let (left, restored) = restored(before, after);
        let expected = json!({
            "starts": 2,
            "projects": { "/w": { "history": ["hello"] }, "/other": { "history": ["elsewhere"] }, "/new": {}, "/gone": {} },
        });
        assert_eq!(left, expected);
        assert_eq!(restored.len(), 7, "{restored:?}");
    }

    #[test]
    fn what_was_remembered_of_workspaces_is_not_lost() {
        let before = json!({ "projects": { "/w": { "allowedTools": [] } } });
        let (left, restored) = restored(before.clone(), json!({ "projects": "none" }));
        assert_eq!((left, restored), (before, vec!["projects".to_owned()]));
    }

    #[test]
    fn what_it_remembers_stays() {
        let before = json!({ "mcpServers": { "mine": {} }, "starts": 1 });
        let after = json!({ "mcpServers": { "mine": {} }, "starts": 2, "tips": { "a": 1 } });
        let (left, restored) = restored(before, after.clone());
        assert_eq!((left, restored), (after, Vec::new()));
    }

    #[test]
    fn a_file_that_can_not_be_read_any_more_is_restored_as_a_whole() {
        let (left, restored) = restored(json!({ "starts": 1 }), json!("no settings"));
        assert_eq!((left, restored.len()), (json!({ "starts": 1 }), 1));
    }
}
