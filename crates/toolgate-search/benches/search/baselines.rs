//! What ours is measured beside.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::repository::Tree;

fn words(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 2);
    words.map(str::to_lowercase).collect()
}

/// Files by how many different words of the question they have, then by how often.
pub(crate) fn by_keywords<'t>(tree: &'t Tree, question: &str) -> Vec<&'t str> {
    let words = words(question);
    best(tree, |text, path| {
        let counts: Vec<usize> = words
            .iter()
            .map(|word| text.matches(word.as_str()).count() + path.matches(word.as_str()).count())
            .collect();
        (counts.iter().filter(|count| **count > 0).count(), counts.iter().sum())
    })
}

/// Files by how many of their lines match any word.
pub(crate) fn by_matching_lines<'t>(tree: &'t Tree, question: &str) -> Vec<&'t str> {
    let words = words(question);
    best(tree, |text, _| (text.lines().filter(|line| words.iter().any(|word| line.contains(word.as_str()))).count(), 0))
}

fn best(tree: &Tree, score: impl Fn(&str, &str) -> (usize, usize)) -> Vec<&str> {
    let scored = tree.files.iter().map(|file| {
        let text = String::from_utf8_lossy(&file.bytes).to_lowercase();
        (score(&text, &file.path.to_lowercase()), file.path.as_str())
    });
    let mut scored: Vec<((usize, usize), &str)> = scored.filter(|((first, _), _)| *first > 0).collect();
    scored.sort_by(|(a, path_a), (b, path_b)| b.cmp(a).then(path_a.cmp(path_b)));
    scored.into_iter().take(10).map(|(_, path)| path).collect()
}

/// A running semble.
pub(crate) struct Semble {
    process: Child,
    output: BufReader<ChildStdout>,
}

/// What it answered, and how long that took.
pub(crate) struct PeerAnswer {
    pub(crate) answers: Vec<Vec<String>>,
    pub(crate) seconds: f64,
    pub(crate) query_ms: f64,
}

impl Semble {
    /// Starts it with this Python.
    pub(crate) fn start(python: OsString) -> Option<Self> {
        let mut command = Command::new(python);
        command
            .args(["-c", include_str!("peer.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().ok()?;
        let output = BufReader::new(process.stdout.take()?);
        Some(Self { process, output })
    }

    /// Indexes a tree, and asks.
    pub(crate) fn ask(&mut self, tree: &Path, questions: &[&str]) -> PeerAnswer {
        let request = json!({ "tree": tree, "questions": questions });
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{request}").and_then(|()| input.flush()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("semble said `{line}`: {error}"));
        PeerAnswer {
            answers: serde_json::from_value(answer["answers"].clone()).unwrap(),
            seconds: answer["seconds"].as_f64().unwrap(),
            query_ms: answer["query_ms"].as_f64().unwrap(),
        }
    }
}

impl Drop for Semble {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
