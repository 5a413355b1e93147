//! Trees that are made to be awkward, the same for the same seed: ignore files that take back what others say, dot
//! names, strange letters, links, binaries, mixed line endings, over-long lines, other encodings.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// How deep directories lie in each other.
const DEPTH: u32 = 4;

const DIRECTORIES: [&str; 9] = ["alpha", "beta", "a", "b", "build", "target", ".config", "x y", "ünï"];
const STEMS: [&str; 12] = ["lib", "main", "a", "b", "note", "ünï", "keep", ".hidden", "[odd]", "#hash", "!bang", "x y"];
const ENDINGS: [&str; 8] = [".rs", ".py", ".md", ".txt", ".log", "", ".rs.bak", ".MD"];
const IGNORED: [&str; 22] = [
    "*.log",
    "!keep.log",
    "/build",
    "build/",
    "target/",
    "*.txt",
    "!note.txt",
    "alpha/**",
    "**/beta",
    "a/b",
    "!a/b",
    "# nothing",
    r"\#hash*",
    r"\!bang*",
    "x y",
    "[ab].md",
    "lib*",
    "!lib.rs",
    "**/a/*.py",
    "!.hidden.rs",
    "main.*   ",
    "*.bak",
];
const LINES: [&str; 16] = [
    "the quick brown fox",
    "jumps over the lazy dog",
    "",
    "cat",
    "concatenate the cat",
    "12345 and 67",
    "日本 fox",
    "Äpfel und äpfel",
    "a.b(c) the end",
    "$x = the fox",
    "    the indented",
    "no such beast",
    "FOX",
    "dog",
    "the dog\tand",
    "s",
];

/// A small generator of numbers, so that a seed is all there is to know.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn is_one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// A tree to be made.
pub(crate) struct Tree {
    dice: Dice,
    ignore_files: Vec<&'static str>,
}

impl Tree {
    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed + 1), ignore_files: vec![".gitignore", ".gitignore", ".ignore"] }
    }

    /// Has ignore files of this name too.
    #[allow(dead_code, reason = "not every test has a peer that knows more names")]
    pub(crate) fn with_file_named(mut self, name: &'static str) -> Self {
        self.ignore_files.push(name);
        self
    }

    pub(crate) fn make(mut self, directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        self.fill(directory, 0);
    }

    fn fill(&mut self, directory: &Path, depth: u32) {
        for _ in 0..4 + self.dice.below(5) {
            let name = format!("{}{}", self.dice.one(&STEMS), self.dice.one(&ENDINGS));
            let content = self.content();
            fs::write(directory.join(name), content).unwrap();
        }
        if depth == 0 || self.dice.is_one_in(3) {
            let name = *self.dice.one(&self.ignore_files.clone());
            let rules: Vec<&str> = (0..1 + self.dice.below(5)).map(|_| *self.dice.one(&IGNORED)).collect();
            fs::write(directory.join(name), rules.join(if self.dice.is_one_in(4) { "\r\n" } else { "\n" })).unwrap();
        }
        if self.dice.is_one_in(2) {
            let target = *self.dice.one(&["lib.rs", "alpha", "..", "nowhere", "/etc/hostname"]);
            let _ = symlink(target, directory.join(*self.dice.one(&["link", "link.rs", "a.lnk"])));
        }
        for _ in 0..if depth < DEPTH { 2 + self.dice.below(2) } else { 0 } {
            let child = directory.join(*self.dice.one(&DIRECTORIES));
            if fs::create_dir(&child).is_ok() {
                self.fill(&child, depth + 1);
            }
        }
    }

    fn content(&mut self) -> Vec<u8> {
        let mut lines: Vec<String> = (0..self.dice.below(30)).map(|_| (*self.dice.one(&LINES)).to_owned()).collect();
        if self.dice.is_one_in(12) {
            lines.push(format!("{}the fox{}", "x".repeat(400), "y".repeat(70_000)));
        }
        let ending = *self.dice.one(&["\n", "\n", "\n", "\r\n"]);
        let mut text = lines.join(ending);
        if !self.dice.is_one_in(3) {
            text += ending;
        }
        match self.dice.below(14) {
            0 => text.encode_utf16().fold(vec![0xff, 0xfe], |mut bytes, unit| {
                bytes.extend(unit.to_le_bytes());
                bytes
            }),
            // At the very start: ripgrep first reads three bytes, and tells of matches that come before it sees a NUL.
            1 => [b"\0the fox\n", text.as_bytes()].concat(),
            2 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            3 => [text.as_bytes(), b"the \xff\xfe fox\n"].concat(),
            4 => text.repeat(90_000 / (text.len() + 100)).into_bytes(),
            _ => text.into_bytes(),
        }
    }
}
