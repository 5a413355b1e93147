//! Rules about paths: `path = "docs/secret/**"`, for some kinds of access or all. Rules that tighten ignore letter case
//! and rules that loosen compare exactly, since the file system may do either.

use std::fmt;

use serde::{Deserialize, Deserializer};
use toolgate_config::ConfigFault;
use toolgate_contract::{Access, Decision};

use crate::path_glob::{CaseFolding, PathGlob, PathSet};

/// Matches every effect on such a path.
#[derive(Debug)]
pub(crate) struct PathRule {
    glob: PathGlob,
    alone: PathSet,
    access: AccessSet,
}

impl PathRule {
    pub(crate) fn new(pattern: &str, access: Option<&[Access]>, decision: Decision) -> Result<Self, ConfigFault> {
        let letters = if decision == Decision::Allow { CaseFolding::Exact } else { CaseFolding::Folded };
        let glob = PathGlob::new(pattern, letters)?;
        let alone = PathSet::new(letters, [(0, &glob)])?;
        let access = access.map_or(Ok(AccessSet::default()), AccessSet::new)?;
        Ok(Self { glob, alone, access })
    }

    /// The pattern, for the set in which all path rules are matched at once.
    pub(crate) fn glob(&self) -> &PathGlob {
        &self.glob
    }

    pub(crate) fn is_about(&self, access: Access) -> bool {
        self.access.contains(access)
    }

    pub(crate) fn matches_example(&self, example: &str) -> bool {
        self.alone.is_match(example)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}{}", self.glob.pattern(), self.access)
    }
}

/// Some kinds of access; all of them by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessSet([bool; 3]);

impl AccessSet {
    fn new(listed: &[Access]) -> Result<Self, ConfigFault> {
        if listed.is_empty() {
            return Err(ConfigFault::new(
                "The list `access` is empty, so the rule would never match.",
                "Leave it out for every kind of access, or list `read`, `write` or `delete`.",
            ));
        }
        Ok(Self([Access::Read, Access::Write, Access::Delete].map(|access| listed.contains(&access))))
    }

    pub(crate) fn contains(self, access: Access) -> bool {
        self.0[access as usize]
    }
}

impl Default for AccessSet {
    fn default() -> Self {
        Self([true; 3])
    }
}

impl<'de> Deserialize<'de> for AccessSet {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let listed = Vec::<Access>::deserialize(reader)?;
        Self::new(&listed).map_err(|_| serde::de::Error::custom("`access` is empty"))
    }
}

impl fmt::Display for AccessSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let named = ["read", "write", "delete"].into_iter().zip(self.0).filter(|(_, on)| *on).map(|(name, _)| name);
        write!(f, " ({})", named.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tightening_is_loose_about_letters_and_loosening_exact() {
        let rule = |decision| PathRule::new("Docs/Secret", None, decision).unwrap();
        for example in ["docs/secret", "./Docs/Secret/", "DOCS/SECRET/a.txt"] {
            assert!(rule(Decision::Deny).matches_example(example), "{example}");
        }
        assert!(rule(Decision::Allow).matches_example("Docs/Secret/a.txt"));
        assert!(!rule(Decision::Allow).matches_example("docs/secret/a.txt"));
    }

    #[test]
    fn access_can_be_narrowed() {
        let rule = PathRule::new("a", Some(&[Access::Write, Access::Delete]), Decision::Ask).unwrap();
        assert!(!rule.is_about(Access::Read) && rule.is_about(Access::Write) && rule.is_about(Access::Delete));
        assert_eq!(rule.to_string(), "path a (write, delete)");
        assert!(PathRule::new("a", Some(&[]), Decision::Ask).is_err());
    }
}
