//! Settings that come with a dialect: what its design sets by default, and the environment variables that it is configured by. They are
//! part of the flags' layer of configuration, so they can tighten what files say and loosen only what no file decides.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

/// The variables of the dialect `autonous`.
const TIMEOUT_SECONDS: &str = "AUTONOUS_TOOL_TIMEOUT_SECONDS";
const MAX_OUTPUT_LINES: &str = "AUTONOUS_TOOL_MAX_OUTPUT_LINES";
const MAX_OUTPUT_BYTES: &str = "AUTONOUS_TOOL_MAX_OUTPUT_BYTES";
const BASH_DENYLIST: &str = "AUTONOUS_TOOL_BASH_DENYLIST";
const ALLOWED_ROOTS: &str = "AUTONOUS_TOOL_ALLOWED_ROOTS";

/// Its limits: each with its variable and its default.
const LIMITS: [(&str, &str, i64); 3] =
    [("timeout_seconds", TIMEOUT_SECONDS, 30), ("lines", MAX_OUTPUT_LINES, 2000), ("bytes", MAX_OUTPUT_BYTES, 51_200)];

/// The native tools that the dialect `skills` never uses without approval.
const APPROVED_TOOLS: [&str; 4] = ["script", "write", "delete", "fetch"];

/// What a variable of the environment holds.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Adds the settings of these dialects to the settings of the flags, which count more.
pub(crate) fn add_dialect_settings(
    dialects: &[String],
    variables: Variables<'_>,
    workspace: &Path,
    settings: &mut Table,
) -> Result<()> {
    for dialect in dialects {
        match dialect.as_str() {
            "autonous" => add_autonous(variables, workspace, settings)?,
            "skills" => add_skills(settings),
            _ => {}
        }
    }
    Ok(())
}

fn add_autonous(variables: Variables<'_>, workspace: &Path, settings: &mut Table) -> Result<()> {
    let limits = table(settings, "limits");
    for (name, variable, default) in LIMITS {
        let value = positive(variable, variables, default)?;
        limits.entry(name).or_insert(value.into());
    }
    let denied = variables(BASH_DENYLIST).unwrap_or_default();
    let denied = denied.split(',').map(str::trim).filter(|command| !command.is_empty()).map(Value::from);
    list(table(settings, "commands"), "deny").extend(denied);
    let roots = allowed_roots(variables)?;
    ensure!(
        roots.iter().any(|root| workspace.starts_with(root)),
        "The workspace {} is in none of the directories of {ALLOWED_ROOTS}. Add it there, or choose another with --workspace.",
        workspace.display()
    );
    let others = roots.iter().filter(|root| !workspace.starts_with(root));
    let others = others.map(|root| {
        Value::from(Table::from_iter([
            ("path".to_owned(), Value::from(root.display().to_string())),
            ("access".to_owned(), "write".into()),
        ]))
    });
    list(settings, "roots").extend(others);
    Ok(())
}

fn positive(variable: &str, variables: Variables<'_>, default: i64) -> Result<i64> {
    let Some(given) = variables(variable) else { return Ok(default) };
    let number = given.trim().parse().ok().filter(|number: &i64| *number > 0);
    number.with_context(|| format!("{variable} is `{given}`; it has to be a whole number above 0."))
}

/// The directories of the variable, tidy and each once.
fn allowed_roots(variables: Variables<'_>) -> Result<Vec<PathBuf>> {
    let given = variables(ALLOWED_ROOTS).unwrap_or_default();
    let mut roots: Vec<PathBuf> = Vec::new();
    for name in given.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !name.starts_with('/') {
            bail!("{ALLOWED_ROOTS} names `{name}`; every directory in it has to be an absolute path.");
        }
        let root = real(&tidy(Path::new(name)));
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    ensure!(
        !roots.is_empty(),
        "{ALLOWED_ROOTS} isn't set. The dialect `autonous` needs it: absolute paths, separated by commas, such as \
         /workspace,/state."
    );
    Ok(roots)
}

