//! What is known about a shell at one point of a command: its variables, its working directory, its functions. Where
//! two branches join, only what holds in both is still known.

use std::collections::BTreeMap;

use super::environment::is_decisive;
use super::syntax::ShellCommand;

/// The value of a variable that contains file names from elsewhere.
pub(super) const NAMES: &str = "…";

/// Longer values aren't followed.
const LONGEST_VALUE: usize = 64 * 1024;

/// With more possible directories than this, the working directory is unknown.
const MOST_DIRECTORIES: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct ShellState<'t> {
    /// Variables that were set here; no value if it is unknown.
    pub(super) variables: BTreeMap<String, Option<String>>,
    /// The possible working directories, absolute; none if they are unknown.
    pub(super) directories: Option<Vec<String>>,
    /// Variables that contain file names: a pattern, or [`NAMES`] for names from elsewhere.
    pub(super) file_names: BTreeMap<String, String>,
    /// Functions, and whether they are certainly defined.
    pub(super) functions: BTreeMap<String, (&'t ShellCommand, bool)>,
    /// Why nothing that follows is certain: the meaning of names has changed.
    pub(super) uncertainty: Option<String>,
}

impl<'t> ShellState<'t> {
    pub(super) fn in_directories(directories: Option<Vec<String>>) -> Self {
        Self {
            variables: BTreeMap::new(),
            file_names: BTreeMap::new(),
            directories,
            functions: BTreeMap::new(),
            uncertainty: None,
        }
    }

    /// Sets a variable for what follows. One that decides what programs do makes all of that uncertain.
    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        if is_decisive(name) {
            self.mark_uncertain(format!("`{name}` was set before"));
        }
        self.remember(name, value);
    }

    /// Sets a variable to file names: a pattern, or [`NAMES`].
    pub(super) fn set_file_names(&mut self, name: &str, names: String) {
        self.set(name, None);
        self.file_names.insert(name.to_owned(), names);
    }

    /// Remembers the value of a variable that is judged elsewhere, as before a command.
    pub(super) fn remember(&mut self, name: &str, value: Option<String>) {
        self.file_names.remove(name);
        // A value that doubles again and again isn't worth the memory.
        let value = value.filter(|value| value.len() <= LONGEST_VALUE);
        self.variables.insert(name.to_owned(), value);
    }

    /// Makes all variables unknown.
    pub(super) fn forget_variables(&mut self) {
        self.file_names.clear();
        self.variables.values_mut().for_each(|value| *value = None);
    }

    /// Keeps only what is known in both branches.
    pub(super) fn merge_branch(&mut self, other: Self) {
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
        self.file_names.retain(|name, value| other.file_names.get(name) == Some(value));
        for (_, certain) in self.functions.values_mut() {
            *certain = false;
        }
        self.functions.extend(other.functions.into_iter().map(|(name, (body, _))| (name, (body, false))));
        self.uncertainty = self.uncertainty.take().or(other.uncertainty);
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

    /// Marks everything from here on as uncertain.
    pub(super) fn mark_uncertain(&mut self, why: impl Into<String>) {
        self.uncertainty.get_or_insert(why.into());
    }
}
