//! Walks through trees that work against them. What a walk sees must lie beneath its start, whatever happens meanwhile.
#![allow(clippy::disallowed_methods, reason = "tests make files of their own")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;
use toolgate_contract::{EntryKind, Files, SkipReason, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath};
use toolgate_sandbox::{OpenMethod, Roots};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

/// The paths that a walk from `start` visits, sorted, and how many directories it couldn't read.
fn walked(roots: &Roots, start: &str, options: &WalkOptions) -> (Vec<String>, u64) {
    let seen = Mutex::new(Vec::new());
    let visit = |walked: &VisitedEntry<'_>| {
        let mark = match walked.left_out {
            None => "",
            Some(SkipReason::Ignored) => " (ignored)",
            Some(SkipReason::Hidden) => " (hidden)",
        };
        seen.lock().unwrap().push(format!("{}{mark}", walked.place.path));
        WalkStep::On
    };
    let unreadable =
        roots.walk(&WorkspacePath::in_workspace(start), options, &|| -> Visitor<'_> { Box::new(visit) }).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    (seen, unreadable)
}

fn each_way(directory: &Path, check: impl Fn(&Roots)) {
    for way in [OpenMethod::Kernel, OpenMethod::Walk] {
        check(&Roots::open(directory).unwrap().with_open_method(way));
    }
}

fn honouring() -> WalkOptions {
    WalkOptions { gitignore: true, ..WalkOptions::default() }
}

#[test]
fn what_is_left_out_comes_at_the_end_if_asked_for() {
    let directory =
        tree(&[(".gitignore", "out/\n*.log"), ("out/x/y", ""), ("a.log", ""), (".dot/z", ""), ("src/a", "")]);
    each_way(directory.path(), |roots| {
        assert_eq!(walked(roots, "", &honouring()).0, ["src", "src/a"]);
        let all = WalkOptions { then_left_out: true, ..honouring() };
        let ignored = ["a.log (ignored)", "out (ignored)", "out/x (ignored)", "out/x/y (ignored)"];
        let hidden = [".dot (hidden)", ".dot/z (hidden)", ".gitignore (hidden)"];
        let expected: Vec<&str> = hidden.into_iter().chain(ignored).chain(["src", "src/a"]).collect();
        assert_eq!(walked(roots, "", &all).0, expected);
    });
}

#[test]
fn a_repository_inside_has_rules_of_its_own() {
    let directory = tree(&[(".gitignore", "*.log"), (".ignore", "*.tmp"), ("inner/.git/info/exclude", "*.own")]);
    for name in ["a.log", "a.tmp", "a.own"] {
        fs::write(directory.path().join("inner").join(name), "").unwrap();
    }
    each_way(directory.path(), |roots| {
        assert_eq!(walked(roots, "", &honouring()).0, ["inner", "inner/a.log"]);
        assert_eq!(walked(roots, "inner", &honouring()).0, ["inner/a.log"]);
    });
}

#[test]
fn an_ignore_file_is_read_only_where_it_lies() {
    let outside = tree(&[("rules", "*.rs")]);
    let directory = tree(&[("a.rs", ""), ("sub/b.rs", "")]);
    symlink(outside.path().join("rules"), directory.path().join(".gitignore")).unwrap();
    symlink("/dev/zero", directory.path().join("sub/.gitignore")).unwrap();
    each_way(directory.path(), |roots| {
        assert_eq!(walked(roots, "", &honouring()).0, ["a.rs", "sub", "sub/b.rs"]);
    });
}

#[test]
fn an_ignore_file_without_end_has_rules_only_as_far_as_it_is_read() {
    let directory = tree(&[("a.rs", ""), ("b.rs", "")]);
    let endless = format!("a.rs\n{}\nb.rs\n", "# a comment that goes on and on\n".repeat(50_000));
    fs::write(directory.path().join(".gitignore"), endless).unwrap();
    each_way(directory.path(), |roots| assert_eq!(walked(roots, "", &honouring()).0, ["b.rs"]));
}

