//! Lets a program be a zygote whose `main` isn't its own, such as a test harness: the C library calls this before `main`.

use crate::process::zygote_main_if_asked;

extern "C" fn before_main() {
    zygote_main_if_asked();
}

// SAFETY: the section holds pointers to functions that the C library calls once, before there is another thread.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Makes sure that this program can be a zygote. Whoever calls this has it linked in; nothing happens here.
pub fn zygote_before_main() {
    std::hint::black_box(&BEFORE_MAIN);
}
