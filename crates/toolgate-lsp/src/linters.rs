//! Linters: programs that are run once over files and print what they find. They are confined like servers; one that runs
//! code of the workspace, such as a configuration in JavaScript or a build script, only runs where the workspace is trusted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolgate_contract::{
    CodeDiagnostic, CodeSeverity, LaunchSpec, ServerHost, ServerReport, ServerStatus, StartDirectory, ToolError,
    WorkspacePath,
};

use crate::catalog::{LinterEntry, LinterOutput, is_named};
use crate::documents::read_source;
use crate::languages::LanguageServers;
use crate::locations::shortened;

/// How long a linter may take.
const LINT_TIMEOUT: Duration = Duration::from_secs(60);

/// What linters found.
pub(crate) struct LintedFiles {
    pub(crate) items: Vec<CodeDiagnostic>,
    /// The linters that ran.
    pub(crate) ran: Vec<ServerReport>,
}

impl LanguageServers {
    /// What the installed linters say of these files.
    pub(crate) async fn lint(
        &self,
        places: &[WorkspacePath],
        host: &dyn ServerHost,
        notes: &mut Vec<String>,
    ) -> Result<LintedFiles, ToolError> {
        let mut linted = LintedFiles { items: Vec::new(), ran: Vec::new() };
        for linter in &self.catalog.linters {
            let suited: Vec<&WorkspacePath> =
                places.iter().filter(|place| linter.files.iter().any(|ending| is_named(&place.path, ending))).collect();
            let mut by_root: BTreeMap<WorkspacePath, Vec<&WorkspacePath>> = BTreeMap::new();
            for place in suited {
                if let Some(root) = lint_root(linter, host, place) {
                    by_root.entry(root).or_default().push(place);
                }
            }
            if by_root.is_empty() {
                continue;
            }
            if linter.runs_code && !self.is_trusted {
                let name = &linter.name;
                notes.push(format!("`{name}` runs code of the workspace, so it waits for `toolgate trust`."));
                continue;
            }
            let Some(program) = linter.command.first().and_then(|name| self.machine.find_program(name)) else {
                notes.push(format!("`{}` isn't installed: {}", linter.name, linter.install));
                continue;
            };
            for (root, places) in by_root {
                match self.run_linter(linter, &program, &root, &places, host).await {
                    Ok(items) => linted.items.extend(items),
                    Err(error) => {
                        notes.push(format!("`{}`: {}", linter.name, error.message));
                        continue;
                    }
                }
                let report = ServerReport { server: linter.name.clone(), status: ServerStatus::Ready, progress: None };
                if !linted.ran.contains(&report) {
                    linted.ran.push(report);
                }
            }
        }
        Ok(linted)
    }

    async fn run_linter(
        &self,
        linter: &LinterEntry,
        program: &std::path::Path,
        root: &WorkspacePath,
        places: &[&WorkspacePath],
        host: &dyn ServerHost,
    ) -> Result<Vec<CodeDiagnostic>, ToolError> {
        let relative = |place: &&WorkspacePath| {
            let path = place.path.strip_prefix(&root.path).unwrap_or(&place.path).trim_start_matches('/');
            path.to_owned()
        };
        let files: Vec<String> = places.iter().map(relative).collect();
        let arguments: Vec<String> = linter.command[1..]
            .iter()
            .flat_map(|word| if word == "{files}" { files.clone() } else { vec![word.clone()] })
            .collect();
        let home = self.machine.home(&linter.name)?;
        let inherits = ["CARGO_HOME", "RUSTUP_HOME"].map(str::to_owned);
        let spec = LaunchSpec {
            directory: StartDirectory::Workspace(root.clone()),
            ..self.program_spec(program, &arguments, &home, &linter.environment, &inherits)
        };
        let done = host.run_program(spec, LINT_TIMEOUT).await?;
        let found = findings(linter, &done.stdout).ok_or_else(|| {
            let words = String::from_utf8_lossy(&done.stderr).chars().take(300).collect::<String>();
            ToolError::new(
                toolgate_contract::ErrorCode::ServerError,
                format!("it ended with {} and can't be understood. Its words: {}", done.exit_code, words.trim()),
            )
        })?;
        Ok(found.into_iter().filter_map(|found| located(found, root, places, host)).collect())
    }
}

/// Where a linter starts: the nearest directory with one of its markers, or the root. None if it needs a project and there
/// is none.
fn lint_root(linter: &LinterEntry, host: &dyn ServerHost, place: &WorkspacePath) -> Option<WorkspacePath> {
    let files = host.files();
    let has_marker = |directory: &WorkspacePath| {
        linter.markers.iter().any(|marker| files.status(&directory.join(marker)).is_ok_and(|found| found.is_some()))
    };
    match linter.markers.is_empty() {
        true => Some(WorkspacePath { root: place.root, path: String::new() }),
        false => place.ancestors().rfind(has_marker),
    }
}

/// A finding with the path as the linter writes it.
fn located(
    mut found: CodeDiagnostic,
    root: &WorkspacePath,
    places: &[&WorkspacePath],
    host: &dyn ServerHost,
) -> Option<CodeDiagnostic> {
    let place = places.iter().find(|place| {
        let whole = root.join(&found.path).path;
        place.path == whole || found.path.ends_with(&format!("/{}", place.path)) || place.path == found.path
    })?;
    found.path = host.files().shown(place);
    let source = read_source(host, place).ok().flatten();
    found.text = source.and_then(|source| source.line(found.line.saturating_sub(1)).map(shortened));
    Some(found)
}

