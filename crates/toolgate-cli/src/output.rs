//! Standard output and standard error. Whoever reads them may leave before this program ends, as in `toolgate … | head`.
//! That is no error: what is written afterwards goes nowhere, and the command finishes its work and its record.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

/// Whether the reader of standard output has left.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes to standard output, in colour where it can be shown.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write_out(::std::format_args!($($text)*)) };
}

/// Writes a line to standard output, in colour where it can be shown.
macro_rules! outln {
    () => { $crate::output::write_out(::std::format_args!("\n")) };
    ($($text:tt)+) => {
        $crate::output::write_out(::std::format_args!("{}\n", ::std::format_args!($($text)+)))
    };
}

/// Writes to standard error, in colour where it can be shown.
macro_rules! err {
    ($($text:tt)*) => { $crate::output::write_err(::std::format_args!($($text)*)) };
}

/// Writes a line to standard error, in colour where it can be shown.
macro_rules! errln {
    () => { $crate::output::write_err(::std::format_args!("\n")) };
    ($($text:tt)+) => {
        $crate::output::write_err(::std::format_args!("{}\n", ::std::format_args!($($text)+)))
    };
}

pub(crate) use {err, errln, out, outln};

/// Whether the reader of standard output has left, so that a command that would go on for ever can end.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Writes a list for programs: one JSON value a line.
pub(crate) fn write_list<T: Serialize>(things: &[T]) -> serde_json::Result<()> {
    for thing in things {
        outln!("{}", serde_json::to_string(thing)?);
    }
    Ok(())
}

/// Standard output for bytes that stay as they are. When its reader has left, they go nowhere.
pub(crate) struct RawOutput;

impl Write for RawOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(io::stdout().flush(), ())
    }
}

pub(crate) fn write_out(text: Arguments<'_>) {
    report(unless_closed(anstream::stdout().lock().write_fmt(text), ()));
}

/// Standard error has no other place to report to than itself.
pub(crate) fn write_err(text: Arguments<'_>) {
    let _ = anstream::stderr().lock().write_fmt(text);
}

/// What was written, or all of it if the reader has left.
fn unless_closed<T>(written: io::Result<T>, all: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(all)
        }
        other => other,
    }
}

/// Output that is lost for another reason, such as a full disk, is never passed over in silence.
fn report(written: io::Result<()>) {
    if let Err(error) = written {
        write_err(format_args!("error: standard output can't be written: {error}\n"));
        std::process::exit(1);
    }
}
