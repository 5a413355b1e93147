//! Tokens, compared by digest and in constant time, so that timing reveals nothing.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// What the server keeps of a token.
pub(crate) type TokenDigest = [u8; 32];

/// A secret that authenticates a client. Its `Debug` hides it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to be sent to its holder.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> TokenDigest {
        digest(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

pub(crate) fn digest(text: &str) -> TokenDigest {
    Sha256::digest(text).into()
}

/// Compares all bytes, also after a difference.
pub(crate) fn constant_time_eq(one: &TokenDigest, other: &TokenDigest) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_the_same_and_none_shows_itself() {
        let token = Token::new("tgt_secret");
        assert!(constant_time_eq(&token.digest(), &digest("tgt_secret")));
        assert!(!constant_time_eq(&token.digest(), &digest("tgt_secreT")));
        assert!(!constant_time_eq(&token.digest(), &digest("")));
        assert_eq!(format!("{token:?}"), "Token(***)");
    }
}
