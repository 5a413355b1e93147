//! Lets a program become a zygote whose `main` is generated, such as a test harness: the C library calls this before `main`.

use crate::process::zygote_main_if_asked;

extern "C" fn before_main() {
    zygote_main_if_asked();
}

// SAFETY: the section holds pointers to functions that the C library calls once, before there is another thread.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Lets this program become a zygote. The call does nothing; it makes the linker keep the code that runs before `main`.
pub fn zygote_before_main() {
    std::hint::black_box(&BEFORE_MAIN);
}
