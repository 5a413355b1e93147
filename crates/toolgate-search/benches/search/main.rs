//! How good and how fast `search` is. Arguments are git repositories; without any, this project's own. In each: the subjects
//! of commits, each asked in the tree before it, have to find the files that the commit changed; the first sentences of doc
//! comments, removed from the text, their functions (`line`: in the lines shown; `named`: or in those named beside them); and
//! names of functions and types their files. Beside ours: counting words, the lines that match any
//! word (what `rg -ic` counts), SQLite's FTS5, and semble, the same without weights, where `SEMBLE` names a Python that has it.
//! `QUERIES` is the number of commits of each repository (150), `FTS5_QUERIES` that for FTS5 (30).
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

use crate::baselines::{FullText, PeerChunk, Semble, by_keywords, by_matching_lines};
use crate::questions::{commit_questions, described_functions, named_functions};
use crate::repository::{Repository, WrittenTree};
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
    let is_own = given.is_empty();
    let given = if is_own { vec![own.clone()] } else { given };
    let installed = own.join("target/python/semble-0.7.0/bin/python");
    let python = std::env::var_os("SEMBLE").or_else(|| installed.exists().then(|| installed.into_os_string()));
    let mut peer = python.and_then(Semble::start);
    if peer.is_none() {
        println!("semble isn't measured: set SEMBLE to a Python that has it");
    }
    println!("{:<40}{:<12}{:>8}{:>8}{:>8}{:>8}", "set", "by", "queries", "MRR@10", "R@10", "NDCG@10");
    let (mut total, mut total_of_semble, mut worse) = (Scores::default(), Scores::default(), 0);
    for path in &given {
        let repository = Repository::open(path);
        let commits = measure(&repository, "commits", commit_questions(&repository, number("QUERIES", 150)), &mut peer);
        let described = measure(&repository, "doc comments", described_functions(&repository), &mut peer);
        let named = measure(&repository, "names", named_functions(&repository), &mut peer);
        worse += [&commits, &described, &named].iter().filter(|set| set.is_worse()).count();
        total.add(&commits.ours);
        total_of_semble.add(&commits.semble);
    }
    print_row("all commits", "ours", &total);
    let [reciprocal_rank, recall, gain] = total.means();
    // The limits are for helix, axum, flask, gin and crush. How hard a project's subjects are differs, so of this one a peer tells.
    if !is_own {
        println!("search, commit subject to files, MRR@10: {reciprocal_rank:.3} of 1   (wanted: at least 0.62)");
        println!("search, commit subject to files, R@10: {recall:.3} of 1   (wanted: at least 0.78)");
    }
    if peer.is_some() {
        let [.., peer_gain] = total_of_semble.means();
        let ratio = gain / peer_gain.max(1e-6);
        println!("search, commit subject to files, NDCG@10 beside semble: {ratio:.2} x   (wanted: at least 1)");
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
    let step = (questions.len() / number("FTS5_QUERIES", 30).max(1)).max(1);
    let mut written = WrittenTree::new();
    for (tree_number, tree) in trees.iter().enumerate() {
        let indexed = tree.indexed();
        let of_tree = questions.iter().enumerate().filter(|(_, question)| question.tree == tree_number);
        let of_tree: Vec<(usize, &Question)> = of_tree.collect();
        for (_, question) in &of_tree {
            by.count_ours(&indexed.search(&question.text, 10), question);
            by.keywords.count(&by_keywords(tree, &question.text), &question.files);
            by.matching_lines.count(&by_matching_lines(tree, &question.text), &question.files);
        }
        // One tree has all questions of the other sets.
        let for_full_text = of_tree.iter().filter(|(at, _)| trees.len() == 1 || at % step == 0);
        let mut full_text = None;
        for (_, question) in for_full_text {
            let found = full_text.get_or_insert_with(|| FullText::new(tree)).ask(&question.text);
            by.full_text.count(&borrowed(&found), &question.files);
        }
        if let Some(peer) = peer.as_mut().filter(|_| !of_tree.is_empty()) {
            written.become_tree(tree);
            let asked: Vec<&str> = of_tree.iter().map(|(_, question)| question.text.as_str()).collect();
            for (answer, (_, question)) in peer.ask(written.path(), &asked).answers.iter().zip(&of_tree) {
                by.count_semble(answer, question);
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
    /// Where the line has to be in the place that is shown of the file.
    lines: Scores,
    /// Where it may be in one of those that are named beside it.
    named_lines: Scores,
    keywords: Scores,
    matching_lines: Scores,
    full_text: Scores,
    semble: Scores,
    semble_lines: Scores,
}

impl Measured {
    fn count_ours(&mut self, places: &[MeasuredPlace], question: &Question) {
        let has_line = |(first, last): (u32, u32)| question.line.is_none_or(|line| (first..=last).contains(&line));
        let paths = |is_hit: &dyn Fn(&MeasuredPlace) -> bool| -> Vec<&str> {
            places.iter().map(|place| if is_hit(place) { place.path.as_str() } else { "" }).collect()
        };
        let is_shown = |place: &MeasuredPlace| has_line((place.first, place.last));
        let is_named = |place: &MeasuredPlace| is_shown(place) || place.also.iter().any(|lines| has_line(*lines));
        self.ours.count(&paths(&|_| true), &question.files);
        self.lines.count(&paths(&is_shown), &question.files);
        self.named_lines.count(&paths(&is_named), &question.files);
    }

    /// semble shows chunks, several of a file: the files of 50, and the lines of 10.
    fn count_semble(&mut self, chunks: &[PeerChunk], question: &Question) {
        let mut files: Vec<&str> = Vec::new();
        for PeerChunk(path, ..) in chunks {
            if !files.contains(&path.as_str()) {
                files.push(path);
            }
        }
        self.semble.count(&files, &question.files);
        let is_hit = |PeerChunk(path, first, last): &PeerChunk| {
            question.files.contains(path) && question.line.is_none_or(|line| (*first..=*last).contains(&line))
        };
        let hit = chunks.iter().take(10).position(is_hit);
        let lines: Vec<&str> = chunks
            .iter()
            .take(10)
            .enumerate()
            .map(|(at, chunk)| if hit == Some(at) { chunk.0.as_str() } else { "" })
            .collect();
        self.semble_lines.count(&lines, &question.files);
    }

    /// Whether semble found more in the same questions.
    fn is_worse(&self) -> bool {
        let [[.., ours], [.., semble]] = [&self.ours, &self.semble].map(Scores::means);
        self.semble.is_counted() && semble > ours
    }

    fn print(&self, set: &str, has_lines: bool) {
        print_row(set, "ours", &self.ours);
        print_row(set, "keywords", &self.keywords);
        print_row(set, "rg lines", &self.matching_lines);
        print_row(set, "FTS5", &self.full_text);
        if self.semble.is_counted() {
            print_row(set, "semble", &self.semble);
        }
        if has_lines {
            print_row(set, "ours, line", &self.lines);
            print_row(set, "ours, named", &self.named_lines);
            if self.semble.is_counted() {
                print_row(set, "semble, line", &self.semble_lines);
            }
        }
    }
}
