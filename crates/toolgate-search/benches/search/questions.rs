//! Questions with known answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_search::measure::analyzed;

use crate::Question;
use crate::repository::{Blobs, Repository, Tree, TreeFile};

/// The most files that a commit may change.
const MOST_FILES: usize = 6;
/// The fewest words of a subject.
const FEWEST_WORDS: usize = 4;
/// The most questions of the sets that aren't about commits.
const MOST: usize = 300;
const CODE: [&str; 18] =
    ["rs", "py", "js", "jsx", "mjs", "ts", "tsx", "go", "java", "c", "h", "cc", "cpp", "cs", "rb", "php", "sh", "html"];

fn is_code(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| CODE.contains(&ending))
}

/// The subjects of the last commits, each in the tree before it, and the code files that it changed.
pub(crate) fn commit_questions(repository: &Repository, most: usize) -> (Vec<Question>, Vec<Tree>) {
    let format = "--format=%x01%H%x02%s";
    let log = repository.git(&[
        "log",
        "--no-merges",
        "--first-parent",
        "-n",
        "3000",
        format,
        "--name-status",
        "--no-renames",
    ]);
    let mut blobs = Blobs::new(repository);
    let (mut questions, mut trees) = (Vec::new(), Vec::new());
    for commit in log.split('\x01').skip(1) {
        let Some((hash, rest)) = commit.split_once('\x02') else { continue };
        let mut lines = rest.lines();
        let subject = lines.next().unwrap_or_default();
        let subject = subject.rfind(" (#").map_or(subject, |end| &subject[..end]);
        let changed: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('\t')).collect();
        let routine = ["merge", "revert", "bump ", "auto-update", "chore(legal)"];
        let is_routine = routine.iter().any(|word| subject.to_lowercase().contains(word));
        if is_routine || subject.split_whitespace().count() < FEWEST_WORDS || changed.len() > MOST_FILES {
            continue;
        }
        let is_there = |path: &str| is_code(path) && !path.split('/').any(|name| name.starts_with('.'));
        let files: Vec<String> = changed
            .iter()
            .filter(|(how, path)| *how == "M" && is_there(path))
            .map(|(_, path)| (*path).to_owned())
            .collect();
        if files.is_empty() {
            continue;
        }
        let tree = trees.len();
        trees.push(blobs.tree(repository, &format!("{hash}^")));
        questions.push(Question { text: subject.to_owned(), files, line: None, tree });
        if questions.len() == most {
            break;
        }
    }
    (questions, trees)
}

/// The first sentences of doc comments, which are removed, and the lines of their functions.
pub(crate) fn described_functions(repository: &Repository) -> (Vec<Question>, Vec<Tree>) {
    let mut questions = Vec::new();
    let files = repository.head().files.into_iter().map(|file| {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { return file };
        let (text, found) = match file.path.rsplit('.').next() {
            Some("rs") => {
                without_comments(text, "///", &["fn ", "pub fn ", "pub(crate) fn ", "async fn ", "pub async fn "])
            }
            Some("go") => without_comments(text, "//", &["func "]),
            Some("py") => without_docstrings(text),
            _ => return file,
        };
        for (sentence, line) in found {
            questions.push(Question { text: sentence, files: vec![file.path.clone()], line: Some(line), tree: 0 });
        }
        TreeFile {
            analyzed: analyzed(&file.path, text.as_bytes()),
            path: file.path,
            bytes: Arc::new(text.into_bytes()),
        }
    });
    let tree = Tree { files: files.collect() };
    (thinned(questions), vec![tree])
}

/// At most [`MOST`] of them, from everywhere.
fn thinned(questions: Vec<Question>) -> Vec<Question> {
    let step = questions.len().div_ceil(MOST).max(1);
    questions.into_iter().step_by(step).collect()
}

