//! A hint for empty results: files that match exist, but ignore files or dot names excluded them from the search.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolgate_contract::SkipReason;

/// Maximum number of skipped entries examined, so that the hint stays cheap next to a large build directory.
const MAX_LOOKED_AT: usize = 2_000;
/// Above this number of matches, the exact count no longer matters.
const MAX_COUNTED: usize = 100;

/// Matches among the skipped entries.
#[derive(Default)]
pub(crate) struct SkippedMatches {
    looked_at: AtomicUsize,
    ignored: AtomicUsize,
    hidden: AtomicUsize,
}

impl SkippedMatches {
    /// Whether one more entry may be examined.
    pub(crate) fn may_check(&self) -> bool {
        let counted = self.ignored.load(Ordering::Relaxed) + self.hidden.load(Ordering::Relaxed);
        self.looked_at.fetch_add(1, Ordering::Relaxed) < MAX_LOOKED_AT && counted < MAX_COUNTED
    }

    /// Counts a match.
    pub(crate) fn count(&self, why: SkipReason) {
        let counter = match why {
            SkipReason::Ignored => &self.ignored,
            SkipReason::Hidden => &self.hidden,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The hint for the caller; `None` when no skipped entry matches.
    pub(crate) fn note(&self) -> Option<String> {
        let (ignored, hidden) = (self.ignored.load(Ordering::Relaxed), self.hidden.load(Ordering::Relaxed));
        let among = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what} one does")),
            MAX_COUNTED.. => Some(format!("many {what} ones do")),
            count => Some(format!("{count} {what} ones do")),
        };
        let matches: Vec<String> = among(ignored, "ignored").into_iter().chain(among(hidden, "hidden")).collect();
        let switch = match (ignored, hidden) {
            (0, 0) => return None,
            (_, 0) => "`gitignore` to false",
            (0, _) => "`hidden` to true",
            _ => "`gitignore` to false or `hidden` to true",
        };
        Some(format!("Nothing matched, but {}: set {switch} to see them.", matches.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_the_switch() {
        let cases = [
            (0, 0, None),
            (12, 0, Some("Nothing matched, but 12 ignored ones do: set `gitignore` to false to see them.")),
            (0, 1, Some("Nothing matched, but 1 hidden one does: set `hidden` to true to see them.")),
            (
                500,
                2,
                Some(
                    "Nothing matched, but many ignored ones do and 2 hidden ones do: set `gitignore` to false or `hidden` \
                     to true to see them.",
                ),
            ),
        ];
        for (ignored, hidden, expected) in cases {
            let matches = SkippedMatches::default();
            (0..ignored).for_each(|_| matches.count(SkipReason::Ignored));
            (0..hidden).for_each(|_| matches.count(SkipReason::Hidden));
            assert_eq!(matches.note().as_deref(), expected);
        }
    }
}
