//! The names of the presets, from least to most strict, and which of them the layers choose. What a preset says to each
//! permission is policy's business.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::layer::ConfigLayer;
use crate::table::PRESET;

/// A named baseline, least strict first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Everything that no rule and no sensitive path forbids.
    Full,
    /// Reads, writes and runs commands; asks before it deletes, connects, touches a repository's history or writes files
    /// that programs run or load automatically.
    #[default]
    Workspace,
    /// As `workspace`, but nobody is there to be asked, so an ask becomes a deny.
    Autonomous,
    /// Reads and talks, changes nothing.
    ReadOnly,
}

impl Preset {
    /// Every preset, least strict first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Workspace, Self::Autonomous, Self::ReadOnly];

    /// The name used in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Workspace => "workspace",
            Self::Autonomous => "autonomous",
            Self::ReadOnly => "read-only",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name).ok_or_else(|| {
            format!("There is no preset `{name}`. Use `read-only`, `workspace`, `autonomous` or `full`.")
        })
    }
}

/// The strongest layer that names a preset chooses; the others can only be stricter. Layers come strongest first.
pub fn choose_preset(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> Preset {
    let named = |input: &&ConfigLayer| input.config.preset.is_some();
    let selector = layers.iter().filter(|input| input.may_loosen()).find(named);
    let mut preset = selector.and_then(|input| input.config.preset).unwrap_or(PRESET.default);
    for input in layers {
        match input.config.preset {
            Some(wanted) if wanted >= preset => preset = wanted,
            // Whoever says that nobody can be asked is heeded under a stricter preset too, so nothing is ignored.
            Some(Preset::Autonomous) | None => {}
            Some(wanted) => {
                let outranked = selector.is_some_and(|selector| selector.layer > input.layer);
                warnings.push(input.ignored(&format!("the preset `{wanted}`"), outranked));
            }
        }
    }
    preset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_round_trip() {
        for preset in Preset::ALL {
            assert_eq!(preset.as_str().parse(), Ok(preset));
        }
        assert!("yolo".parse::<Preset>().unwrap_err().contains("no preset `yolo`"));
    }
}
