//! Which of a sandbox's decoys were opened, by inotify. The events wait in the kernel until they are read; there is at most
//! one for each decoy.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{ReadFlags, Reader};

use super::plan::PinnedPath;
use super::planning::path_of;

/// Bytes of the buffer, enough for more than a hundred events.
const EVENT_BUFFER_BYTES: usize = 4096;

/// The decoys of one sandbox.
#[derive(Debug)]
pub(crate) struct DecoyWatch {
    /// The files that they are mounted over, in the order of their watch descriptors.
    secrets: Vec<PathBuf>,
    opens: Mutex<DecoyOpens>,
}

#[derive(Debug)]
struct DecoyOpens {
    /// None once no process is left that could open them.
    watch: Option<OwnedFd>,
    opened: BTreeSet<usize>,
}

impl DecoyWatch {
    pub(super) fn new(watch: Option<OwnedFd>, secrets: &[PinnedPath]) -> Self {
        let secrets = if watch.is_some() { secrets.iter().map(path_of).collect() } else { Vec::new() };
        Self { secrets, opens: Mutex::new(DecoyOpens { watch, opened: BTreeSet::new() }) }
    }

    /// The secrets whose decoys were opened so far.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        let mut opens = self.opens.lock();
        opens.read_events();
        opens.opened.iter().filter_map(|number| self.secrets.get(number.checked_sub(1)?).cloned()).collect()
    }

    /// Reads the remaining events and closes the inotify descriptor.
    pub(super) fn close(&self) {
        let mut opens = self.opens.lock();
        opens.read_events();
        opens.watch = None;
    }
}

impl DecoyOpens {
    fn read_events(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
        let mut events = Reader::new(watch, &mut buffer);
        // It ends with an error (EAGAIN) when there is no event left.
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::OPEN) {
                self.opened.extend(usize::try_from(event.wd()).ok());
            }
        }
    }
}
