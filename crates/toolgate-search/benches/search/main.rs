//! How good and how fast `search` is. Arguments are git repositories; without any, this project's own. In each: the subjects
//! of commits, each asked in the tree before it, have to find the files that the commit changed; the first sentences of doc
//! comments, removed from the text, their functions; and names of functions their files. Beside ours: counting words, the lines that match any
//! word (what `rg -ic` counts), and semble, the same without weights, where `SEMBLE` names a Python that has it.
//! `QUERIES` is the number of commits of each repository (150), `PEER_QUERIES` that for the peer (10).
//!
//! Then the speed, through the whole gate: indexing, a refresh of 30,000 files that are as they were, a question, and the size.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its trees and runs its peers")]

mod baselines;
mod questions;
mod repository;
mod scores;
mod speed;

use std::path::PathBuf;

use crate::baselines::{Semble, by_keywords, by_matching_lines};
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
    println!("{:<28}{:<12}{:>8}{:>8}{:>8}{:>8}", "set", "by", "queries", "MRR@10", "R@10", "NDCG@10");
    let mut total = Scores::default();
    for path in &given {
        let repository = Repository::open(path);
        total.add(&measure(&repository, "commits", commit_questions(&repository, number("QUERIES", 150)), &mut peer));
        measure(&repository, "doc comments", described_functions(&repository), &mut peer);
        measure(&repository, "names", named_functions(&repository), &mut peer);
    }
    print_row("all commits", "ours", &total);
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
) -> Scores {
    let name = format!("{} {set}", repository.name);
    let (mut ours, mut keywords, mut lines, mut semble, mut same) =
        (Scores::default(), Scores::default(), Scores::default(), Scores::default(), Scores::default());
    let step = (questions.len() / number("PEER_QUERIES", 10).max(1)).max(1);
    for (tree_number, tree) in trees.iter().enumerate() {
        let of_tree: Vec<(usize, &Question)> =
            questions.iter().enumerate().filter(|(_, question)| question.tree == tree_number).collect();
        let indexed = tree.indexed();
        let mut for_peer: Vec<&Question> = Vec::new();
        for (at, question) in of_tree {
            let places = indexed.search(&question.text, 10);
            let hits: Vec<&str> = places
                .iter()
                .map(|place| match question.line {
                    Some(line) if !(place.first..=place.last).contains(&line) => "",
                    _ => place.path.as_str(),
                })
                .collect();
            ours.count(&hits, &question.files);
            keywords.count(&by_keywords(tree, &question.text), &question.files);
            lines.count(&by_matching_lines(tree, &question.text), &question.files);
            // One tree has all questions of the other sets.
            if trees.len() == 1 || at % step == 0 {
                let files: Vec<&str> = places.iter().map(|place| place.path.as_str()).collect();
                same.count(&files, &question.files);
                for_peer.push(question);
            }
        }
        if let Some(peer) = peer.as_mut().filter(|_| !for_peer.is_empty()) {
            let directory = tree.written();
            let asked: Vec<&str> = for_peer.iter().map(|question| question.text.as_str()).collect();
            for (answer, question) in peer.ask(directory.path(), &asked).answers.iter().zip(for_peer) {
                semble.count(&answer.iter().map(String::as_str).collect::<Vec<_>>(), &question.files);
            }
        }
    }
    print_row(&name, "ours", &ours);
    print_row(&name, "keywords", &keywords);
    print_row(&name, "rg lines", &lines);
    if peer.is_some() {
        print_row(&name, "semble", &semble);
        print_row(&name, "ours, same", &same);
    }
    ours
}
