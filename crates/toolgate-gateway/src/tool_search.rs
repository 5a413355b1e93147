//! Finds the tool for a need among many, by the words of its name, its description and its arguments (BM25), and by words that mean the
//! same: who needs a folder doesn't know that the tool says `directory`.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use toolgate_contract::Declaration;

/// How much a repeated word counts, and how much the length of a text, as usual for BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// How often a word of a name counts, since names say most.
const NAME_WEIGHT: usize = 4;

/// How much a word counts that only means the same as a word of the query.
const SYNONYM_WEIGHT: f64 = 0.6;

/// For each word those that mean the same, without their endings.
static SYNONYMS: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let mut synonyms = HashMap::<String, BTreeSet<String>>::new();
    for line in include_str!("synonyms.txt").lines().filter(|line| !line.starts_with('#')) {
        let group: BTreeSet<String> = words_of(line).collect();
        for word in &group {
            synonyms.entry(word.clone()).or_default().extend(group.iter().filter(|other| *other != word).cloned());
        }
    }
    synonyms
});

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
            .map(|index| (wanted.iter().map(|word| self.weight_of_meaning(word, index, average)).sum(), index))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        found.sort_by(|(one, first), (other, second)| other.total_cmp(one).then(first.cmp(second)));
        found.into_iter().map(|(_, index)| index).collect()
    }

    /// How well a text has a word, or one that means the same.
    fn weight_of_meaning(&self, word: &str, index: usize, average: f64) -> f64 {
        let synonyms = SYNONYMS.get(word).into_iter().flatten();
        let of_synonyms = synonyms.map(|synonym| SYNONYM_WEIGHT * self.weight(synonym, index, average));
        of_synonyms.fold(self.weight(word, index, average), f64::max)
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
    const ENDINGS: [(&str, usize); 9] =
        [("ations", 4), ("ation", 4), ("ions", 4), ("ion", 4), ("ies", 3), ("ing", 4), ("es", 4), ("ed", 4), ("s", 3)];
    let without = |(ending, rest): (&str, usize)| {
        word.strip_suffix(ending).filter(|stem| stem.len() >= rest && !stem.ends_with('s'))
    };
    let stem = ENDINGS.into_iter().find_map(without).unwrap_or(word);
    // `create`, `creates` and `creation` are one word, and so are `navigate` and `navigation`.
    let shorter = [("ate", 4), ("at", 4), ("e", 3)]
        .into_iter()
        .find_map(|(ending, rest)| stem.strip_suffix(ending).filter(|stem| stem.len() >= rest));
    shorter.unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one_word() {
        for forms in [
            &["create", "creates", "created", "creating", "creation"][..],
            &["navigate", "navigation", "navigating"],
            &["relation", "relations"],
            &["file", "files"],
            &["query", "querying"],
        ] {
            let stems: BTreeSet<&str> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{forms:?}: {stems:?}");
        }
    }

    #[test]
    fn every_line_of_synonyms_has_words_that_are_found() {
        assert!(SYNONYMS["folder"].contains(stem("directory")));
        assert!(SYNONYMS.iter().all(|(word, synonyms)| !synonyms.contains(word) && !synonyms.is_empty()));
    }
}
