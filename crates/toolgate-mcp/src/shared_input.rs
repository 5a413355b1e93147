//! Input that several threads share. While calls are short, one thread reads and answers them all, because waking another
//! thread for each would take longer than many answers. One spare thread watches the reader, and takes over when the
//! reader stays busy, or when more input is waiting and a processor is idle.

use std::io::{BufReader, Read};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// How long the reader may work on a message before the spare takes over.
const TAKEOVER_DELAY: Duration = Duration::from_millis(5);

/// Checks without a new message after which the spare sleeps until one comes.
const IDLE_CHECKS: u32 = 10;

/// Input that several threads read, one at a time.
pub(crate) struct SharedInput<R> {
    input: Mutex<BufReader<R>>,
    /// Held by the spare; the other threads wait for it.
    spare: Mutex<()>,
    state: Mutex<ReaderState>,
    /// How many threads may be busy before waiting input wakes no further one. The client needs a processor too.
    max_busy: usize,
}

/// What the reader and the spare share.
#[derive(Default)]
struct ReaderState {
    spare: Option<Thread>,
    /// The spare sleeps until it is woken.
    is_asleep: bool,
    /// More input is waiting, and a processor is idle.
    is_wanted: bool,
    /// How many threads work on a message that they read.
    busy: usize,
    /// How many messages were read.
    read: u64,
}

impl<R: Read> SharedInput<R> {
    pub(crate) fn new(input: R) -> Self {
        let input = Mutex::new(BufReader::with_capacity(64 * 1024, input));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { input, spare: Mutex::default(), state: Mutex::default(), max_busy: processors - 1 }
    }

    /// Waits until it is this thread's turn to read.
    pub(crate) fn take(&self) -> MutexGuard<'_, BufReader<R>> {
        self.try_take().unwrap_or_else(|| self.wait())
    }

    /// Reports that a message was read, while the input is still held.
    pub(crate) fn message_read(&self, input: &BufReader<R>) {
        let mut state = self.state.lock();
        state.read += 1;
        state.busy += 1;
        state.is_wanted = !input.buffer().is_empty() && state.busy < self.max_busy;
        if state.is_asleep || state.is_wanted {
            state.is_asleep = false;
            state.spare.iter().for_each(Thread::unpark);
        }
    }

    /// Reports that the work on a message ended.
    pub(crate) fn message_done(&self) {
        self.state.lock().busy -= 1;
    }

    fn try_take(&self) -> Option<MutexGuard<'_, BufReader<R>>> {
        self.input.try_lock()
    }

    /// Waits as the spare, until the reader needs to be relieved.
    fn wait(&self) -> MutexGuard<'_, BufReader<R>> {
        let _spare = self.spare.lock();
        let (mut read, mut idle_checks) = (None, 0);
        loop {
            let mut state = self.state.lock();
            let is_unchanged = read.replace(state.read) == Some(state.read);
            if (is_unchanged || state.is_wanted)
                && let Some(input) = self.try_take()
            {
                (state.is_wanted, state.spare) = (false, None);
                return input;
            }
            idle_checks = if is_unchanged { idle_checks + 1 } else { 0 };
            state.is_asleep = idle_checks > IDLE_CHECKS;
            state.spare = Some(std::thread::current());
            let is_asleep = state.is_asleep;
            drop(state);
            if is_asleep { std::thread::park() } else { std::thread::park_timeout(TAKEOVER_DELAY) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, Write, pipe};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Reads as the server does: a line, and then work that lasts until the test ends it if the line is `long`.
    fn reader<R: Read>(turn: &SharedInput<R>, lines: &Sender<String>, go: &Mutex<Receiver<()>>) {
        loop {
            let mut input = turn.take();
            let mut line = String::new();
            let read = input.read_line(&mut line).unwrap();
            turn.message_read(&input);
            drop(input);
            if read == 0 {
                return;
            }
            let is_long = line == "long\n";
            lines.send(line).unwrap();
            if is_long {
                go.lock().recv().unwrap();
            }
            turn.message_done();
        }
    }

    #[test]
    fn the_spare_takes_over_while_the_reader_is_busy() {
        let (input, mut output) = pipe().unwrap();
        let (turn, (lines, read), (done, go)) = (Arc::new(SharedInput::new(input)), channel(), channel());
        let go = Arc::new(Mutex::new(go));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (turn, lines, go) = (Arc::clone(&turn), lines.clone(), Arc::clone(&go));
                std::thread::spawn(move || reader(&turn, &lines, &go))
            })
            .collect();
        let mut say = |words: &str| {
            output.write_all(words.as_bytes()).unwrap();
            words.lines().for_each(|word| assert_eq!(read.recv().unwrap().trim_end(), word));
        };
        // The spare takes over whether it watches or sleeps, and whether more input is there already or comes later.
        say("long\n");
        say("short\nlong\n");
        say("short\n");
        done.send(()).unwrap();
        done.send(()).unwrap();
        while !turn.state.lock().is_asleep {
            std::thread::yield_now();
        }
        say("long\n");
        say("short\n");
        done.send(()).unwrap();
        drop(output);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