/// The path with no links in it; where it doesn't lead anywhere, as it is.
#[allow(clippy::disallowed_methods, reason = "compares directories that the user named, before there is any gate")]
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The path without `.`, `..` and doubled slashes.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

/// Only reading, unless a preset is chosen on the command line; and what runs, changes or leaves the machine is always approved first.
fn add_skills(settings: &mut Table) {
    settings.entry("preset").or_insert_with(|| "read-only".into());
    let rules = APPROVED_TOOLS.map(|tool| {
        Value::from(Table::from_iter([
            ("decision".to_owned(), Value::from("ask")),
            ("tool".to_owned(), tool.into()),
            ("reason".to_owned(), format!("The dialect `skills` has every use of `{tool}` approved.").into()),
        ]))
    });
    list(settings, "rules").extend(rules);
}

fn table<'a>(settings: &'a mut Table, name: &str) -> &'a mut Table {
    let entry = settings.entry(name).or_insert_with(|| Table::new().into());
    if !entry.is_table() {
        *entry = Table::new().into();
    }
    entry.as_table_mut().expect("it is a table now")
}

fn list<'a>(settings: &'a mut Table, name: &str) -> &'a mut Vec<Value> {
    let entry = settings.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if !entry.is_array() {
        *entry = Value::Array(Vec::new());
    }
    entry.as_array_mut().expect("it is a list now")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(dialect: &str, variables: &[(&str, &str)]) -> Result<Table> {
        let mut settings = Table::new();
        let held =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        add_dialect_settings(&[dialect.to_owned()], &held, Path::new("/srv/work"), &mut settings).map(|()| settings)
    }

    #[test]
    fn the_variables_of_autonous_are_settings() {
        let all = settings(
            "autonous",
            &[
                (ALLOWED_ROOTS, "/srv/work/, /state,/srv/./work,/state/x/.."),
                (TIMEOUT_SECONDS, "5"),
                (BASH_DENYLIST, "rm -rf, mkfs"),
            ],
        );
        let expected = "limits = { timeout_seconds = 5, lines = 2000, bytes = 51200 }\n\
                        commands = { deny = ['rm -rf', 'mkfs'] }\nroots = [{ path = '/state', access = 'write' }]";
        assert_eq!(all.unwrap(), expected.parse::<Table>().unwrap());
    }

    #[test]
    fn wrong_variables_of_autonous_end_the_start() {
        for (variables, expected) in [
            (vec![], "AUTONOUS_TOOL_ALLOWED_ROOTS isn't set"),
            (vec![(ALLOWED_ROOTS, " , ")], "AUTONOUS_TOOL_ALLOWED_ROOTS isn't set"),
            (vec![(ALLOWED_ROOTS, "/srv/work,state")], "has to be an absolute path"),
            (vec![(ALLOWED_ROOTS, "/state")], "/srv/work is in none of the directories"),
            (vec![(ALLOWED_ROOTS, "/srv/work/deeper")], "/srv/work is in none of the directories"),
            (vec![(ALLOWED_ROOTS, "/srv"), (TIMEOUT_SECONDS, "soon")], "AUTONOUS_TOOL_TIMEOUT_SECONDS is `soon`"),
            (vec![(ALLOWED_ROOTS, "/srv"), (MAX_OUTPUT_BYTES, "0")], "AUTONOUS_TOOL_MAX_OUTPUT_BYTES is `0`"),
        ] {
            let error = settings("autonous", &variables).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(settings("claude", &[]).unwrap().is_empty(), "no other dialect needs them");
    }

    #[test]
    fn skills_only_reads_unless_told_otherwise_and_has_its_risks_approved() {
        let all = settings("skills", &[]).unwrap();
        assert_eq!(all["preset"].as_str(), Some("read-only"));
        assert_eq!(all["rules"].as_array().unwrap().len(), APPROVED_TOOLS.len());
        let mut chosen = Table::from_iter([("preset".to_owned(), Value::from("workspace"))]);
        add_skills(&mut chosen);
        assert_eq!(chosen["preset"].as_str(), Some("workspace"));
    }
}
