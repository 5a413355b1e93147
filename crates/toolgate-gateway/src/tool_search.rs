//! Finds the tool for a need among many, by the words of its name, its description and its arguments (BM25).

use std::collections::{BTreeSet, HashMap};

use toolgate_contract::Declaration;

/// How much a repeated word counts, and how much the length of a text, as usual for BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// How often a word of a name counts, since names say most.
const NAME_WEIGHT: usize = 3;

/// Words that say nothing of a tool.
const COMMON: [&str; 28] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "i", "in", "is", "it", "me", "my", "of",
    "on", "or", "s", "that", "the", "this", "to", "use", "what", "with",
];

/// Tools, with the words that they are found by.
pub(crate) struct ToolSearch {
    /// How often each word stands in each text.
    words: Vec<HashMap<String, usize>>,
    lengths: Vec<usize>,
}

impl ToolSearch {
    pub(crate) fn new<'a>(tools: impl IntoIterator<Item = &'a Declaration>) -> Self {
        let words: Vec<HashMap<String, usize>> = tools.into_iter().map(counted_words).collect();
        let lengths = words.iter().map(|words| words.values().sum()).collect();
        Self { words, lengths }
    }

    /// The tools for a query by their index, best first; those that share no word with it are left out.
    pub(crate) fn find(&self, query: &str) -> Vec<usize> {
        let average = self.lengths.iter().sum::<usize>() as f64 / self.lengths.len().max(1) as f64;
        let wanted: BTreeSet<String> = words_of(query).collect();
        let mut found: Vec<(f64, usize)> = (0..self.words.len())
            .map(|index| (wanted.iter().map(|word| self.weight(word, index, average)).sum(), index))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        found.sort_by(|(one, first), (other, second)| other.total_cmp(one).then(first.cmp(second)));
        found.into_iter().map(|(_, index)| index).collect()
    }

    fn weight(&self, word: &str, index: usize, average: f64) -> f64 {
        let Some(&times) = self.words[index].get(word) else { return 0.0 };
        let (all, having) =
            (self.words.len() as f64, self.words.iter().filter(|words| words.contains_key(word)).count() as f64);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let (times, length) = (times as f64, self.lengths[index] as f64 / average.max(1.0));
        rarity * times * (SATURATION + 1.0) / (times + SATURATION * (1.0 - LENGTH + LENGTH * length))
    }
}

fn counted_words(tool: &Declaration) -> HashMap<String, usize> {
    let arguments = tool.args_schema.get("properties").and_then(|properties| properties.as_object());
    let names = arguments.into_iter().flatten().map(|(name, _)| name.as_str());
    let mut counts = HashMap::new();
    for word in words_of(&tool.description).chain(names.flat_map(words_of)) {
        *counts.entry(word).or_default() += 1;
    }
    for word in words_of(&tool.name) {
        *counts.entry(word).or_default() += NAME_WEIGHT;
    }
    counts
}

/// The words of a text, small and without their endings. `getFileInfo` and `get_file_info` are three words each.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut last_small = false;
    for letter in text.chars() {
        if last_small && letter.is_uppercase() {
            spaced.push(' ');
        }
        last_small = letter.is_lowercase();
        spaced.extend(letter.to_lowercase());
    }
    let words: Vec<String> = spaced
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && !COMMON.contains(word))
        .map(|word| stem(word).to_owned())
        .collect();
    words.into_iter()
}

/// A word without the endings that English adds.
fn stem(word: &str) -> &str {
    for (ending, rest) in [("ies", 3), ("ing", 4), ("es", 4), ("ed", 4), ("s", 3)] {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= rest && !stem.ends_with('s')) {
            return stem.strip_suffix('e').unwrap_or(stem);
        }
    }
    word.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(word)
}
