//! What a shell knows at one point of a command: its variables, where it stands, its functions. Where two ways meet,
//! only what holds on both is still known.

use std::collections::BTreeMap;

use super::syntax::ShellCommand;

/// A variable that stands for names that come from elsewhere.
pub(super) const NAMES: &str = "…";

/// Longer values aren't followed.
const LONGEST_VALUE: usize = 64 * 1024;

/// More possible directories than this and it isn't known where the shell stands.
const MOST_DIRECTORIES: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct ShellState<'t> {
    /// Values of variables that were set here; none if it can't be told which.
    pub(super) variables: BTreeMap<String, Option<String>>,
    /// Where it may stand, absolute; none if that can't be told.
    pub(super) directories: Option<Vec<String>>,
    /// Variables that stand for names of files: a pattern, or [`NAMES`] for names that come from elsewhere.
    pub(super) loose: BTreeMap<String, String>,
    /// Functions, and whether it is certain that they are defined.
    pub(super) functions: BTreeMap<String, (&'t ShellCommand, bool)>,
    /// Why nothing that follows is certain any more: what names mean has changed.
    pub(super) trouble: Option<String>,
}

impl<'t> ShellState<'t> {
    pub(super) fn in_directories(directories: Option<Vec<String>>) -> Self {
        Self {
            variables: BTreeMap::new(),
            loose: BTreeMap::new(),
            directories,
            functions: BTreeMap::new(),
            trouble: None,
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        self.loose.remove(name);
        // A value that doubles again and again is worth no memory.
        let value = value.filter(|value| value.len() <= LONGEST_VALUE);
        self.variables.insert(name.to_owned(), value);
    }

    /// Nothing is known of any variable any more.
    pub(super) fn forget_variables(&mut self) {
        self.loose.clear();
        self.variables.values_mut().for_each(|value| *value = None);
    }

    /// What is known whichever of the two ways was taken.
    pub(super) fn meet(&mut self, other: Self) {
        for (name, value) in &other.variables {
            if self.variables.get(name) != Some(value) {
                self.variables.insert(name.clone(), None);
            }
        }
        for (name, value) in &mut self.variables {
            if !other.variables.contains_key(name) {
                *value = None;
            }
        }
        self.loose.retain(|name, value| other.loose.get(name) == Some(value));
        for (_, certain) in self.functions.values_mut() {
            *certain = false;
        }
        self.functions.extend(other.functions.into_iter().map(|(name, (body, _))| (name, (body, false))));
        self.trouble = self.trouble.take().or(other.trouble);
        self.merge_directories(other.directories);
    }

    pub(super) fn merge_directories(&mut self, others: Option<Vec<String>>) {
        self.directories = match (self.directories.take(), others) {
            (Some(mut directories), Some(others)) => {
                for other in others {
                    if !directories.contains(&other) {
                        directories.push(other);
                    }
                }
                (directories.len() <= MOST_DIRECTORIES).then_some(directories)
            }
            _ => None,
        };
    }

    /// From here on nothing is certain.
    pub(super) fn mark_uncertain(&mut self, why: impl Into<String>) {
        self.trouble.get_or_insert(why.into());
    }
}
