//! Files that a person mentions in a message, which clients read without a hook.

/// The paths that a message mentions with `@`.
pub(crate) fn mentioned_paths(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '(' | ')' | ','));
    words.filter_map(|word| {
        let path = word.strip_prefix('@')?.trim_end_matches(['.', ':', ';', '!', '?']);
        let path = path.split('#').next().unwrap_or(path);
        (!path.is_empty()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_word_that_begins_with_at() {
        let message = "read @.env, and (@src/a.rs#L3) but not me@example.com; also @\"x\" and @key.pem.";
        assert_eq!(mentioned_paths(message).collect::<Vec<_>>(), [".env", "src/a.rs", "key.pem"]);
    }
}
