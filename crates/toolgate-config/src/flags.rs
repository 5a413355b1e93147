//! The layer of configuration that comes from the command line and the environment.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// The layer of configuration that comes from the command line and the environment. It goes the same way as every other
/// layer.
#[derive(Clone, Default)]
pub struct FlagLayer {
    settings: Table,
    words: Vec<String>,
    /// The flag or the variable that each setting comes from, by the setting's name.
    origins: BTreeMap<String, String>,
}

impl FlagLayer {
    /// These settings, and the words of a command line that say the same.
    pub fn new(settings: Table, words: Vec<String>) -> Self {
        Self { settings, words, origins: BTreeMap::new() }
    }

    /// The same, where it is known which flag or variable each setting comes from.
    #[must_use]
    pub fn with_origins(self, origins: BTreeMap<String, String>) -> Self {
        Self { origins, ..self }
    }

    /// The flag or the variable that a setting comes from, if it is known.
    pub fn origin_of(&self, setting: &str) -> Option<&str> {
        self.origins.get(setting).map(String::as_str)
    }

    /// The same, with rules that allow these hosts.
    #[must_use]
    pub fn allowing_hosts<'a>(mut self, hosts: impl Iterator<Item = &'a str>) -> Self {
        let rule = |host: &str| {
            let fields = [("decision".to_owned(), "allow".into()), ("host".to_owned(), host.into())];
            Value::Table(fields.into_iter().collect())
        };
        let rules = self.settings.entry("rules").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(rules) = rules {
            rules.extend(hosts.map(rule));
        }
        self
    }

    /// The flags as words of a command line, for the command that repeats a call.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The flags as the text of a configuration file.
    pub(crate) fn to_toml(&self) -> String {
        self.settings.to_string()
    }
}

impl std::fmt::Debug for FlagLayer {
    /// Shows the words only: the settings may hold a store's password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("FlagLayer").field(&self.words).finish()
    }
}
