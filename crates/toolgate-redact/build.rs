//! Turns `rules.toml`, which is written for people, into JSON, which the program reads in a tenth of the time: every call has
//! its arguments redacted, and so waits for the rules.

// A build script reads its sources and writes for the compiler: no tool call ever comes near it.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

const SOURCE: &str = "src/rules.toml";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    let text = std::fs::read_to_string(SOURCE).unwrap_or_else(|fault| panic!("{SOURCE}: {fault}"));
    let rules: toml::Table = toml::from_str(&text).unwrap_or_else(|fault| panic!("{SOURCE}: {fault}"));
    let json = serde_json::to_string(&rules).expect("a table of texts and lists is JSON too");
    let directory = std::env::var("OUT_DIR").expect("Cargo says where to write");
    std::fs::write(Path::new(&directory).join("rules.json"), json).expect("Cargo's directory can be written");
}
