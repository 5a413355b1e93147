//! `grep` and `find` through the whole gate, beside `rg` and `fdfind` as processes that do the same in the same run, on a
//! tree of 50,000 files and 500 MB that the benchmark makes; with `TOOLGATE_TREE=path`, on a copy of that directory. An
//! argument chooses the comparisons whose names contain it.
//!
//! A page of a common match is found without searching everything, which the peers can't know how to do; in mode `counts`
//! both sides search the whole tree.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark makes its tree and runs its peers")]

#[allow(dead_code, reason = "only the dice are used here")]
#[path = "../tests/search/tree.rs"]
mod tree;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_testkit::TestWorkspace;

use tree::Dice;

const ROUNDS: usize = 9;
const DIRECTORIES: usize = 2_500;
const FILES_IN_EACH: usize = 20;
const AVERAGE_BYTES: usize = 10_000;

/// In one file of ten thousand.
const RARE: &str = "needle_in_a_haystack";
/// In one file of three.
const COMMON: &str = "return the_result";
/// Nowhere.
const ABSENT: &str = "nowhere_to_be_found";

fn main() {
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    let directory = world.path().join("tree");
    match std::env::var_os("TOOLGATE_TREE") {
        Some(given) => assert!(Command::new("cp").arg("-a").arg(given).arg(&directory).status().unwrap().success()),
        None => make(&directory),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let bench = Bench { runtime, world, wanted };
    println!("medians of {ROUNDS} rounds");
    forget_peak();
    for (name, pattern) in [("rare", RARE), ("common", COMMON), ("no", ABSENT)] {
        bench.compare(&format!("grep, {name} match"), "grep", json!({"pattern": pattern}), "rg", &["-n", pattern]);
        let args = json!({"pattern": pattern, "mode": "counts"});
        bench.compare(&format!("grep, {name} match, counts"), "grep", args, "rg", &["-c", pattern]);
    }
    println!("peak memory while grepping the whole tree: {} MB   (wanted: under 100)", peak() / 1024);
    for (name, pattern) in [("rare", "needle*"), ("common", "*.rs"), ("no", "nowhere*")] {
        bench.compare(&format!("find, {name} match"), "find", json!({"pattern": pattern}), "fdfind", &["-g", pattern]);
    }
}

/// Everything that is measured with.
struct Bench {
    runtime: Runtime,
    world: TestWorkspace,
    wanted: String,
}

impl Bench {
    /// Both sides take turns, so that noise hits both. The first round only warms up.
    fn compare(&self, name: &str, tool: &str, mut args: Value, peer: &str, arguments: &[&str]) {
        if !name.contains(&self.wanted) {
            return;
        }
        args["path"] = json!("tree");
        let session = self.world.session();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..=ROUNDS {
            let began = Instant::now();
            let reply = self.runtime.block_on(self.world.perform_in(&session, tool, args.clone()));
            ours.push(began.elapsed());
            assert!(reply.ok, "{:?}", reply.error);
            let began = Instant::now();
            let output = Command::new(peer).args(arguments).current_dir(self.world.path().join("tree")).output();
            theirs.push(began.elapsed());
            output.unwrap_or_else(|error| panic!("{peer}: {error}; `cargo xtask setup` installs it"));
        }
        let (ours, theirs) = (median(&ours[1..]), median(&theirs[1..]));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("{name} ÷ {peer}: {ratio:.2} x   (wanted: at most 1)");
        println!("  {ours:.1?} beside {theirs:.1?}");
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

/// Makes a tree like that of a large project: many small files, a few that are ignored.
fn make(directory: &Path) {
    let mut dice = Dice::new(1);
    let text = prose(&mut dice, 1_000_000);
    for at in 0..DIRECTORIES {
        let directory = directory.join(format!("part{:02}/unit{:02}/sub{}", at / 125, at / 5 % 25, at % 5));
        std::fs::create_dir_all(&directory).unwrap();
        for file in 0..FILES_IN_EACH {
            let number = at * FILES_IN_EACH + file;
            let from = dice.below(text.len() - 2 * AVERAGE_BYTES);
            let mut content = text[from..from + dice.below(2 * AVERAGE_BYTES)].to_owned();
            content += if number.is_multiple_of(3) { "\n    return the_result;\n" } else { "\n" };
            content += if number % 10_000 == 77 { "// needle_in_a_haystack\n" } else { "" };
            let name = if number % 10_000 == 99 { "needle" } else { "file" };
            let ending = dice.one(&["rs", "py", "md", "c"]);
            std::fs::write(directory.join(format!("{name}{file}.{ending}")), content).unwrap();
        }
        if at % 100 == 0 {
            std::fs::create_dir(directory.join("target")).unwrap();
            (0..10).for_each(|n| std::fs::write(directory.join(format!("target/{n}.o")), "nothing").unwrap());
        }
    }
    std::fs::write(directory.join(".gitignore"), "target/\n*.log\n").unwrap();
    // The peers honour `.gitignore` only in a repository.
    std::fs::create_dir(directory.join(".git")).unwrap();
}

fn prose(dice: &mut Dice, length: usize) -> String {
    let words = [
        "let", "value", "if", "match", "the", "of", "index", "(self)", "= 42;", "// note", "String", "vector", "{", "}",
    ];
    let mut text = String::with_capacity(length);
    while text.len() < length {
        (0..3 + dice.below(10)).for_each(|_| text.extend([dice.one(&words), " "]));
        text.push('\n');
    }
    text
}

/// Lets the kernel's mark of the highest memory start anew.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The highest resident memory in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
