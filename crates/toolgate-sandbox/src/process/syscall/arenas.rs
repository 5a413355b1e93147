//! Malloc arenas. The C library gives threads arenas of their own, up to eight per processor, and each arena keeps the memory
//! that it once needed. This program has more threads than work, so they share two.

/// How many arenas the threads share.
const ARENAS: i32 = 2;

/// Lets all threads share a few malloc arenas. Call it before there is a second thread.
pub fn share_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number that the C library reads when it makes an arena.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS)
    };
}