/// The text without comments before functions, with the first sentence of each and the line of its function by then.
fn without_comments(text: &str, mark: &str, functions: &[&str]) -> (String, Vec<(String, u32)>) {
    let (mut kept, mut found): (Vec<&str>, Vec<(String, u32)>) = (Vec::new(), Vec::new());
    let mut comment: Vec<&str> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(words) = trimmed.strip_prefix(mark) {
            comment.push(words.trim());
            continue;
        }
        if functions.iter().any(|start| trimmed.starts_with(start)) {
            let sentence = first_sentence(&comment.join(" "));
            if sentence.split_whitespace().count() >= FEWEST_WORDS {
                found.push((sentence, kept.len() as u32 + 1));
            }
        }
        if !trimmed.starts_with("#[") {
            comment.clear();
        }
        kept.push(line);
    }
    (kept.join("\n") + "\n", found)
}

/// The same for Python, whose docstrings come after the first line of a function.
fn without_docstrings(text: &str) -> (String, Vec<(String, u32)>) {
    let (mut kept, mut found): (Vec<&str>, Vec<(String, u32)>) = (Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        kept.push(line);
        let is_function = line.trim_start().starts_with("def ") && line.trim_end().ends_with(':');
        let begins = lines.peek().is_some_and(|next| next.trim_start().starts_with("\"\"\""));
        if !is_function || !begins {
            continue;
        }
        let at = kept.len() as u32;
        let mut words = String::new();
        for (number, line) in lines.by_ref().enumerate() {
            words += line.trim().trim_matches('"');
            words.push(' ');
            let quotes = line.matches("\"\"\"").count();
            if quotes == 2 || quotes == 1 && number > 0 {
                break;
            }
        }
        let sentence = first_sentence(&words);
        if sentence.split_whitespace().count() >= FEWEST_WORDS {
            found.push((sentence, at));
        }
    }
    (kept.join("\n") + "\n", found)
}

fn first_sentence(text: &str) -> String {
    let text = text.trim();
    text.split_once(". ").map_or(text, |(first, _)| first).to_owned()
}

/// Names of functions that are defined once, and the files that do.
pub(crate) fn named_functions(repository: &Repository) -> (Vec<Question>, Vec<Tree>) {
    let tree = repository.head();
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_code(&file.path)) {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        let is_comment = |line: &&str| ["//", "/*", "* ", "# "].iter().any(|mark| line.trim_start().starts_with(mark));
        for name in text.lines().filter(|line| !is_comment(line)).filter_map(defined_name) {
            let has_parts = name.contains('_') || name.chars().skip(1).any(char::is_uppercase);
            if has_parts && name.len() > 5 {
                defined.entry(name.to_owned()).or_default().push(file.path.clone());
            }
        }
    }
    for files in defined.values_mut() {
        files.dedup();
    }
    let once = defined.into_iter().filter(|(_, files)| files.len() == 1);
    let questions = once.map(|(text, files)| Question { text, files, line: None, tree: 0 }).collect();
    (thinned(questions), vec![tree])
}

/// The name that a line defines, by a word such as `fn`, also as a method of Go and in the JavaScript of `owner.name = function`.
fn defined_name(line: &str) -> Option<&str> {
    const DEFINE: [&str; 11] =
        ["fn", "def", "func", "function", "class", "struct", "enum", "trait", "interface", "type", "macro_rules!"];
    let identifier = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    if let Some((owner, _)) = line.split_once(" = function") {
        return owner.rsplit('.').next().filter(|name| !name.contains(' '));
    }
    let mut words = line.split_whitespace().enumerate();
    let (at, word) = words.find(|(_, word)| DEFINE.contains(word)).filter(|(at, _)| *at < 3)?;
    let rest = line.split_once(word)?.1.trim_start();
    let is_method = at == 0 && word == "func" && rest.starts_with('(');
    let rest = if is_method { rest.split_once(')')?.1.trim_start() } else { rest };
    Some(&rest[..identifier(rest)])
}
