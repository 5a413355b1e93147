//! Quotes words for a shell.

/// A word quoted so that a shell takes it literally: not as an assignment, a pattern or several words.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, expected) in [
            ("a-b/c.py", "a-b/c.py"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("A=1", "'A=1'"),
            ("~", "'~'"),
            ("$(rm)", "'$(rm)'"),
            ("two\nlines", "'two\nlines'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
