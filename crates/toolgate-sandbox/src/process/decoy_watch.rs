//! The host's ear at a sandbox's decoys. Nobody has to listen all the time: what is to be told waits in the kernel, and is
//! never more than one word for each decoy.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{ReadFlags, Reader};

use super::plan::PinnedPath;
use super::planning::path_of;

/// Room for some hundred words.
const ROOM: usize = 4096;

/// The decoys of one sandbox.
#[derive(Debug)]
pub(crate) struct DecoyWatch {
    /// What they stand in for, in the order of their numbers.
    secrets: Vec<PathBuf>,
    heard: Mutex<DecoyOpens>,
}

#[derive(Debug)]
struct DecoyOpens {
    /// None once nobody can open them any more.
    watch: Option<OwnedFd>,
    opened: BTreeSet<usize>,
}

impl DecoyWatch {
    pub(super) fn new(watch: Option<OwnedFd>, secrets: &[PinnedPath]) -> Self {
        let secrets = if watch.is_some() { secrets.iter().map(path_of).collect() } else { Vec::new() };
        Self { secrets, heard: Mutex::new(DecoyOpens { watch, opened: BTreeSet::new() }) }
    }

    /// The secrets whose decoys were opened so far.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        let mut heard = self.heard();
        heard.listen();
        heard.opened.iter().filter_map(|number| self.secrets.get(number.checked_sub(1)?).cloned()).collect()
    }

    /// Hears what is left to hear, and lets the kernel's watch go.
    pub(super) fn close(&self) {
        let mut heard = self.heard();
        heard.listen();
        heard.watch = None;
    }

    fn heard(&self) -> MutexGuard<'_, DecoyOpens> {
        self.heard.lock()
    }
}

impl DecoyOpens {
    fn listen(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut words = Reader::new(watch, &mut room);
        // It ends with an error, as soon as there is nothing more to read.
        while let Ok(word) = words.next() {
            if word.events().contains(ReadFlags::OPEN) {
                self.opened.extend(usize::try_from(word.wd()).ok());
            }
        }
    }
}
