//! An index of what a call's effects permit, so that a check is a lookup and not a search: a change can include many
//! thousand files.

use std::collections::{HashMap, HashSet};

use toolgate_contract::{Access, Effect, LocatedEffect, WorkspacePath};

/// The paths that a call's effects permit.
#[derive(Debug, Default)]
pub(super) struct EffectIndex {
    /// The resolved paths of declared effects, by the path as declared.
    declared: HashMap<(Access, String), WorkspacePath>,
    /// Paths that are permitted together with everything beneath them.
    covered: HashSet<(Access, WorkspacePath)>,
    /// Entries of directories that are examined or written, each by itself.
    entries: HashSet<(Access, WorkspacePath)>,
    /// Paths that are restored, each by itself.
    restored: HashSet<(Access, WorkspacePath)>,
}

impl EffectIndex {
    pub(super) fn of(granted: &[LocatedEffect]) -> Self {
        let mut index = Self::default();
        for LocatedEffect { effect, real, .. } in granted {
            let (Some((access, path)), Some(real)) = (effect.path(), real) else { continue };
            index.declared.entry((access, path.to_owned())).or_insert_with(|| real.clone());
            // What is replaced by itself is read before.
            let with_reading = [(access, real.clone()), (Access::Read, real.clone())];
            match effect {
                Effect::Restore { .. } => index.restored.extend(with_reading),
                Effect::Entry { .. } => {
                    index.declared.entry((Access::Read, path.to_owned())).or_insert_with(|| real.clone());
                    index.entries.extend(with_reading);
                }
                _ => {
                    index.covered.insert((access, real.clone()));
                }
            }
        }
        index
    }

    /// The resolved path for a path exactly as declared.
    pub(super) fn declared(&self, access: Access, path: &str) -> Option<&WorkspacePath> {
        self.declared.get(&(access, path.to_owned()))
    }

    /// Whether a path is restored.
    pub(super) fn restores(&self, access: Access, place: &WorkspacePath) -> bool {
        !self.restored.is_empty() && self.restored.contains(&(access, place.clone()))
    }

    /// Whether a declared path covers this one.
    pub(super) fn covers(&self, access: Access, place: &WorkspacePath) -> bool {
        let at =
            |path: &str| self.covered.contains(&(access, WorkspacePath { root: place.root, path: path.to_owned() }));
        let above = place.path.match_indices('/').map(|(end, _)| &place.path[..end]);
        let is_entry = !self.entries.is_empty() && self.entries.contains(&(access, place.clone()));
        is_entry || at(&place.path) || at("") || above.into_iter().any(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reached_from_what_covers_it_and_restored_by_itself() {
        let at = |effect: Effect, path: &str| LocatedEffect {
            effect,
            written: Some(WorkspacePath::in_workspace(path)),
            real: Some(WorkspacePath::in_workspace(path)),
        };
        let restore = Effect::Restore { path: ".git/config".into(), access: Access::Delete };
        let link = Effect::Entry { path: "now".into(), access: Access::Write };
        let index = EffectIndex::of(&[at(Effect::write("src"), "src"), at(restore, ".git/config"), at(link, "now")]);
        for (access, path, covers, restores) in [
            (Access::Write, "src", true, false),
            (Access::Write, "src/deep/a.rs", true, false),
            (Access::Write, "srcs/a.rs", false, false),
            (Access::Write, "", false, false),
            (Access::Read, "src/a.rs", false, false),
            (Access::Delete, ".git/config", false, true),
            (Access::Read, ".git/config", false, true),
            (Access::Write, ".git/config", false, false),
            (Access::Delete, ".git/config/x", false, false),
            (Access::Write, "now", true, false),
            (Access::Read, "now", true, false),
            (Access::Delete, "now", false, false),
            (Access::Write, "now/x", false, false),
        ] {
            let place = WorkspacePath::in_workspace(path);
            assert_eq!(index.covers(access, &place), covers, "{access:?} {path}");
            assert_eq!(index.restores(access, &place), restores, "{access:?} {path}");
        }
        assert!(EffectIndex::of(&[at(Effect::read(""), "")]).covers(Access::Read, &WorkspacePath::in_workspace("a/b")));
    }
}
