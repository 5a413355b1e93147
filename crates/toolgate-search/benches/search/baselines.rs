//! What ours is measured beside.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::repository::Tree;

/// Full-text search of SQLite over the same trees: one row for each file, identifiers cut into their parts beforehand,
/// forms of words joined by its Porter tokenizer, any word is enough, and BM25 where a word of the path counts more.
pub(crate) struct FullText {
    database: rusqlite::Connection,
}

impl FullText {
    /// Indexes a tree. The text itself isn't kept, as in our index.
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut database = rusqlite::Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT);
             CREATE VIRTUAL TABLE texts USING fts5(path, body, content='', tokenize='porter unicode61')";
        database.execute_batch(table).unwrap();
        let changes = database.transaction().unwrap();
        for (number, file) in tree.files.iter().enumerate() {
            let text = String::from_utf8_lossy(&file.bytes);
            let number = number as i64;
            let row = (number, in_parts(&file.path), in_parts(&text));
            changes.execute("INSERT INTO files VALUES (?1, ?2)", (number, &file.path)).unwrap();
            changes.execute("INSERT INTO texts (rowid, path, body) VALUES (?1, ?2, ?3)", row).unwrap();
        }
        changes.commit().unwrap();
        Self { database }
    }

    /// The best files.
    pub(crate) fn ask(&self, question: &str) -> Vec<String> {
        let words: Vec<String> = in_parts(question).split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let query = "SELECT files.path FROM texts JOIN files ON files.id = texts.rowid
             WHERE texts MATCH ?1 ORDER BY bm25(texts, 4.0, 1.0) LIMIT 10";
        let mut query = self.database.prepare_cached(query).unwrap();
        let rows = query.query_map([words.join(" OR ")], |row| row.get(0));
        rows.map(|rows| rows.flatten().collect()).unwrap_or_default()
    }

    /// How many bytes the index takes.
    pub(crate) fn bytes(&self) -> i64 {
        let size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        self.database.query_row(size, [], |row| row.get(0)).unwrap()
    }
}

/// A text whose identifiers are followed by their parts: `parseHeader` by `parse` and `Header`.
fn in_parts(text: &str) -> String {
    let mut parts = String::with_capacity(text.len() * 2);
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
        parts.push_str(word);
        parts.push(' ');
        let mut before = ' ';
        let at = parts.len();
        for c in word.chars() {
            if c == '_' || c.is_uppercase() && before.is_lowercase() {
                parts.push(' ');
            }
            if c != '_' {
                parts.push(c);
            }
            before = c;
        }
        match parts[at..].contains(' ') {
            true => parts.push(' '),
            false => parts.truncate(at),
        }
    }
    parts
}

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

/// A part of a file that semble found: the path, the first and the last line.
#[derive(serde::Deserialize)]
pub(crate) struct PeerChunk(pub(crate) String, pub(crate) u32, pub(crate) u32);

/// What it answered, and how long that took.
pub(crate) struct PeerAnswer {
    pub(crate) answers: Vec<Vec<PeerChunk>>,
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
