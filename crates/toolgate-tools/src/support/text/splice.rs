//! A change to a text: these bytes in place of that range.

use std::ops::Range;

/// New bytes for a range of old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    /// The range to replace.
    pub(crate) range: Range<usize>,
    /// The new bytes.
    pub(crate) bytes: Vec<u8>,
}

/// The text with every splice applied. The splices are in order and don't overlap.
pub(crate) fn spliced(text: &[u8], splices: &[Splice]) -> Vec<u8> {
    let added: usize = splices.iter().map(|splice| splice.bytes.len()).sum();
    let mut after = Vec::with_capacity(text.len() + added);
    let mut copied = 0;
    for splice in splices {
        after.extend_from_slice(&text[copied..splice.range.start]);
        after.extend_from_slice(&splice.bytes);
        copied = splice.range.end;
    }
    after.extend_from_slice(&text[copied..]);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ranges_change() {
        let splices = [Splice { range: 0..1, bytes: b"X".to_vec() }, Splice { range: 3..3, bytes: b"new".to_vec() }];
        assert_eq!(spliced(b"abcdef", &splices), b"Xbcnewdef");
        assert_eq!(spliced(b"abc", &[]), b"abc");
    }
}