#[test]
fn links_are_seen_and_not_followed() {
    let outside = tree(&[("secret", "")]);
    let directory = tree(&[("real/a", "")]);
    symlink(outside.path(), directory.path().join("out")).unwrap();
    symlink("real", directory.path().join("in")).unwrap();
    each_way(directory.path(), |roots| {
        assert_eq!(walked(roots, "", &WalkOptions::default()).0, ["in", "out", "real", "real/a"]);
    });
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let outside = tree(&[("secret", ""), ("more/secret", "")]);
    let directory = tree(&[("swapped/inside", ""), ("other/a", "")]);
    let (swapped, aside) = (directory.path().join("swapped"), directory.path().join("aside"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&swapped, &aside).unwrap();
                symlink(outside.path(), &swapped).unwrap();
                fs::remove_file(&swapped).unwrap();
                fs::rename(&aside, &swapped).unwrap();
            }
        });
        // A walk by paths does fall for it, so the check below means something.
        let by_path =
            || fs::read_dir(&swapped).is_ok_and(|names| names.flatten().any(|name| name.file_name() == "secret"));
        assert!((0..1_000_000).any(|_| by_path()));
        each_way(directory.path(), |roots| {
            for _ in 0..3_000 {
                let (seen, _) = walked(roots, "", &WalkOptions::default());
                assert!(!seen.iter().any(|path| path.contains("secret") || path.contains("more")), "{seen:?}");
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Root may read everything, so a test that wants to be refused must be somebody else, on a thread of its own.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn directories_that_cannot_be_read_are_counted() {
    let directory = tree(&[("open/a", ""), ("closed/b", ""), ("closed2/c", "")]);
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    for closed in ["closed", "closed2"] {
        fs::set_permissions(directory.path().join(closed), Permissions::from_mode(0o000)).unwrap();
    }
    each_way(directory.path(), |roots| {
        let (seen, unreadable) = as_nobody(|| walked(roots, "", &WalkOptions::default()));
        assert_eq!((seen, unreadable), (vec!["closed".into(), "closed2".into(), "open".into(), "open/a".into()], 2));
    });
    for closed in ["closed", "closed2"] {
        fs::set_permissions(directory.path().join(closed), Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_visitor_can_pass_a_directory_or_end_the_walk() {
    let files: Vec<String> = (0..3_000).map(|number| format!("{}/{number}", number % 30)).collect();
    let directory = tree(&files.iter().map(|path| (path.as_str(), "")).collect::<Vec<_>>());
    let roots = Roots::open(directory.path()).unwrap();
    let visits = AtomicUsize::new(0);
    let walk = |at_directory: WalkStep, at_file: WalkStep| {
        visits.store(0, Ordering::Relaxed);
        let visit = |walked: &VisitedEntry<'_>| {
            visits.fetch_add(1, Ordering::Relaxed);
            if walked.kind == EntryKind::Directory { at_directory } else { at_file }
        };
        let visitors = || -> Visitor<'_> { Box::new(visit) };
        roots.walk(&WorkspacePath::in_workspace(""), &WalkOptions::default(), &visitors).unwrap();
        visits.load(Ordering::Relaxed)
    };
    assert_eq!(walk(WalkStep::On, WalkStep::On), 3_030);
    assert_eq!(walk(WalkStep::Past, WalkStep::On), 30);
    assert!(walk(WalkStep::On, WalkStep::Stop) < 3_000, "each thread may be at one more when the word comes");
}

#[test]
fn a_file_is_its_own_walk_and_what_it_holds_can_be_read() {
    let directory = tree(&[(".hidden/file", "content")]);
    each_way(directory.path(), |roots| {
        let visit = |walked: &VisitedEntry<'_>| {
            assert_eq!((walked.depth, walked.facts().unwrap().size), (0, 7));
            assert_eq!(std::io::read_to_string(walked.open().unwrap()).unwrap(), "content");
            WalkStep::On
        };
        let start = WorkspacePath::in_workspace(".hidden/file");
        assert_eq!(roots.walk(&start, &honouring(), &|| -> Visitor<'_> { Box::new(visit) }).unwrap(), 0);
    });
}

#[test]
fn a_panic_comes_out_instead_of_a_walk_that_never_ends() {
    let files: Vec<String> = (0..200).map(|number| format!("{number}/a")).collect();
    let directory = tree(&files.iter().map(|path| (path.as_str(), "")).collect::<Vec<_>>());
    let roots = Roots::open(directory.path()).unwrap();
    let visitors = || -> Visitor<'_> { Box::new(|_| panic!("on purpose")) };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        roots.walk(&WorkspacePath::in_workspace(""), &WalkOptions::default(), &visitors)
    }));
    assert!(outcome.is_err());
}
