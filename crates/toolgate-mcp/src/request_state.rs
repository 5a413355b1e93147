//! Seals what a client carries from one request to the next, so that it can't be altered, used for another call, or
//! brought by somebody else. The key lives and dies with the process.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A key of 32 random bytes.
pub(crate) struct StateKey([u8; 32]);

/// What a state is good for: one session's one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateBinding<'a> {
    /// The session's id.
    pub(crate) session: &'a str,
    /// The method of the request.
    pub(crate) method: &'a str,
    /// The request's own params, as [`digest`] tells them.
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

    /// The content, readable by anyone and good only for what it is bound to.
    pub(crate) fn seal(&self, content: &Value, bound: &StateBinding<'_>) -> String {
        let content = URL_SAFE_NO_PAD.encode(content.to_string());
        let seal = URL_SAFE_NO_PAD.encode(self.mac(&content, bound).finalize().into_bytes());
        format!("{content}.{seal}")
    }

    /// The content of a state, if it was sealed here for exactly this.
    pub(crate) fn open(&self, state: &str, bound: &StateBinding<'_>) -> Option<Value> {
        let (content, seal) = state.split_once('.')?;
        self.mac(content, bound).verify_slice(&URL_SAFE_NO_PAD.decode(seal).ok()?).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(content).ok()?).ok()
    }

    fn mac(&self, content: &str, bound: &StateBinding<'_>) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length of key is good for this");
        for part in [content, bound.session, bound.method, &bound.params] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// What a request asks for, whatever it brings along for the way: the same for both rounds of one call.
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
        let bound = StateBinding { session: "s", method: "tools/call", params: delete };
        let state = key.seal(&json!({ "call": 1 }), &bound);
        let again = params(json!({
            "arguments": { "all": true, "path": "a" }, "name": "delete", "requestState": state, "_meta": { "n": 1 },
        }));
        assert_eq!(key.open(&state, &StateBinding { params: again, ..bound.clone() }), Some(json!({ "call": 1 })));
        let other = params(json!({ "name": "delete", "arguments": { "path": "b", "all": true } }));
        for (what, opened) in [
            ("altered", key.open(&format!("{state}A"), &bound)),
            ("cut", key.open(state.split_once('.').unwrap().0, &bound)),
            ("other content", key.open(&format!("e30.{}", state.split_once('.').unwrap().1), &bound)),
            ("another session", key.open(&state, &StateBinding { session: "t", ..bound.clone() })),
            ("another method", key.open(&state, &StateBinding { method: "prompts/get", ..bound.clone() })),
            ("other arguments", key.open(&state, &StateBinding { params: other, ..bound.clone() })),
            ("another process", StateKey::fresh().unwrap().open(&state, &bound)),
        ] {
            assert_eq!(opened, None, "{what}");
        }
    }
}
