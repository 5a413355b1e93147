//! Hashes large content on another thread while a tool works on it.

use tokio::runtime::Handle;
use toolgate_contract::Blob;

/// From this size on, hashing takes much longer than waking a thread.
const MUCH: usize = 256 * 1024;

/// Starts hashing on another thread, if there is much to hash. [`Blob::sha256`] waits until the hash is ready.
pub(crate) fn hash_ahead(blob: &Blob) {
    // Without a runtime, the first call of `sha256` computes the hash.
    if let (MUCH.., Ok(runtime)) = (blob.len(), Handle::try_current()) {
        let blob = blob.clone();
        runtime.spawn_blocking(move || blob.sha256().len());
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::sha256;

    use super::*;

    #[tokio::test]
    async fn a_hash_that_was_begun_ahead_is_the_same() {
        for size in [0, MUCH, 4 * MUCH] {
            let blob = Blob::from(vec![7; size]);
            hash_ahead(&blob);
            assert_eq!(blob.sha256(), sha256(vec![7; size]));
        }
    }
}
