//! The command that repeats a call with approval (C-17), made so that it works when it is pasted into a shell.

use serde_json::Value;
use toolgate_contract::{Call, Effect, Right, ToolError};

use crate::session::Recorder;

/// Arguments longer than this are kept in a file instead of standing on the command line.
const LONGEST_INLINE: usize = 2_000;

/// How a call is repeated from a shell: the program and the options that bring it to the same workspace and policy.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Such as `["toolgate", "--workspace", "/home/ada/project"]`.
    pub program: Vec<String>,
}

impl Default for Replay {
    fn default() -> Self {
        Self { program: vec!["toolgate".into()] }
    }
}

impl Replay {
    /// The command for this call. Arguments that hold a secret, or are long, go into a private file of the run.
    pub(crate) fn command(
        &self,
        call: &Call,
        wider: &[Effect],
        redacted: &Value,
        recorder: &dyn Recorder,
    ) -> Result<String, ToolError> {
        let mut words = self.program.clone();
        words.extend(["call".into(), "--approve".into()]);
        if let Some(version) = &call.version {
            words.extend(["--version-req".into(), version.to_string()]);
        }
        for right in wider.iter().filter_map(Right::of) {
            words.extend(["--permit".into(), right.to_string()]);
        }
        words.push(call.name.clone());
        let json = call.args.to_string();
        if *redacted == call.args && json.len() <= LONGEST_INLINE {
            words.push(json);
        } else {
            words.push("--args-file".into());
            words.push(recorder.keep_pending(&call.tool_call_id, json.as_bytes())?);
        }
        Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }
}

/// A word as a POSIX shell reads it back unchanged.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,@%+^".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, expected) in [
            ("read", "read"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            (r#"{"path":"$(rm)"}"#, r#"'{"path":"$(rm)"}'"#),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
