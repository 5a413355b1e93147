//! A person at a real terminal: a pty with the program on it, and an emulator that shows what the person sees.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use toolgate_testkit::wait_until;

use crate::world::{PROGRAM, World};

/// Lines of scrollback that the emulator keeps.
const SCROLLBACK: usize = 2_000;

/// A person at a terminal on which the program runs.
pub(crate) struct Person {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl Person {
    /// Starts the program on a terminal of this size.
    pub(crate) fn sits_at(world: &World, (rows, columns): (u16, u16), args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs: OwnedFd = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || theirs.try_clone().unwrap();
        let mut command = world.command(PROGRAM);
        command.args(args).env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        let keyboard = File::from(ours);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(size(rows), size(columns), SCROLLBACK)));
        let (shown, mut output) = (Arc::clone(&screen), keyboard.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose program has ended gives an error.
            while let Ok(count) = output.read(&mut bytes) {
                if count == 0 {
                    break;
                }
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, keyboard, screen, reader: Some(reader) }
    }

    /// Presses keys.
    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Makes the window of the terminal another size.
    pub(crate) fn resizes(&mut self, (rows, columns): (u16, u16)) -> &mut Self {
        self.screen.lock().unwrap().screen_mut().set_size(size(rows), size(columns));
        tcsetwinsize(&self.keyboard, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        self
    }

    /// Everything on the screen and above it.
    pub(crate) fn sees(&self) -> String {
        let mut parser = self.screen.lock().unwrap();
        let mut pages = Vec::new();
        let rows = usize::from(parser.screen().size().0.get());
        parser.screen_mut().set_scrollback(usize::MAX);
        let above = parser.screen().scrollback();
        let mut at = above;
        loop {
            parser.screen_mut().set_scrollback(at);
            pages.push(parser.screen().contents());
            if at == 0 {
                break;
            }
            at = at.saturating_sub(rows);
        }
        parser.screen_mut().set_scrollback(0);
        pages.join("\n")
    }

    /// What is on the screen now.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until these words are to be seen.
    #[track_caller]
    pub(crate) fn waits_for(&mut self, words: &str) -> &mut Self {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(words, || self.sees().contains(words));
        }));
        assert!(result.is_ok(), "waited in vain for `{words}`, and sees:\n{}", self.sees());
        self
    }

    /// Waits until these words are no longer on the screen.
    #[track_caller]
    pub(crate) fn waits_until_gone(&mut self, words: &str) -> &mut Self {
        wait_until(words, || !self.screen().contains(words));
        self
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub(crate) fn waits_until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> &mut Self {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(what, || is(&self.screen()));
        }));
        assert!(result.is_ok(), "waited in vain until {what}, and sees:\n{}", self.screen());
        self
    }

    /// Waits until the program has ended and everything that it wrote is on the screen.
    pub(crate) fn waits_until_ended(&mut self) -> &mut Self {
        self.child.wait().unwrap();
        // What the terminal still holds is read before the end of it is.
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self
    }

    /// The exit code, once the program has ended.
    pub(crate) fn leaves(mut self) -> i32 {
        let status = self.child.wait().unwrap();
        status.code().unwrap_or(-1)
    }
}

fn size(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}
