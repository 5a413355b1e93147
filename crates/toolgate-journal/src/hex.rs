//! Hashes as text: 64 lower-case hexadecimal digits.

/// A SHA-256 hash.
pub(crate) type Hash = [u8; 32];

/// The length of a hash as text.
pub(crate) const LENGTH: usize = 64;

/// The text of a hash.
pub(crate) fn encode(hash: &Hash) -> [u8; LENGTH] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; LENGTH];
    for (pair, byte) in text.chunks_exact_mut(2).zip(hash) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// The text of a hash, as a string.
pub(crate) fn string(hash: &Hash) -> String {
    encode(hash).iter().map(|&digit| char::from(digit)).collect()
}

/// The hash behind a text; none unless it is exactly 64 lower-case digits.
pub(crate) fn decode(text: &[u8]) -> Option<Hash> {
    if text.len() != LENGTH {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_hash_lead_to_each_other_and_nothing_else_does() {
        let hash: Hash = std::array::from_fn(|i| (i * 37) as u8);
        assert_eq!(decode(&encode(&hash)), Some(hash));
        assert_eq!(string(&hash).as_bytes(), encode(&hash));
        assert_eq!(decode("A".repeat(64).as_bytes()), None, "upper case is another text");
        assert_eq!(decode("a".repeat(63).as_bytes()), None);
        assert_eq!(decode("g".repeat(64).as_bytes()), None);
    }
}
