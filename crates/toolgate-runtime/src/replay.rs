//! The shell command that repeats a call with approval. It continues the run of the call, since rehearsals and stored
//! output belong to their run. Calls that only the session itself can make have none.

use serde_json::Value;
use toolgate_contract::{Call, Effect, LocatedEffect, Right, ToolError};

use crate::session::Session;

/// Longer arguments are stored in a file instead of on the command line.
const MAX_INLINE_BYTES: usize = 2_000;

/// How a call is repeated from a shell: the program, and the options for the same workspace and policy.
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
    /// The command for this call with these effects; none where only this session can make the call. Arguments that
    /// contain a secret, or are long, go into a private file of the run.
    pub(crate) fn command(
        &self,
        call: &Call,
        effects: &[LocatedEffect],
        wider: &[Effect],
        redacted: &Value,
        session: &Session,
    ) -> Result<Option<String>, ToolError> {
        let touches = |wanted: fn(&Effect) -> bool| effects.iter().any(|located| wanted(&located.effect));
        if touches(belongs_to_session) {
            return Ok(None);
        }
        let mut words = self.program.clone();
        words.extend(["call".into(), "--approve".into(), "--run".into(), session.run.clone()]);
        if touches(|effect| matches!(effect, Effect::Note { .. })) {
            words.extend(["--session".into(), session.id.clone()]);
        }
        if let Some(version) = &call.version {
            words.extend(["--version-req".into(), version.to_string()]);
        }
        for right in wider.iter().filter_map(Right::of) {
            words.extend(["--permit".into(), right.to_string()]);
        }
        words.push(call.name.clone());
        let json = call.args.to_string();
        if *redacted == call.args && json.len() <= MAX_INLINE_BYTES {
            words.push(json);
        } else {
            words.push("--args-file".into());
            words.push(session.recorder.keep_pending(&call.tool_call_id, json.as_bytes())?);
        }
        Ok(Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")))
    }
}

/// Whether only the session that asked can do this: its processes, agents and skills end with it.
fn belongs_to_session(effect: &Effect) -> bool {
    match effect {
        Effect::Attend { .. } | Effect::Feed { .. } | Effect::Skill { .. } | Effect::Delegate { .. } => true,
        Effect::Read { .. }
        | Effect::Write { .. }
        | Effect::Delete { .. }
        | Effect::Entry { .. }
        | Effect::Restore { .. }
        | Effect::Run { .. }
        | Effect::Connect { .. }
        | Effect::Unsandboxed { .. }
        | Effect::UseServer { .. }
        | Effect::Speak
        | Effect::Recall { .. }
        | Effect::Note { .. } => false,
    }
}

/// Quotes a word so that a POSIX shell reads it unchanged.
pub fn quoted(word: &str) -> String {
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
