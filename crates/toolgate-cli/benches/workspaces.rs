//! What commands cost in workspaces of three sizes, a factor of ten apart, beside the same work by plain bash in the same run: the
//! search for files to hide, one changed file, the start of a command in the background, and a whole tree that is removed.
//!
//! `cargo xtask bench workspaces -- 1000000` measures one more size.
#![allow(clippy::disallowed_methods, reason = "starts the program that it measures, in a directory of its own")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_testkit::median;

use support::{BenchWorld, SpokenServer, make_tree};

const SIZES: [usize; 3] = [500, 5_000, 50_000];
const ROUNDS: usize = 9;
/// A directory that was changed a moment ago is searched every time, since another change could get the same time.
const UNTIL_SETTLED: Duration = Duration::from_secs(5);

fn main() {
    let asked = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let sizes: Vec<usize> = SIZES.into_iter().chain(asked).collect();
    let empty = OneSize::measure(0);
    let measured: Vec<OneSize> = sizes.iter().map(|files| OneSize::measure(*files)).collect();
    println!(
        "{:>10}{:>12}{:>12}{:>16}{:>16}{:>16}{:>16}{:>16}",
        "files", "first", "again", "changes one", "plain", "background", "removes all", "plain"
    );
    for size in [&empty].into_iter().chain(&measured) {
        println!("{size}");
    }
    for size in &measured {
        size.report(&empty);
    }
}

/// What was measured in a workspace of one size.
struct OneSize {
    files: usize,
    first: Duration,
    again: Duration,
    changes: Duration,
    changes_plain: Duration,
    background: Duration,
    removal: Duration,
    removal_plain: Duration,
}

impl OneSize {
    fn measure(files: usize) -> Self {
        let world = BenchWorld::new("rules = [{ decision = 'allow', permission = 'fs.delete' }]\n");
        make_tree(&world.workspace().join("tree"), files);
        make_tree(&world.workspace().join("twin"), files);
        for directory in ["tree", "twin"] {
            std::fs::create_dir_all(world.workspace().join(directory)).unwrap();
        }
        std::fs::write(world.workspace().join("notes.txt"), "first\n").unwrap();
        std::thread::sleep(UNTIL_SETTLED);
        let mut server = SpokenServer::of_toolgate(&world);
        let first = shell(&mut server, "true");
        let again = median((0..ROUNDS).map(|_| shell(&mut server, "true")).collect());
        let (mut changes, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            changes.push(shell(&mut server, "echo more >> notes.txt"));
            plain.push(world.time("bash", &["-c", "echo more >> notes.txt"]));
        }
        let background = in_background(&mut server);
        let removal = shell(&mut server, "rm -rf tree");
        let removal_plain = world.time("bash", &["-c", "rm -rf twin"]);
        let (changes, changes_plain) = (median(changes), median(plain));
        Self { files, first, again, changes, changes_plain, background, removal, removal_plain }
    }

    /// The figures of this size; what a command costs anyway is what it costs in an empty workspace.
    fn report(&self, empty: &Self) {
        let files = self.files;
        let search = |time: Duration, bare: Duration| ratio(time.saturating_sub(bare), empty.again);
        let first = search(self.first, empty.first);
        println!(
            "the search for files to hide, {files} files, first ÷ a confined command: {first:.2} x   (wanted: at most 1)"
        );
        let again = search(self.again, empty.again);
        println!(
            "the search for files to hide, {files} files, again ÷ a confined command: {again:.2} x   (wanted: at most 0.2)"
        );
        let changes = ratio(self.changes, empty.changes);
        println!(
            "a command that changes one of {files} files ÷ the same in an empty workspace: {changes:.2} x   (wanted: at most 2)"
        );
        let background = self.background.as_secs_f64() * 1e3;
        println!("start of a command in the background, {files} files: {background:.0} ms   (wanted: at most 100)");
        let removal = ratio(self.removal, self.removal_plain);
        println!("rm -rf of {files} files, undoable ÷ plain: {removal:.2} x   (wanted: at most 3)");
    }
}

impl std::fmt::Display for OneSize {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        write!(formatter, "{:>10}{:>12}{:>12}", self.files, shown(self.first), shown(self.again))?;
        let rest = [self.changes, self.changes_plain, self.background, self.removal, self.removal_plain];
        rest.into_iter().try_for_each(|time| write!(formatter, "{:>16}", shown(time)))
    }
}

fn shell(server: &mut SpokenServer, command: &str) -> Duration {
    let (took, result) =
        server.call("shell", &json!({ "command": command, "yield_ms": 600_000, "timeout_seconds": 600 }));
    assert_eq!(payload(&result)["exit_code"], 0, "{result}");
    took
}

/// How long it takes until a command runs in the background. It is stopped then.
fn in_background(server: &mut SpokenServer) -> Duration {
    let began = Instant::now();
    let (_, result) = server.call("shell", &json!({ "command": "sleep 1000", "background": true }));
    let took = began.elapsed();
    let process = &payload(&result)["process"];
    server.call("process", &json!({ "action": "stop", "process": process }));
    took
}

fn payload(result: &Value) -> &Value {
    &result["structuredContent"]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
