//! Makes calls that nobody inside may make, and tells how the kernel answered.

fn main() {}
