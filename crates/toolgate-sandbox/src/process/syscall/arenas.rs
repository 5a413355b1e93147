//! How the process keeps memory that is free. The C library gives each thread a heap of its own, up to eight for a
//! processor, and each keeps what it needed once. A gate has more threads than work, so two are enough for all of them.

/// How many heaps the threads share.
const HEAPS: i32 = 2;

/// Lets all threads share a few heaps. To be called before there is a second thread.
pub fn share_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number that the C library reads when it makes a heap.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS)
    };
}
