//! Hands of a call that a client executes: nothing goes through them, so they are asked before.

use toolgate_contract::{Access, ErrorCode, ToolError, WorkspacePath};

use super::call_hands::CallHands;

impl CallHands {
    /// The paths that the call may change. Fails where the hands would refuse something: what is hidden, under whatever name, and a
    /// search through files of which some are hidden.
    pub(in crate::gate) fn entrusted_places(&self, searches: bool) -> Result<Vec<WorkspacePath>, ToolError> {
        let mut changed = Vec::new();
        let granted = self.granted.clone();
        for located in granted.iter() {
            let (Some((access, _)), Some(place)) = (located.effect.path(), &located.real) else { continue };
            self.reach(access, place)?;
            match access {
                Access::Read => self.check_read(place, searches)?,
                Access::Write | Access::Delete => changed.push(place.clone()),
            }
        }
        Ok(changed)
    }

    fn check_read(&self, place: &WorkspacePath, searches: bool) -> Result<(), ToolError> {
        let files = self.services.files.as_ref();
        match files.node(place, false)? {
            Some(node) if node.state.is_file() && node.links > 1 => {
                self.refuse_hidden_link(place, &files.open(place)?.file)
            }
            Some(node) if node.state.is_directory() && searches => self.refuse_hidden_beneath(place),
            _ => Ok(()),
        }
    }

    fn refuse_hidden_beneath(&self, place: &WorkspacePath) -> Result<(), ToolError> {
        let (files, hidden_paths) = (self.services.files.as_ref(), self.services.hidden_paths.as_ref());
        let restricted = self.services.scanner.restricted_paths(files, hidden_paths)?;
        match restricted.hidden.iter().find(|hidden| place.covers(hidden)) {
            None => Ok(()),
            Some(hidden) => {
                let (hidden, place) = (files.shown(hidden), files.shown(place));
                let message = format!("A search through `{place}` would show `{hidden}`, which is hidden from tools.");
                Err(ToolError::new(ErrorCode::SensitivePath, message).with_hint(
                    "Search a directory or file without hidden ones, or run `grep` in the shell, where they are \
                     replaced by decoys.",
                ))
            }
        }
    }
}