/// What a linter printed; none if that isn't its usual form.
fn findings(linter: &LinterEntry, output: &[u8]) -> Option<Vec<CodeDiagnostic>> {
    let text = std::str::from_utf8(output).ok()?;
    match linter.output {
        LinterOutput::Ruff => {
            let items: Vec<Value> = serde_json::from_str(text).ok()?;
            Some(items.iter().filter_map(|item| ruff(&linter.name, item)).collect())
        }
        LinterOutput::Shellcheck => {
            let items: Vec<Value> = serde_json::from_str(text).ok()?;
            Some(items.iter().filter_map(|item| shellcheck(&linter.name, item)).collect())
        }
        LinterOutput::Eslint => {
            let files: Vec<Value> = serde_json::from_str(text).ok()?;
            Some(files.iter().flat_map(|file| eslint(&linter.name, file)).collect())
        }
        LinterOutput::Cargo => {
            let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            (!messages.is_empty()).then(|| messages.iter().filter_map(|message| cargo(&linter.name, message)).collect())
        }
    }
}

fn diagnostic(
    source: &str,
    path: &Value,
    line: &Value,
    severity: CodeSeverity,
    message: &Value,
    code: Option<String>,
) -> Option<CodeDiagnostic> {
    Some(CodeDiagnostic {
        path: path.as_str()?.to_owned(),
        line: line.as_u64().unwrap_or(1) as u32,
        column: 1,
        severity,
        message: message.as_str()?.to_owned(),
        source: Some(source.to_owned()),
        code,
        text: None,
    })
}

fn ruff(source: &str, item: &Value) -> Option<CodeDiagnostic> {
    let code = item["code"].as_str().map(str::to_owned);
    // Without a code it is a syntax error.
    let severity = match code.as_deref() {
        None | Some("invalid-syntax") => CodeSeverity::Error,
        Some(_) => CodeSeverity::Warning,
    };
    diagnostic(source, &item["filename"], &item["location"]["row"], severity, &item["message"], code)
}

fn shellcheck(source: &str, item: &Value) -> Option<CodeDiagnostic> {
    let severity = match item["level"].as_str() {
        Some("error") => CodeSeverity::Error,
        Some("warning") => CodeSeverity::Warning,
        Some("info") => CodeSeverity::Information,
        _ => CodeSeverity::Hint,
    };
    let code = item["code"].as_u64().map(|number| format!("SC{number}"));
    diagnostic(source, &item["file"], &item["line"], severity, &item["message"], code)
}

fn eslint(source: &str, file: &Value) -> Vec<CodeDiagnostic> {
    let one = |message: &Value| {
        let severity = if message["severity"] == 2 { CodeSeverity::Error } else { CodeSeverity::Warning };
        let code = message["ruleId"].as_str().map(str::to_owned);
        diagnostic(source, &file["filePath"], &message["line"], severity, &message["message"], code)
    };
    file["messages"].as_array().into_iter().flatten().filter_map(one).collect()
}

fn cargo(source: &str, message: &Value) -> Option<CodeDiagnostic> {
    let message = message.get("message").filter(|message| message.is_object())?;
    let spans = message["spans"].as_array()?;
    let span = spans.iter().find(|span| span["is_primary"] == true).or(spans.first())?;
    let severity = match message["level"].as_str() {
        Some("error" | "error: internal compiler error") => CodeSeverity::Error,
        Some("warning") => CodeSeverity::Warning,
        Some("note") => CodeSeverity::Information,
        _ => CodeSeverity::Hint,
    };
    let code = message["code"]["code"].as_str().map(str::to_owned);
    diagnostic(source, &span["file_name"], &span["line_start"], severity, &message["message"], code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_linters_form_is_read() {
        let of = |output, text: &str| {
            let linter = LinterEntry { name: "l".into(), output, ..LinterEntry::default() };
            findings(&linter, text.as_bytes()).map(|found| {
                found.into_iter().map(|one| (one.path, one.line, one.severity, one.code)).collect::<Vec<_>>()
            })
        };
        let ruff = r#"[{"code":"F401","filename":"/w/a.py","location":{"row":3,"column":1},"message":"unused"}]"#;
        assert_eq!(
            of(LinterOutput::Ruff, ruff).unwrap(),
            [("/w/a.py".into(), 3, CodeSeverity::Warning, Some("F401".into()))]
        );
        let shell = r#"[{"file":"a.sh","line":2,"level":"info","code":2086,"message":"quote"}]"#;
        assert_eq!(
            of(LinterOutput::Shellcheck, shell).unwrap(),
            [("a.sh".into(), 2, CodeSeverity::Information, Some("SC2086".into()))]
        );
        let eslint =
            r#"[{"filePath":"/w/a.js","messages":[{"ruleId":"no-undef","severity":2,"message":"x","line":4}]}]"#;
        assert_eq!(
            of(LinterOutput::Eslint, eslint).unwrap(),
            [("/w/a.js".into(), 4, CodeSeverity::Error, Some("no-undef".into()))]
        );
        let cargo = r#"{"reason":"compiler-message","message":{"message":"m","level":"warning","code":{"code":"dead_code"},"spans":[{"is_primary":true,"file_name":"src/a.rs","line_start":7}]}}
{"reason":"build-finished","success":true}"#;
        assert_eq!(
            of(LinterOutput::Cargo, cargo).unwrap(),
            [("src/a.rs".into(), 7, CodeSeverity::Warning, Some("dead_code".into()))]
        );
        assert_eq!(of(LinterOutput::Ruff, "error: no such option"), None);
        assert_eq!(of(LinterOutput::Cargo, ""), None);
    }
}
