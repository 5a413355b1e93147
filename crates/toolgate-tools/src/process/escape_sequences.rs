//! Removes terminal escape sequences: colours, cursor movements, titles.

/// The bytes without escape sequences.
pub(super) fn without_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut left = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == 0x1b) {
        left.extend_from_slice(&rest[..at]);
        rest = after_sequence(&rest[at + 1..]);
    }
    left.extend_from_slice(rest);
    left
}

/// The bytes after the sequence that has just begun.
fn after_sequence(bytes: &[u8]) -> &[u8] {
    let end = match bytes.first() {
        // A CSI sequence ends with a byte from `@` to `~`.
        Some(b'[') => bytes.iter().skip(1).position(|byte| (0x40..0x7f).contains(byte)).map(|at| at + 2),
        // An OSC sequence (a title or a link) ends with BEL or with ST, another escape sequence.
        Some(b']' | b'P' | b'_' | b'^') => {
            let bell = bytes.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
            let escape = bytes.windows(2).position(|pair| pair == b"\x1b\\").map(|at| at + 2);
            bell.into_iter().chain(escape).min()
        }
        Some(b'(' | b')' | b'#' | b' ') => Some(2),
        Some(_) => Some(1),
        None => None,
    };
    bytes.get(end.unwrap_or(bytes.len())..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_paints_is_taken_out() {
        for (painted, plain) in [
            ("\x1b[?2004h>>> \x1b[1;31mred\x1b[0m", ">>> red"),
            ("\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "textlink"),
            ("\x1b(Bplain\x1b=", "plain"),
            ("cut \x1b[3", "cut "),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_escapes(painted.as_bytes()), plain.as_bytes(), "{painted:?}");
        }
    }
}
