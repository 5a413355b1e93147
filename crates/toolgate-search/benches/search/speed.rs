//! How fast it is, through the whole gate.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_contract::erase;
use toolgate_testkit::TestWorkspace;
use toolgate_tools::SearchTool;

use crate::baselines::{FullText, Semble};
use crate::repository::Repository;

/// Files of the tree that nothing changes in.
const UNCHANGED: usize = 30_000;
const ROUNDS: usize = 15;

pub(crate) fn measure(repository: &Path, peer: &mut Option<Semble>) {
    let tree = Repository::open(repository).head();
    let bytes: usize = tree.files.iter().map(|file| file.bytes.len()).sum();
    let world = world();
    let copies = (40 << 20) / bytes.max(1) + 1;
    for copy in 0..copies {
        for file in &tree.files {
            world.file(&format!("c{copy}/{}", file.path), &*file.bytes);
        }
    }
    let (files, bytes) = (tree.files.len() * copies, bytes * copies);
    let megabytes = bytes as f64 / 1e6;
    println!("\n{files} files, {megabytes:.1} MB of text, on two cores");
    let began = Instant::now();
    let found = search(&world, "where is the configuration read");
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(found["coverage"]["indexed"], json!(files), "{}", found["coverage"]);
    println!("indexing for search: {:.1} MB/s   (wanted: at least 20)", megabytes / seconds);
    let index: u64 = std::fs::read_dir(world.path().join(".toolgate/search"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    println!("search index ÷ its text: {:.2} x   (wanted: at most 0.5)", index as f64 / bytes as f64);
    ranking(&tree);
    full_text(&tree, bytes / copies);
    refresh();
    if let Some(peer) = peer {
        let directory = tree.written();
        let answer =
            peer.ask(directory.path(), &["where is the configuration read", "parse the header", "retry after failure"]);
        let own = bytes as f64 / copies as f64 / 1e6;
        println!(
            "semble: {:.2} s for {own:.1} MB, {:.1} MB/s; a question {:.1} ms",
            answer.seconds,
            own / answer.seconds,
            answer.query_ms
        );
    }
}

fn world() -> TestWorkspace {
    TestWorkspace::new([erase(SearchTool)], "preset = 'full'\nsearch.index_seconds = 600")
}

/// A question to an index that is in memory, without the walk.
fn ranking(tree: &crate::repository::Tree) {
    let indexed = tree.indexed();
    let questions = [
        "where is the configuration read",
        "parse the header",
        "retry after a failure",
        "session",
        "open a file beneath the root",
    ];
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        for question in questions {
            let began = Instant::now();
            assert!(indexed.search(question, 10).len() <= 10);
            times.push(began.elapsed());
        }
    }
    println!("a question to the search index, median: {:.2} ms   (wanted: at most 5)", median(times) * 1000.0);
}

/// FTS5 of SQLite with the same tree.
fn full_text(tree: &crate::repository::Tree, bytes: usize) {
    let began = Instant::now();
    let index = FullText::new(tree);
    let seconds = began.elapsed().as_secs_f64();
    let share = index.bytes() as f64 / bytes as f64;
    println!("FTS5, in memory, one core: {:.1} MB/s, index {share:.2} of the text", bytes as f64 / 1e6 / seconds);
}

/// A question in a tree of many files that are as they were.
fn refresh() {
    let world = world();
    for number in 0..UNCHANGED {
        world.file(&format!("d{}/e{}/f{number}.txt", number % 30, number % 900), format!("word{number} and others\n"));
    }
    // Until then, files are so new that their content is compared.
    std::thread::sleep(Duration::from_millis(3200));
    search(&world, "others");
    search(&world, "others");
    let times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        search(&world, "word17 word4711");
        began.elapsed()
    });
    println!(
        "a search among {UNCHANGED} unchanged files, walk included: {:.0} ms   (wanted: at most 100)",
        median(times.collect()) * 1000.0
    );
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn search(world: &TestWorkspace, query: &str) -> Value {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let reply = runtime.block_on(world.perform("search", json!({ "query": query })));
    assert!(reply.ok, "{:?}", reply.error);
    reply.payload.unwrap()
}
