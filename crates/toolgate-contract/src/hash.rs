//! The hash that identifies content everywhere: SHA-256, in lower-case hex.

use std::io::{ErrorKind, Read};

use sha2::{Digest, Sha256};

/// Bytes per read; they fit the processor's cache.
const PIECE: usize = 128 * 1024;

/// The hash of some content.
pub fn sha256(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content))
}

/// The hash of everything that can be read, and the number of bytes, without buffering it all.
pub fn sha256_of(mut reader: impl Read) -> std::io::Result<(String, u64)> {
    let (mut hash, mut length, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok((hex(&hash.finalize()), length)),
            Ok(count) => {
                hash.update(&piece[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nothing_is_well_known() {
        assert_eq!(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn what_is_read_piece_by_piece_has_the_same_hash() {
        let much = vec![7; 3 * PIECE + 5];
        assert_eq!(sha256_of(&much[..]).unwrap(), (sha256(&much), much.len() as u64));
    }

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa5, 0xff]), "000fa5ff");
    }
}
