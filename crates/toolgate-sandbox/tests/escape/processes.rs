//! Attacks by a process that runs confined.

mod ordinary_work;
pub(crate) mod scene;
