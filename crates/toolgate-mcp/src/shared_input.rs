//! Whose turn it is to read. Where calls are short and follow one another, one thread reads and answers them all: to wake
//! another for each would take longer than many an answer. One spare thread keeps an eye on it, and reads on when the
//! first stays at work, or when more is waiting and a processor has nothing to do.

use parking_lot::{Mutex, MutexGuard};
use std::io::{BufReader, Read};
use std::thread::Thread;
use std::time::Duration;

use crate::client::lock;

/// How long the one who has read may be at work before another reads.
const PATIENCE: Duration = Duration::from_millis(5);

/// Looks without a new message after which the spare sleeps until there is one.
const LOOKS: u32 = 10;

/// Input that several threads read, one at a time.
pub(crate) struct SharedInput<R> {
    input: Mutex<BufReader<R>>,
    /// Held by the spare; the others wait behind it.
    line: Mutex<()>,
    watch: Mutex<ReaderState>,
    /// How many may be at work at once before one has been for long. The client needs a processor too.
    side_by_side: usize,
}

/// What the reader and the spare know of each other.
#[derive(Default)]
struct ReaderState {
    spare: Option<Thread>,
    /// The spare sleeps until it is woken.
    is_asleep: bool,
    /// There was more to read than one message, and a processor for it.
    is_wanted: bool,
    /// How many have read a message and not yet seen to it.
    at_work: usize,
    /// How many messages were read.
    read: u64,
}

impl<R: Read> SharedInput<R> {
    pub(crate) fn new(input: R) -> Self {
        let input = Mutex::new(BufReader::with_capacity(64 * 1024, input));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { input, line: Mutex::default(), watch: Mutex::default(), side_by_side: processors - 1 }
    }

    /// Waits until this thread is the one to read.
    pub(crate) fn take(&self) -> MutexGuard<'_, BufReader<R>> {
        self.try_take().unwrap_or_else(|| self.wait())
    }

    /// Says that a message was read, while the turn is still held.
    pub(crate) fn message_read(&self, input: &BufReader<R>) {
        let mut watch = lock(&self.watch);
        watch.read += 1;
        watch.at_work += 1;
        watch.is_wanted = !input.buffer().is_empty() && watch.at_work < self.side_by_side;
        if watch.is_asleep || watch.is_wanted {
            watch.is_asleep = false;
            watch.spare.iter().for_each(Thread::unpark);
        }
    }

    /// Says that the message was seen to.
    pub(crate) fn message_done(&self) {
        lock(&self.watch).at_work -= 1;
    }

    fn try_take(&self) -> Option<MutexGuard<'_, BufReader<R>>> {
        self.input.try_lock()
    }

    /// Waits as the spare, until the one who reads needs another.
    fn wait(&self) -> MutexGuard<'_, BufReader<R>> {
        let _first_in_line = lock(&self.line);
        let (mut read, mut looks) = (None, 0);
        loop {
            let mut watch = lock(&self.watch);
            let is_unchanged = read.replace(watch.read) == Some(watch.read);
            if (is_unchanged || watch.is_wanted)
                && let Some(input) = self.try_take()
            {
                (watch.is_wanted, watch.spare) = (false, None);
                return input;
            }
            looks = if is_unchanged { looks + 1 } else { 0 };
            watch.is_asleep = looks > LOOKS;
            watch.spare = Some(std::thread::current());
            let is_asleep = watch.is_asleep;
            drop(watch);
            if is_asleep { std::thread::park() } else { std::thread::park_timeout(PATIENCE) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, Write, pipe};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Reads as the server does: a line, and then work that lasts until the test says so where the line is `long`.
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
                lock(go).recv().unwrap();
            }
            turn.message_done();
        }
    }

    #[test]
    fn another_reads_on_while_the_first_is_at_work() {
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
        // The spare comes in whether it watches or has gone to sleep, and whether the rest is there already or comes later.
        say("long\n");
        say("short\nlong\n");
        say("short\n");
        done.send(()).unwrap();
        done.send(()).unwrap();
        std::thread::sleep(PATIENCE * (LOOKS + 20));
        say("long\n");
        say("short\n");
        done.send(()).unwrap();
        drop(output);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
