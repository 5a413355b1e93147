//! A pattern of a built-in table that a single word is compared with, without regard to letter case.

use std::sync::OnceLock;

use globset::{GlobBuilder, GlobMatcher};

/// Plain text, or a glob. Most are plain text, and a glob is compiled when a word first gets as far as it: that takes
/// longer than everything else that is done with a short command.
pub(super) struct WordPattern {
    text: String,
    /// None for plain text.
    glob: Option<OnceLock<GlobMatcher>>,
}

impl WordPattern {
    pub(super) fn new(text: &str) -> Self {
        let is_glob = text.contains(['*', '?', '[', '{', '\\']);
        Self { text: text.to_owned(), glob: is_glob.then(OnceLock::new) }
    }

    pub(super) fn is_match(&self, word: &str) -> bool {
        let Some(glob) = &self.glob else { return self.text.eq_ignore_ascii_case(word) };
        glob.get_or_init(|| self.compile()).is_match(word)
    }

    fn compile(&self) -> GlobMatcher {
        let glob = GlobBuilder::new(&self.text).case_insensitive(true).build();
        glob.expect("the built-in tables are tested").compile_matcher()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_and_globs_are_compared_without_regard_to_case() {
        for (pattern, word, expected) in [
            ("mkfs", "mkfs", true),
            ("mkfs", "MKFS", true),
            ("mkfs", "mkfs.ext4", false),
            ("mkfs.*", "mkfs.ext4", true),
            ("/dev/*", "/DEV/sda", true),
            ("/dev/*", "/devices", false),
            ("{a,b}", "B", true),
        ] {
            assert_eq!(WordPattern::new(pattern).is_match(word), expected, "{pattern} {word}");
        }
    }
}
