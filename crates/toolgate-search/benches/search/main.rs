//! How good and how fast `search` is. Arguments are git repositories; without any, this project's own. In each: the subjects
//! of commits, each asked in the tree before it, have to find the files that the commit changed; the first sentences of doc
//! comments, removed from the text, their functions; and names of functions their files. Beside ours: counting words, the lines that match any
//! word (what `rg -ic` counts), SQLite's FTS5, and semble, the same without weights, where `SEMBLE` names a Python that has it.
//! `QUERIES` is the number of commits of each repository (150), `PEER_QUERIES` that for FTS5 and semble (30).
//!
//! Then the speed, through the whole gate: indexing, a refresh of 30,000 files that are as they were, a question, and the size.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its trees and runs its peers")]

mod baselines;
mod questions;
mod repository;
mod scores;
mod speed;

use std::path::PathBuf;

use toolgate_search::measure::MeasuredPlace;

use crate::baselines::{FullText, Semble, by_keywords, by_matching_lines};
use crate::questions::{commit_questions, described_functions, named_functions};
use crate::repository::Repository;
use crate::scores::{Scores, print_row};

/// A question, and what answers it.
struct Question {
    text: String,
    /// The files that answer it.
    files: Vec<String>,
    /// The line that has to be among those shown; none if the file is enough.
    line: Option<u32>,
    tree: usize,
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given: Vec<PathBuf> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).map(PathBuf::from).collect();
    let given = if given.is_empty() { vec![own.clone()] } else { given };
    let installed = own.join("target/python/semble-0.7.0/bin/python");
    let python = std::env::var_os("SEMBLE").or_else(|| installed.exists().then(|| installed.into_os_string()));
    let mut peer = python.and_then(Semble::start);
    if peer.is_none() {
        println!("semble isn't measured: set SEMBLE to a Python that has it");
    }
    println!("{:<40}{:<12}{:>8}{:>8}{:>8}{:>8}", "set", "by", "queries", "MRR@10", "R@10", "NDCG@10");
    let (mut total, mut worse) = (Scores::default(), 0);
    for path in &given {
        let repository = Repository::open(path);
        let commits = measure(&repository, "commits", commit_questions(&repository, number("QUERIES", 150)), &mut peer);
        let described = measure(&repository, "doc comments", described_functions(&repository), &mut peer);
        let named = measure(&repository, "names", named_functions(&repository), &mut peer);
        worse += [&commits, &described, &named].iter().filter(|set| set.is_worse()).count();
        total.add(&commits.ours);
    }
    print_row("all commits", "ours", &total);
    let [reciprocal_rank, recall, _] = total.means();
    println!("search, commit subject to files, MRR@10: {reciprocal_rank:.3} of 1   (wanted: at least 0.62)");
    println!("search, commit subject to files, R@10: {recall:.3} of 1   (wanted: at least 0.78)");
    if peer.is_some() {
        println!("search, sets in which semble has the better NDCG@10: {worse} sets   (wanted: 0)");
    }
    if let Some(package) = registry_package() {
        let repository = Repository::plain(&package);
        measure(&repository, "doc comments", described_functions(&repository), &mut peer);
        measure(&repository, "names", named_functions(&repository), &mut peer);
    }
    speed::measure(&given[0], &mut peer);
}

/// A package of cargo's registry, as its sources lie there.
fn registry_package() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let packages =
        registries.flatten().filter_map(|registry| std::fs::read_dir(registry.path()).ok()).flatten().flatten();
    packages
        .map(|package| package.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("regex-automata-")))
}

/// Measures one set of questions, ours and the others.
fn measure(
    repository: &Repository,
    set: &str,
    (questions, trees): (Vec<Question>, Vec<repository::Tree>),
    peer: &mut Option<Semble>,
) -> Measured {
    let mut by = Measured::default();
    let step = (questions.len() / number("PEER_QUERIES", 30).max(1)).max(1);
    for (tree_number, tree) in trees.iter().enumerate() {
        let indexed = tree.indexed();
        let mut for_peer: Vec<&Question> = Vec::new();
        for (at, question) in questions.iter().enumerate().filter(|(_, question)| question.tree == tree_number) {
            let places = indexed.search(&question.text, 10);
            let files: Vec<&str> = places.iter().map(|place| place.path.as_str()).collect();
            let is_shown =
                |place: &MeasuredPlace| question.line.is_none_or(|line| (place.first..=place.last).contains(&line));
            let shown: Vec<&str> =
                places.iter().map(|place| if is_shown(place) { place.path.as_str() } else { "" }).collect();
            by.ours.count(&files, &question.files);
            by.lines.count(&shown, &question.files);
            by.keywords.count(&by_keywords(tree, &question.text), &question.files);
            by.matching_lines.count(&by_matching_lines(tree, &question.text), &question.files);
            // One tree has all questions of the other sets.
            if trees.len() == 1 || at % step == 0 {
                by.same.count(&files, &question.files);
                for_peer.push(question);
            }
        }
        if for_peer.is_empty() {
            continue;
        }
        let full_text = FullText::new(tree);
        for question in &for_peer {
            by.full_text.count(&borrowed(&full_text.ask(&question.text)), &question.files);
        }
        if let Some(peer) = peer {
            let directory = tree.written();
            let asked: Vec<&str> = for_peer.iter().map(|question| question.text.as_str()).collect();
            for (answer, question) in peer.ask(directory.path(), &asked).answers.iter().zip(for_peer) {
                by.semble.count(&borrowed(answer), &question.files);
            }
        }
    }
    by.print(&format!("{} {set}", repository.name), questions.iter().any(|question| question.line.is_some()));
    by
}

fn borrowed(paths: &[String]) -> Vec<&str> {
    paths.iter().map(String::as_str).collect()
}

/// What each way of searching comes to in one set. All are asked for files.
#[derive(Default)]
struct Measured {
    ours: Scores,
    /// Ours, where the line has to be among those shown.
    lines: Scores,
    keywords: Scores,
    matching_lines: Scores,
    full_text: Scores,
    semble: Scores,
    /// Ours, in the questions that FTS5 and semble were asked.
    same: Scores,
}

impl Measured {
    /// Whether semble found more in the same questions.
    fn is_worse(&self) -> bool {
        let [[.., ours], [.., semble]] = [&self.same, &self.semble].map(Scores::means);
        self.semble.is_counted() && semble > ours
    }

    fn print(&self, set: &str, has_lines: bool) {
        print_row(set, "ours", &self.ours);
        if has_lines {
            print_row(set, "ours, line", &self.lines);
        }
        print_row(set, "keywords", &self.keywords);
        print_row(set, "rg lines", &self.matching_lines);
        print_row(set, "FTS5", &self.full_text);
        if self.semble.is_counted() {
            print_row(set, "semble", &self.semble);
        }
        print_row(set, "ours, same", &self.same);
    }
}
