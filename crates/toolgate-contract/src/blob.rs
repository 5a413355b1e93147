//! A file's bytes together with their hash, so that the same content is hashed once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::sha256;

/// Bytes, and their hash once it is needed. Clones share both.
#[derive(Clone)]
pub struct Blob(Arc<BlobData>);

struct BlobData {
    bytes: Vec<u8>,
    sha256: OnceLock<String>,
}

impl Blob {
    /// The hash, in lower-case hex. Where another thread is at it already, this waits for that.
    pub fn sha256(&self) -> &str {
        self.0.sha256.get_or_init(|| sha256(&self.0.bytes))
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(BlobData { bytes, sha256: OnceLock::new() }))
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.bytes == other.0.bytes
    }
}

impl Eq for Blob {}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_equal_by_their_bytes_and_clones_share_the_hash() {
        let blob = Blob::from(b"text".to_vec());
        let clone = blob.clone();
        assert_eq!(blob.sha256(), sha256("text"));
        assert!(std::ptr::eq(blob.sha256(), clone.sha256()));
        assert_eq!(blob, Blob::from(b"text".to_vec()));
        assert_ne!(blob, Blob::from(b"other".to_vec()));
    }
}
