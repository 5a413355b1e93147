//! Executing a program with exactly the arguments and environment given.

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use super::last_error;

/// A list of C strings in the form that `execve` takes, built before it is needed.
#[derive(Debug)]
pub(crate) struct ExecStrings<'a> {
    pointers: Vec<*const libc::c_char>,
    _owned: &'a [CString],
}

impl<'a> ExecStrings<'a> {
    /// The strings, followed by the null that ends the list.
    pub(crate) fn new(strings: &'a [CString]) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Self { pointers, _owned: strings }
    }
}

/// Replaces this process by `program`. Comes back only with an error.
pub(crate) fn execute(program: &CStr, arguments: &ExecStrings<'_>, environment: &ExecStrings<'_>) -> Errno {
    // SAFETY: all three are null-terminated and live during the call.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last_error()
}
