//! A directory swapped for a link in a loop while it is read: whatever was checked, what is opened must be inside.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toolgate_sandbox::OpenMethod;

use crate::{SECRET, Scene};

/// Rounds after which the naive way must have leaked, however slow the machine: it takes a few hundred.
const MOST_ROUNDS: usize = 10_000_000;

/// Long enough to see the naive way leak many times; `TOOLGATE_RACE_SECONDS` sets another time.
fn time_to_race() -> Duration {
    let seconds = std::env::var("TOOLGATE_RACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    Duration::from_secs(seconds)
}

#[test]
fn a_swapped_directory_leads_nowhere() {
    let scene = Scene::new();
    let ws = scene.workspace();
    std::fs::create_dir(ws.join("real")).unwrap();
    std::fs::write(ws.join("real/secret"), "harmless").unwrap();
    symlink("../ws-evil", ws.join("link")).unwrap();
    std::fs::rename(ws.join("real"), ws.join("door")).unwrap();
    let is_over = AtomicBool::new(false);
    let (mut leaks, mut naive_leaks, mut reads) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (from, to) in [("door", "real"), ("link", "door"), ("door", "link"), ("real", "door")] {
                    std::fs::rename(ws.join(from), ws.join(to)).unwrap();
                }
            }
        });
        let end = Instant::now() + time_to_race();
        // The race has to be a real one: it goes on until the naive way has lost it.
        while Instant::now() < end || (naive_leaks == 0 && reads < MOST_ROUNDS) {
            for way in [OpenMethod::Kernel, OpenMethod::Walk] {
                leaks += usize::from(scene.read(way, "door/secret").is_ok_and(|text| text == SECRET));
                reads += 1;
            }
            naive_leaks += usize::from(check_then_open(&ws.join("door/secret"), &ws));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(leaks, 0, "of {reads} reads");
    assert!(naive_leaks > 0, "{reads} reads raced nothing");
    println!("{reads} reads, no leak; the check-then-open way leaked {naive_leaks} times beside it");
}

/// What others do: resolve the path, see that it is inside, then open it.
fn check_then_open(path: &std::path::Path, root: &std::path::Path) -> bool {
    let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(root.canonicalize().unwrap()));
    is_inside && std::fs::read_to_string(path).is_ok_and(|text| text == SECRET)
}
