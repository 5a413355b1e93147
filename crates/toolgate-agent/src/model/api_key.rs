//! The API key of a model. It is never shown: not in a log, not in an error, not in a debug print.

use std::fmt;

/// Shorter keys occur in ordinary text: `none`, `ollama`, `x`. Local servers take any.
const SHORTEST_TELLING: usize = 8;

/// A secret that is only revealed to an HTTP header.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key, without surrounding white space; none if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the HTTP header.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The key for redaction; none if it is so short that replacing it would damage ordinary text.
    pub fn telling(&self) -> Option<&str> {
        (self.0.chars().count() >= SHORTEST_TELLING).then_some(&self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = ApiKey::new(" sk-very-secret\n").unwrap();
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "*** Key(***) Some(Key(***))");
        assert_eq!((key.reveal(), ApiKey::new(" \n")), ("sk-very-secret", None));
    }

    #[test]
    fn a_short_key_is_not_replaced_in_text() {
        let telling = |text| ApiKey::new(text).unwrap().telling().map(str::to_owned);
        assert_eq!(telling("sk-very-secret").as_deref(), Some("sk-very-secret"));
        assert_eq!((telling("x"), telling("ollama"), telling("0123456")), (None, None, None));
    }
}
