//! `execve`: executes a program with exactly the given arguments and environment.

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use super::last_error;

/// The exit status of a process that couldn't execute its program, as a shell has it.
pub(crate) const EXIT_EXEC_FAILED: i32 = 127;

/// A null-terminated list of C strings, as `execve` takes it. Built before the fork, so that nothing is allocated after it.
#[derive(Debug)]
pub(crate) struct ExecStrings<'a> {
    pointers: Vec<*const libc::c_char>,
    _owned: &'a [CString],
}

impl<'a> ExecStrings<'a> {
    /// The strings, followed by the null pointer that ends the list.
    pub(crate) fn new(strings: &'a [CString]) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Self { pointers, _owned: strings }
    }
}

/// Replaces this process by `program`. Returns only if that fails.
pub(crate) fn execute(program: &CStr, arguments: &ExecStrings<'_>, environment: &ExecStrings<'_>) -> Errno {
    // SAFETY: all three are null-terminated and live during the call.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last_error()
}
