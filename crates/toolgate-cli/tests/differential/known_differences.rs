//! The table of known differences, `known_differences.toml`.

use serde::Deserialize;

use crate::corpus::CorpusCommand;
use crate::twin_workspaces::Setting;

/// What is known to differ, and why.
#[derive(Deserialize)]
pub(crate) struct KnownDifferences {
    difference: Vec<KnownDifference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDifference {
    /// Commands of the corpus, word for word.
    commands: Vec<String>,
    /// Words of settings, such as `overlay` or `root`: the difference is there where all of them apply.
    #[serde(default)]
    only: Vec<String>,
    reason: String,
}

impl KnownDifferences {
    /// Reads the table, and checks that every command in it is in the corpus.
    pub(crate) fn read(corpus: &[CorpusCommand]) -> Self {
        let known: Self = toml::from_str(include_str!("known_differences.toml")).unwrap();
        for line in known.difference.iter().flat_map(|known| &known.commands) {
            assert!(corpus.iter().any(|command| command.line == *line), "listed, and not in the corpus: {line}");
        }
        known
    }

    /// Why a command differs in a setting; none if it isn't known to.
    pub(crate) fn reason(&self, setting: Setting, line: &str) -> Option<&str> {
        let applies = |known: &&KnownDifference| {
            known.commands.iter().any(|own| own == line) && known.only.iter().all(|word| setting.has(word))
        };
        self.difference.iter().find(applies).map(|known| known.reason.as_str())
    }
}
