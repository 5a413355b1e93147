//! A file's bytes together with their hash, so that the same content is hashed once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;

use crate::sha256;

/// From this size on, hashing takes much longer than waking a thread.
const MUCH: usize = 256 * 1024;

/// Bytes, and their hash once it is needed. Clones share both.
#[derive(Clone)]
pub struct Blob(Arc<BlobData>);

struct BlobData {
    bytes: Vec<u8>,
    sha256: OnceLock<String>,
}

impl Blob {
    /// The hash, in lower-case hex.
    pub fn sha256(&self) -> &str {
        self.0.sha256.get_or_init(|| sha256(&self.0.bytes))
    }

    /// Starts hashing on another thread, if there is much to hash. [`Blob::sha256`] waits until the hash is ready.
    pub fn hash_ahead(&self) {
        // Without a runtime, the first call of `sha256` computes the hash.
        if let (MUCH.., Ok(runtime)) = (self.0.bytes.len(), Handle::try_current()) {
            let blob = self.clone();
            runtime.spawn_blocking(move || blob.sha256().len());
        }
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

    #[tokio::test]
    async fn a_hash_that_was_begun_ahead_is_the_same() {
        for size in [0, MUCH, 4 * MUCH] {
            let blob = Blob::from(vec![7; size]);
            blob.hash_ahead();
            assert_eq!(blob.sha256(), sha256(vec![7; size]));
        }
    }
}
