//! What a call's effects let its hands reach, so that each place is looked up and not searched for: a change can be of many
//! thousand files.

use std::collections::{HashMap, HashSet};

use crate::{Access, Effect, LocatedEffect, WorkspacePath};

/// What effects let hands reach.
#[derive(Debug, Default)]
pub(crate) struct EffectIndex {
    /// Where paths lead, as they were declared.
    declared: HashMap<(Access, String), WorkspacePath>,
    /// Places that are reached with everything beneath them.
    covered: HashSet<(Access, WorkspacePath)>,
    /// Places that are restored, each by itself.
    restored: HashSet<(Access, WorkspacePath)>,
}

impl EffectIndex {
    pub(crate) fn of(granted: &[LocatedEffect]) -> Self {
        let mut reach = Self::default();
        for LocatedEffect { effect, real, .. } in granted {
            let (Some((access, path)), Some(real)) = (effect.path(), real) else { continue };
            reach.declared.entry((access, path.to_owned())).or_insert_with(|| real.clone());
            if matches!(effect, Effect::Restore { .. }) {
                // What is restored is looked at first.
                reach.restored.extend([(access, real.clone()), (Access::Read, real.clone())]);
            } else {
                reach.covered.insert((access, real.clone()));
            }
        }
        reach
    }

    /// Where a path leads that was declared word for word.
    pub(crate) fn declared(&self, access: Access, path: &str) -> Option<&WorkspacePath> {
        self.declared.get(&(access, path.to_owned()))
    }

    /// Whether a place is restored.
    pub(crate) fn restores(&self, access: Access, place: &WorkspacePath) -> bool {
        !self.restored.is_empty() && self.restored.contains(&(access, place.clone()))
    }

    /// Whether a declared place covers this one.
    pub(crate) fn covers(&self, access: Access, place: &WorkspacePath) -> bool {
        let at =
            |path: &str| self.covered.contains(&(access, WorkspacePath { root: place.root, path: path.to_owned() }));
        let above = place.path.match_indices('/').map(|(end, _)| &place.path[..end]);
        at(&place.path) || at("") || above.into_iter().any(at)
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
        let reach = EffectIndex::of(&[at(Effect::write("src"), "src"), at(restore, ".git/config")]);
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
        ] {
            let place = WorkspacePath::in_workspace(path);
            assert_eq!(reach.covers(access, &place), covers, "{access:?} {path}");
            assert_eq!(reach.restores(access, &place), restores, "{access:?} {path}");
        }
        assert!(EffectIndex::of(&[at(Effect::read(""), "")]).covers(Access::Read, &WorkspacePath::in_workspace("a/b")));
    }
}
