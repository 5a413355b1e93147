//! What the words of another client's configuration mean here: variables that it expands, where it starts a server, and which values are
//! secrets.
#![allow(clippy::disallowed_methods, reason = "looks at what the configuration of the user's other clients names")]

use std::path::Path;

use toolgate_redact::Redactor;
use toolgate_workspace::WorkspaceLocation;

/// What has to be known to take over a server.
pub(super) struct ImportFacts<'a> {
    pub(super) workspace: &'a Path,
    home: Option<&'a Path>,
    /// Knows secrets by their form.
    pub(super) redactor: Redactor,
}

/// A variable that a server has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImportedVariable {
    /// Its value.
    Plain(String),
    /// The variable of the environment that has its value.
    Secret(String),
}

/// What stands between `${` and `}`.
enum Reference<'t> {
    /// A directory that is known.
    Known(String),
    /// A variable of the environment, and what it is if that isn't set.
    Variable(&'t str, Option<&'t str>),
}

impl<'a> ImportFacts<'a> {
    pub(super) fn of(location: &'a WorkspaceLocation) -> Self {
        let redactor = Redactor::new(Vec::new());
        Self { workspace: &location.directory, home: location.home.as_deref(), redactor }
    }

    /// A word with what its `${…}` stand for. One that only the environment knows would have to be copied, and changes with it.
    pub(super) fn expanded(&self, server: &str, word: &str) -> Result<String, String> {
        let (mut text, mut rest) = (String::new(), word);
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((inside, after)) = behind.split_once('}') else { break };
            text.push_str(before);
            match self.reference(inside) {
                Reference::Known(value) => text.push_str(&value),
                Reference::Variable(name, Some(usual)) if std::env::var_os(name).is_none() => text.push_str(usual),
                Reference::Variable(..) => {
                    return Err(format!(
                        "`{server}` has `${{{inside}}}` in its command or address, which is known to that client alone. Add it with `toolgate mcp add`."
                    ));
                }
            }
            rest = after;
        }
        Ok(text + rest)
    }

    /// A variable of a server's environment. A secret stays where it is.
    pub(super) fn variable(&self, server: &str, name: &str, value: &str) -> Result<ImportedVariable, String> {
        let whole = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|name| !name.contains('}'));
        if let Some(Reference::Variable(source, usual)) = whole.map(|inside| self.reference(inside))
            && (usual.is_none() || std::env::var_os(source).is_some())
        {
            return Ok(ImportedVariable::Secret(source.to_owned()));
        }
        let value = self.expanded(server, value)?;
        match looks_secret(name) || self.redactor.finds_secret(value.as_bytes()) {
            true => Ok(ImportedVariable::Secret(name.to_owned())),
            false => Ok(ImportedVariable::Plain(value)),
        }
    }

    /// Whether the client starts the server in the workspace, and the server needs that: a word of its command line is a path from there.
    pub(super) fn starts_in_workspace(&self, command: &[String], directory: Option<&str>) -> bool {
        let is_here = |word: &String| {
            let may_be_path = !word.starts_with(['-', '/', '~', '@']) && !word.is_empty();
            may_be_path && self.workspace.join(word).exists()
        };
        match directory {
            Some(directory) => self.workspace.join(directory) == self.workspace,
            None => {
                let program = command.first().filter(|program| program.contains('/'));
                program.into_iter().chain(command.iter().skip(1)).any(is_here)
            }
        }
    }

    fn reference<'t>(&self, inside: &'t str) -> Reference<'t> {
        let directory = |path: &Path| Reference::Known(path.display().to_string());
        match (inside, self.home) {
            ("workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR", _) => return directory(self.workspace),
            ("userHome" | "HOME" | "env:HOME", Some(home)) => return directory(home),
            ("pathSeparator" | "/", _) => return Reference::Known("/".into()),
            _ => {}
        }
        let name = inside.strip_prefix("env:").unwrap_or(inside);
        match name.split_once(":-") {
            Some((name, usual)) => Reference::Variable(name, Some(usual)),
            None => Reference::Variable(name, None),
        }
    }
}

/// Whether a variable's name says that its value is a secret.
fn looks_secret(variable: &str) -> bool {
    let name = variable.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASS", "CREDENTIAL", "AUTH"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_clients_mean_the_same_here() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("server.js"), "").unwrap();
        let facts = ImportFacts {
            workspace: workspace.path(),
            home: Some(Path::new("/home/ada")),
            redactor: Redactor::new(Vec::new()),
        };
        let here = workspace.path().display();
        for (word, expected) in [
            ("plain", Ok("plain".to_owned())),
            ("${workspaceFolder}/a", Ok(format!("{here}/a"))),
            ("${HOME}/x:${userHome}/y", Ok("/home/ada/x:/home/ada/y".to_owned())),
            ("${NOT_SET_ANYWHERE:-usual}/z", Ok("usual/z".to_owned())),
            ("${input:token}", Err(())),
            ("${NOT_SET_ANYWHERE}", Err(())),
            ("${unclosed", Ok("${unclosed".to_owned())),
        ] {
            assert_eq!(facts.expanded("s", word).map_err(drop), expected, "{word}");
        }
        let secret = |name: &str| Ok(ImportedVariable::Secret(name.to_owned()));
        let plain = |value: &str| Ok(ImportedVariable::Plain(value.to_owned()));
        assert_eq!(facts.variable("s", "URL", "${env:DB_URL}"), secret("DB_URL"));
        assert_eq!(facts.variable("s", "MODE", "${NOT_SET_ANYWHERE:-fast}"), plain("fast"));
        assert_eq!(facts.variable("s", "CACHE", "${HOME}/.cache"), plain("/home/ada/.cache"));
        assert_eq!(facts.variable("s", "API_KEY", "abc"), secret("API_KEY"));
        let token = ["ghp_16C7e42F292c6912E", "7710c838347Ae178B4a"].concat();
        assert_eq!(facts.variable("s", "GITHUB", &token), secret("GITHUB"), "by its form");
        let starts = |line: &str, directory| {
            facts.starts_in_workspace(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), directory)
        };
        assert!(starts("node server.js", None) && starts("npx -y server-filesystem@1 .", None));
        assert!(!starts("node other.js", None) && !starts("npx -y server.js-server", None));
        assert!(starts("node x.js", Some(".")) && !starts("node server.js", Some("/elsewhere")));
    }
}
