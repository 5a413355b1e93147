//! Signs the state that a client carries from one request to the next, so that it can't be altered, used for another
//! call, or sent by another client. The key lives as long as the process.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A key of 32 random bytes.
pub(crate) struct StateKey([u8; 32]);

/// What a state is valid for: one call of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateBinding<'a> {
    /// The session's id.
    pub(crate) session: &'a str,
    /// The method of the request.
    pub(crate) method: &'a str,
    /// The [`digest`] of the request's own params.
    pub(crate) params: String,
}

impl StateKey {
    /// A fresh key.
    pub(crate) fn fresh() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::io::retry_on_intr(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))?;
        }
        Ok(Self(bytes))
    }

    /// Signs the content, which stays readable, for this binding.
    pub(crate) fn sign(&self, content: &Value, binding: &StateBinding<'_>) -> String {
        let content = URL_SAFE_NO_PAD.encode(content.to_string());
        let signature = URL_SAFE_NO_PAD.encode(self.mac(&content, binding).finalize().into_bytes());
        format!("{content}.{signature}")
    }

    /// The content of a state, if this key signed it for exactly this binding.
    pub(crate) fn verify(&self, state: &str, binding: &StateBinding<'_>) -> Option<Value> {
        let (content, signature) = state.split_once('.')?;
        self.mac(content, binding).verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()
    }

    fn mac(&self, content: &str, binding: &StateBinding<'_>) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in [content, binding.session, binding.method, &binding.params] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// A digest of a request's own params: the same for the first request of a call and for the one with the answers.
pub(crate) fn digest(params: &Map<String, Value>) -> String {
    let own: Map<String, Value> = params
        .iter()
        .filter(|(name, _)| !["_meta", "inputResponses", "requestState"].contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut own = Value::Object(own);
    own.sort_all_objects();
    URL_SAFE_NO_PAD.encode(Sha256::digest(own.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_good_for_its_own_call_only() {
        let key = StateKey::fresh().unwrap();
        let params = |value: Value| digest(value.as_object().unwrap());
        let delete = params(json!({ "name": "delete", "arguments": { "path": "a", "all": true } }));
        let binding = StateBinding { session: "s", method: "tools/call", params: delete };
        let state = key.sign(&json!({ "call": 1 }), &binding);
        let again = params(json!({
            "arguments": { "all": true, "path": "a" }, "name": "delete", "requestState": state, "_meta": { "n": 1 },
        }));
        assert_eq!(key.verify(&state, &StateBinding { params: again, ..binding.clone() }), Some(json!({ "call": 1 })));
        let other = params(json!({ "name": "delete", "arguments": { "path": "b", "all": true } }));
        for (what, opened) in [
            ("altered", key.verify(&format!("{state}A"), &binding)),
            ("cut", key.verify(state.split_once('.').unwrap().0, &binding)),
            ("other content", key.verify(&format!("e30.{}", state.split_once('.').unwrap().1), &binding)),
            ("another session", key.verify(&state, &StateBinding { session: "t", ..binding.clone() })),
            ("another method", key.verify(&state, &StateBinding { method: "prompts/get", ..binding.clone() })),
            ("other arguments", key.verify(&state, &StateBinding { params: other, ..binding.clone() })),
            ("another process", StateKey::fresh().unwrap().verify(&state, &binding)),
        ] {
            assert_eq!(opened, None, "{what}");
        }
    }
}
