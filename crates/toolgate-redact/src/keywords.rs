//! Finds keywords in text, all of them at once and without regard to case. This is the part that every byte of output
//! passes, and a step of the automaton has to wait for the one before; so a longer text is read at several places side
//! by side. A program that sees little text reads it with the automaton that is built soonest; the fastest one takes longer
//! to build than some programs take to end.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

/// How many places of a text are read side by side.
const LANES: usize = 8;

/// After so many bytes the fastest automaton pays off.
const WORTH_A_DFA: usize = 64 * 1024;

/// A set of keywords.
pub(crate) struct Keywords {
    soonest: NFA,
    /// The same automaton as a table, once there was enough to read.
    fastest: OnceLock<DFA>,
    /// How many bytes were read with the one that was there soonest.
    read: AtomicUsize,
    /// In lower case and sorted, to see whether a text ends inside one.
    sorted: Vec<Vec<u8>>,
    longest: usize,
}

/// A keyword in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeywordMatch {
    /// Which one, by its place in the list.
    pub(crate) keyword: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Keywords {
    pub(crate) fn new(keywords: &[&str]) -> Self {
        let soonest = NFA::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(keywords)
            .expect("a few hundred keywords fit in an automaton");
        let mut sorted: Vec<Vec<u8>> = keywords.iter().map(|keyword| keyword.as_bytes().to_ascii_lowercase()).collect();
        sorted.sort_unstable();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or(0);
        Self { soonest, fastest: OnceLock::new(), read: AtomicUsize::new(0), sorted, longest }
    }

    /// Every keyword in `bytes`, also inside another, in the order of their ends.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<KeywordMatch> {
        match self.fastest.get() {
            Some(fastest) => KeywordReader::of(fastest, self.longest).find(bytes),
            None if self.read.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len() < WORTH_A_DFA => {
                KeywordReader::of(&self.soonest, self.longest).find(bytes)
            }
            None => KeywordReader::of(self.fastest(), self.longest).find(bytes),
        }
    }

    fn fastest(&self) -> &DFA {
        let build = || DFA::builder().build_from_noncontiguous(&self.soonest);
        self.fastest.get_or_init(|| build().expect("a few hundred keywords fit in an automaton"))
    }

    /// How many bytes at the end of `bytes` may be the beginning of a keyword.
    pub(crate) fn unfinished(&self, bytes: &[u8]) -> usize {
        let tail = bytes[bytes.len() - bytes.len().min(self.longest.saturating_sub(1))..].to_ascii_lowercase();
        let begins_keyword = |suffix: &[u8]| {
            let next = self.sorted.partition_point(|keyword| keyword.as_slice() <= suffix);
            self.sorted.get(next).is_some_and(|keyword| keyword.starts_with(suffix))
        };
        (0..tail.len()).find(|&at| begins_keyword(&tail[at..])).map_or(0, |at| tail.len() - at)
    }
}

/// Reads text with one of the automatons.
struct KeywordReader<'a, A> {
    automaton: &'a A,
    start: StateID,
    longest: usize,
}

impl<'a, A: Automaton> KeywordReader<'a, A> {
    fn of(automaton: &'a A, longest: usize) -> Self {
        let start = automaton.start_state(Anchored::No).expect("the automaton can start anywhere in a text");
        Self { automaton, start, longest }
    }

    fn find(&self, bytes: &[u8]) -> Vec<KeywordMatch> {
        let mut found = Vec::new();
        let lane = bytes.len() / LANES;
        // A lane pays off when it is much longer than what it has to read in advance.
        let (read, state) = match lane >= self.longest * 4 {
            true => (lane * LANES, self.read_lanes(&bytes[..lane * LANES], &mut found)),
            false => (0, self.start),
        };
        self.read(&bytes[read..], read, state, &mut found);
        found
    }

    /// Reads `LANES` parts of equal length side by side. Returns the automaton's state after the last.
    fn read_lanes(&self, bytes: &[u8], found: &mut Vec<KeywordMatch>) -> StateID {
        let length = bytes.len() / LANES;
        let lanes: [&[u8]; LANES] = array::from_fn(|lane| &bytes[lane * length..(lane + 1) * length]);
        // Each lane begins as if it had read all that precedes it: a keyword's length of it is enough.
        let mut states = [self.start; LANES];
        for ahead in (1..=self.longest).rev() {
            for lane in 1..LANES {
                let byte = bytes[lane * length - ahead];
                states[lane] = self.automaton.next_state(Anchored::No, states[lane], byte);
            }
        }
        let mut notes: [Vec<KeywordMatch>; LANES] = Default::default();
        (0..length).for_each(|at| {
            let mut special = false;
            for lane in 0..LANES {
                states[lane] = self.automaton.next_state(Anchored::No, states[lane], lanes[lane][at]);
                special |= self.automaton.is_special(states[lane]);
            }
            if special {
                for lane in 0..LANES {
                    self.note(states[lane], lane * length + at + 1, &mut notes[lane]);
                }
            }
        });
        found.extend(notes.into_iter().flatten());
        states[LANES - 1]
    }

    fn read(&self, bytes: &[u8], base: usize, mut state: StateID, found: &mut Vec<KeywordMatch>) {
        for (at, byte) in bytes.iter().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if self.automaton.is_special(state) {
                self.note(state, base + at + 1, found);
            }
        }
    }

    /// Notes the keywords that end at `end`, where the automaton is in `state`.
    #[cold]
    fn note(&self, state: StateID, end: usize, found: &mut Vec<KeywordMatch>) {
        if !self.automaton.is_match(state) {
            return;
        }
        found.extend((0..self.automaton.match_len(state)).map(|index| {
            let pattern = self.automaton.match_pattern(state, index);
            KeywordMatch { keyword: pattern.as_usize(), start: end - self.automaton.pattern_len(pattern), end }
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_may_end_inside_a_keyword() {
        let keywords = Keywords::new(&["ghp_", "Sesame-0pen"]);
        for (text, held) in [("x gh", 2), ("x GHP", 3), ("sesame-0pe", 10), ("x ghp_", 0), ("done.\n", 0), ("", 0)] {
            assert_eq!(keywords.unfinished(text.as_bytes()), held, "{text:?}");
        }
    }

    #[test]
    fn much_text_is_read_by_the_fastest_automaton() {
        let keywords = Keywords::new(&["ghp_"]);
        let text = " ghp_".repeat(WORTH_A_DFA / 5 / 4);
        for _ in 0..5 {
            assert!(keywords.fastest.get().is_none());
            assert_eq!(keywords.find(text.as_bytes()).len(), WORTH_A_DFA / 5 / 4);
        }
        assert!(keywords.fastest.get().is_some());
    }

    proptest! {
        #[test]
        fn lanes_find_what_a_search_for_each_keyword_finds(text in "[abcABC ]{0,300}") {
            let words = ["a", "ab", "bca", "abcab", "cc"];
            let lower = text.to_ascii_lowercase();
            let mut expected = Vec::new();
            for end in 0..=text.len() {
                for (keyword, word) in words.iter().enumerate() {
                    if lower[..end].ends_with(word) {
                        expected.push(KeywordMatch { keyword, start: end - word.len(), end });
                    }
                }
            }
            let keywords = Keywords::new(&words);
            let soonest = keywords.find(text.as_bytes());
            let fastest = KeywordReader::of(keywords.fastest(), keywords.longest).find(text.as_bytes());
            for mut found in [soonest, fastest] {
                prop_assert!(found.is_sorted_by_key(|one| one.end));
                found.sort_by_key(|one| (one.end, one.keyword));
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
