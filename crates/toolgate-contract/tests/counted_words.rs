//! Messages count with `counted`, so that none says "1 files". The sources of all crates are searched for texts in which a
//! number is followed by a plural.
#![allow(clippy::disallowed_methods, reason = "it reads the sources of the project")]

use std::path::{Path, PathBuf};

/// The plurals of what messages count.
const PLURALS: &[&str] = &[
    "agents",
    "answers",
    "approvals",
    "artifacts",
    "bytes",
    "calls",
    "changes",
    "characters",
    "commands",
    "days",
    "directories",
    "edits",
    "entries",
    "events",
    "examples",
    "faults",
    "files",
    "grants",
    "hosts",
    "hours",
    "items",
    "lines",
    "links",
    "matches",
    "messages",
    "minutes",
    "notes",
    "pages",
    "paths",
    "processes",
    "questions",
    "replacements",
    "requests",
    "results",
    "roots",
    "rules",
    "runs",
    "seconds",
    "secrets",
    "sessions",
    "settings",
    "skills",
    "tasks",
    "times",
    "tokens",
    "tools",
    "turns",
    "words",
];

/// What may stand between the number and the plural.
const BETWEEN: &[&str] = &["more", "new", "old", "other"];

/// A dialect has the words of the client that it speaks.
const DIALECTS: &str = "toolgate-dialects/src/";

/// `Debug` forms.
const ALLOWED: &[(&str, &str)] =
    &[("toolgate-agent/src/model.rs", "Image({}, {} bytes)"), ("toolgate-contract/src/blob.rs", "Blob({} bytes)")];

#[test]
fn no_message_counts_in_words_of_its_own() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 300, "the sources of all crates are found: {}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(crates).unwrap().display().to_string();
        let program = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
        for (number, line) in (1..).zip(program.lines()) {
            let is_allowed = ALLOWED.iter().any(|(allowed, words)| name == *allowed && line.contains(words));
            if !name.starts_with(DIALECTS)
                && !line.trim_start().starts_with("//")
                && !is_allowed
                && counts_by_itself(line)
            {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "use `counted`, or `noun` for a number in a form of its own:\n{}", found.join("\n"));
}

/// Whether a line has a placeholder, or the number 1, in front of a plural.
fn counts_by_itself(line: &str) -> bool {
    // A constant in capitals is known to be more than one.
    let is_constant = |at: usize| line[..at].ends_with(|letter: char| letter.is_ascii_uppercase());
    let placeholders = line.match_indices("} ").filter(|(at, _)| !is_constant(*at));
    let mut numbers = placeholders.chain(line.match_indices(" 1 ").map(|(at, _)| (at + 1, "1 ")));
    numbers.any(|(at, number)| {
        let mut words = line[at + number.len()..].split(|letter: char| !letter.is_ascii_alphabetic());
        let first = words.next().unwrap_or_default();
        let word = if BETWEEN.contains(&first) { words.next().unwrap_or_default() } else { first };
        PLURALS.contains(&word)
    })
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.extend(path.extension().is_some_and(|end| end == "rs").then_some(path)),
        }
    }
}

#[test]
fn a_plural_behind_a_number_is_noticed() {
    for line in [
        r#"format!("{count} files")"#,
        r#"format!("{} more lines, {}", a, b)"#,
        r#"outln!("There were {:>3} entries.", n);"#,
        r#""It has 1 files""#,
    ] {
        assert!(counts_by_itself(line), "{line}");
    }
    for line in [
        r#"format!("{} of the files", n)"#,
        r#"counted(n, "file")"#,
        r#"format!("{} fileset", n)"#,
        r#"format!("{MOST} files")"#,
    ] {
        assert!(!counts_by_itself(line), "{line}");
    }
}
