//! Bearer tokens for clients. The owner's token is in a file that only the owner can read.

use std::io;
use std::path::Path;

use crate::hex;
use crate::signing_key::{create_secret, random_bytes, read_secret};

/// The prefix of every token, so that people and redaction can recognize it.
const PREFIX: &str = "tgt_";

/// A new random token.
pub fn new_token() -> io::Result<String> {
    Ok(format!("{PREFIX}{}", hex::string(&random_bytes()?)))
}

/// Reads the token at `path`, or creates one there. Concurrent processes all get the same token.
pub fn load_or_create_token(path: &Path) -> io::Result<String> {
    match read_token(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_secret(path, format!("{}\n", new_token()?).as_bytes())?;
            read_token(path)
        }
        other => other,
    }
}

fn read_token(path: &Path) -> io::Result<String> {
    let refuse = || {
        let why = format!("`{}` is not a token; remove it to get a new one", path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let bytes = read_secret(path, PREFIX.len() + hex::LENGTH + 1)?.ok_or_else(refuse)?;
    let text = String::from_utf8(bytes).map_err(|_| refuse())?;
    let token = text.strip_suffix('\n').ok_or_else(refuse)?;
    let is_token = token.strip_prefix(PREFIX).is_some_and(|digits| hex::decode(digits.as_bytes()).is_some());
    is_token.then(|| token.to_owned()).ok_or_else(refuse)
}
