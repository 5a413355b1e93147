//! What it costs to search a tree of 50,000 files for what to hide from a command, the first time and again, beside a plain
//! walk of the same tree in the same run.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark walks the tree that it measures against")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use toolgate_contract::{Access, HiddenPaths, WorkspacePath};
use toolgate_runtime::HiddenPathScanner;
use toolgate_sandbox::Roots;
use toolgate_testkit::median;

const ROUNDS: usize = 50;
const FILES: usize = 50_000;
/// A directory that was changed a moment ago is scanned every time, since another change could get the same time.
const UNTIL_SETTLED: Duration = Duration::from_secs(5);

fn main() {
    let workspace = tempfile::tempdir_in("/var/tmp").unwrap();
    make_tree(workspace.path());
    std::thread::sleep(UNTIL_SETTLED);
    let (files, scanner) = (Roots::open(workspace.path()).unwrap(), HiddenPathScanner::default());
    let (mut plain, mut first, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(timed(|| walk(workspace.path())));
        first.push(timed(|| HiddenPathScanner::default().restricted_paths(&files, &NothingHidden).unwrap()));
        again.push(timed(|| scanner.restricted_paths(&files, &NothingHidden).unwrap()));
    }
    let [plain, first, again] = [plain, first, again].map(median);
    println!("{FILES} files, {ROUNDS} rounds, medians; a plain walk: {plain:?}");
    report("the search for what to hide among 50,000 files, first", first, plain, "at most 1");
    report("the search for what to hide among 50,000 files, again", again, plain, "at most 0.1");
}

/// Fifty files in a directory, fifty directories in another.
fn make_tree(root: &Path) {
    for number in 0..FILES {
        let directory = root.join(format!("{}/{}", number / 2_500, number / 50 % 50));
        if number % 50 == 0 {
            std::fs::create_dir_all(&directory).unwrap();
        }
        std::fs::write(directory.join(format!("{number}.txt")), "").unwrap();
    }
}

/// As the standard library walks a tree.
fn walk(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| if entry.file_type().unwrap().is_dir() { walk(&entry.path()) } else { 1 }).sum()
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn report(what: &str, time: Duration, peer: Duration, wanted: &str) {
    println!("{what} ÷ a plain walk: {:.2} x   (wanted: {wanted})", time.as_secs_f64() / peer.as_secs_f64());
}

/// Policy that hides nothing: what is left is the walk.
struct NothingHidden;

impl HiddenPaths for NothingHidden {
    fn hides(&self, _: Access, _: &WorkspacePath) -> bool {
        false
    }
}
