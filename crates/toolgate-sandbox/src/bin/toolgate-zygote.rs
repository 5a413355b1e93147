//! A program that is nothing but a zygote, for hosts that can't call `zygote_main_if_asked` first thing in `main`, such as
//! tests. Started by hand it does nothing.

fn main() {
    toolgate_sandbox::process::zygote_main_if_asked();
    eprintln!("This program makes sandboxes for Toolgate and is started by it; by hand it does nothing.");
    std::process::exit(2);
}
