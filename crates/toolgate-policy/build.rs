//! Compiles the built-in tables. They are written in TOML, for people; reading all of them would take longer than
//! everything else that a short call does. So the build turns each entry into JSON, and those about programs into an
//! index by name: the program parses an entry when a command names it, and most never.

// A build script reads its sources and writes for the compiler: no tool call ever comes near it.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The tables that describe forms of programs, in the order in which they are consulted.
const FORMS: &[&str] =
    &["files", "text", "search", "git", "build", "network", "system", "shell", "interpreters", "wrappers"];

/// The tables that are small enough to be parsed as a whole.
const PLAIN: &[&str] = &[
    "autoloaded",
    "host_sets",
    "instruction_files",
    "sensitive_paths",
    "commands/knowledge/dangers",
    "commands/knowledge/environment",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    #[serde(default)]
    form: Vec<toml::Table>,
    #[serde(default)]
    globals: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionTable {
    negations: Vec<String>,
    options: Vec<toml::Table>,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for table in PLAIN {
        let name = table.rsplit('/').next().unwrap_or(table);
        write(&format!("{name}.json"), &json(&read::<toml::Table>(table)));
    }
    write("forms.rs", &forms());
    write("options.rs", &options());
}

/// The texts of all forms, which of them each name has, and the flags before subcommands.
fn forms() -> String {
    let tables: Vec<ProgramTable> = FORMS.iter().map(|table| read(&format!("commands/knowledge/{table}"))).collect();
    let (forms, globals): (Vec<_>, Vec<_>) = tables.into_iter().map(|table| (table.form, table.globals)).unzip();
    let (texts, names) = by_program(forms.concat());
    let globals = globals.concat().into_iter().map(|mut globals| {
        let program = globals.remove("program").and_then(|program| program.as_str().map(str::to_owned));
        (program.expect("`program` is a text"), json(&globals))
    });
    let mut code = format!("pub(super) static FORM_TEXTS: &[&str] = &{texts:#?};\n");
    list(&mut code, "FORM_NAMES", "&[usize]", names);
    list(&mut code, "GLOBAL_TEXTS", "&str", globals.collect());
    code
}

/// The texts of all lists of options, which of them each name has, and the programs whose options have a negation.
fn options() -> String {
    let OptionTable { negations, options } = read("commands/knowledge/options");
    let (texts, names) = by_program(options);
    let mut code =
        format!("static NEGATIONS: &[&str] = &{negations:?};\nstatic OPTION_TEXTS: &[&str] = &{texts:#?};\n");
    list(&mut code, "OPTION_NAMES", "&[usize]", names);
    code
}

/// The text of each entry without its `programs`, and for each of those programs the indexes of its entries.
fn by_program(entries: Vec<toml::Table>) -> (Vec<String>, BTreeMap<String, Vec<usize>>) {
    let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut texts = Vec::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let programs = entry.remove("programs").expect("an entry names its programs");
        for name in programs.as_array().expect("`programs` is a list") {
            names.entry(name.as_str().expect("a program is a text").to_owned()).or_default().push(index);
        }
        texts.push(json(&entry));
    }
    (texts, names)
}

/// Adds a sorted list of names, each with its value.
fn list(code: &mut String, name: &str, kind: &str, values: BTreeMap<String, impl std::fmt::Debug>) {
    let reference = if kind.starts_with("&[") { "&" } else { "" };
    writeln!(code, "pub(super) static {name}: &[(&str, {kind})] = &[").expect("a text takes everything");
    for (key, value) in values {
        writeln!(code, "({key:?}, {reference}{value:?}),").expect("a text takes everything");
    }
    code.push_str("];\n");
}

fn json(table: &toml::Table) -> String {
    serde_json::to_string(table).expect("a table of texts, numbers and lists is JSON too")
}

fn read<T: DeserializeOwned>(table: &str) -> T {
    let path = Path::new("src").join(format!("{table}.toml"));
    println!("cargo::rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    toml::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn write(name: &str, content: &str) {
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the directory"));
    std::fs::write(directory.join(name), content).expect("the directory is cargo's own and writable");
}
