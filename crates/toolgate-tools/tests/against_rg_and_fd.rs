//! `grep` beside ripgrep and `find` beside fd, on trees made to be awkward: for the same options, the same answers. With
//! `TOOLGATE_REPO=path` a copy of that directory is searched as well.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests make files of their own and run the peers")]

#[path = "search/tree.rs"]
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use tree::Tree;

/// Trees that are tried, each different.
const TREES: u64 = 4;
/// Searches that find more lines are compared by files and counts alone.
const MOST_LINES: usize = 5_000;
/// Where the tree lies in the workspace, so that nothing else is in it.
const DIRECTORY: &str = "tree";

/// Every answer is read page by page, so that what is compared is the pages joined.
async fn joined(world: &TestWorkspace, tool: &str, list: &str, mut args: Value) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let reply = world.perform(tool, args.clone()).await;
        assert!(reply.ok, "{args} {:?}", reply.error);
        let payload = reply.payload.unwrap();
        all.extend(payload[list].as_array().unwrap().clone());
        match reply.truncated.and_then(|truncated| truncated.next_cursor) {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => {
                assert_eq!(payload["has_more"], json!(false));
                return all;
            }
        }
    }
}

/// Fails with what one side found and the other didn't.
fn same<T: Ord + std::fmt::Debug>(case: &dyn std::fmt::Debug, found: &BTreeSet<T>, expected: &BTreeSet<T>) {
    let only = |a: &BTreeSet<T>, b: &BTreeSet<T>| format!("{:?}", a.difference(b).take(5).collect::<Vec<_>>());
    assert!(
        found == expected,
        "{case:?}\nonly we: {}\nonly the peer: {}",
        only(found, expected),
        only(expected, found)
    );
}

fn path_in_tree(value: &Value) -> String {
    let path = value.as_str().unwrap();
    path.strip_prefix(&format!("{DIRECTORY}/")).unwrap_or(path).trim_end_matches('/').to_owned()
}

/// A peer's output, with no configuration of the person's.
fn run(program: &str, directory: &Path, arguments: &[String]) -> String {
    let home = directory.parent().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask setup` installs it"));
    String::from_utf8(output.stdout).unwrap()
}

fn flags(given: &[(bool, &str)]) -> Vec<String> {
    given.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| (*flag).to_owned()).collect()
}

/// What ripgrep finds: path and line.
fn by_rg(directory: &Path, case: &GrepCase) -> BTreeSet<(String, u64)> {
    let mut arguments = flags(&[
        (true, "--json"),
        (true, "--no-config"),
        (true, "--no-messages"),
        (true, "--no-require-git"),
        (true, "--no-ignore-global"),
        (true, "--crlf"),
        (case.literal, "--fixed-strings"),
        (case.ignore_case, "--ignore-case"),
        (case.multiline, "--multiline"),
        (case.hidden, "--hidden"),
        (!case.gitignore, "--no-ignore"),
        (true, "--glob=!.git"),
    ]);
    arguments.extend(case.glob.iter().map(|glob| format!("--glob={glob}")));
    arguments.extend(case.kind.iter().map(|kind| format!("--type={kind}")));
    arguments.extend(["-e".to_owned(), case.pattern.to_owned()]);
    let output = run("rg", directory, &arguments);
    let messages = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let matches = messages.filter(|message| message["type"] == "match");
    let spot = |found: Value| {
        let path = found["data"]["path"]["text"].as_str().unwrap().to_owned();
        (path, found["data"]["line_number"].as_u64().unwrap())
    };
    matches.map(spot).collect()
}

/// One search, for both.
#[derive(Debug, Clone, Default)]
struct GrepCase {
    pattern: &'static str,
    literal: bool,
    ignore_case: bool,
    multiline: bool,
    hidden: bool,
    gitignore: bool,
    glob: Vec<&'static str>,
    kind: Vec<&'static str>,
}

impl GrepCase {
    fn args(&self, mode: &str, limit: u32) -> Value {
        json!({
            "pattern": self.pattern, "literal": self.literal, "ignore_case": self.ignore_case,
            "multiline": self.multiline, "hidden": self.hidden, "gitignore": self.gitignore, "glob": self.glob,
            "type": self.kind, "mode": mode, "limit": limit, "path": DIRECTORY,
        })
    }
}

fn grep_cases() -> Vec<GrepCase> {
    let usual = GrepCase { gitignore: true, ..GrepCase::default() };
    let patterns =
        ["fox", "^the", "dog$", r"\bcat\b", "f.x", r"\d{2,}", "日本", "^$", "zebra", "[^a]s", "fox|dog", "x{300}"];
    let mut cases: Vec<GrepCase> = patterns.map(|pattern| GrepCase { pattern, ..usual.clone() }).into();
    cases.extend([(true, true), (true, false), (false, true), (false, false)].map(|(hidden, gitignore)| GrepCase {
        pattern: "the",
        hidden,
        gitignore,
        ..usual.clone()
    }));
    cases.extend(["a.b(", "$x", "fox"].map(|pattern| GrepCase { pattern, literal: true, ..usual.clone() }));
    cases.extend(["FOX", "ÄPFEL", "^THE"].map(|pattern| GrepCase { pattern, ignore_case: true, ..usual.clone() }));
    cases.extend([r"fox\n", r"(?s)the.{1,40}?dog", r"dog\s+\w+", "cat"].map(|pattern| GrepCase {
        pattern,
        multiline: true,
        ..usual.clone()
    }));
    let globs: [&[&str]; 6] = [&["*.rs"], &["!*.md"], &["alpha/**"], &["*.log", "!a*"], &["/lib*"], &["*.{py,md}"]];
    for glob in globs {
        for hidden in [true, false] {
            cases.push(GrepCase { pattern: "the", glob: glob.to_vec(), hidden, ..usual.clone() });
        }
    }
    cases.extend([vec!["rust"], vec!["py", "md"]].map(|kind| GrepCase { pattern: "the", kind, ..usual.clone() }));
    cases
}

async fn compare_grep(world: &TestWorkspace, directory: &Path) {
    let mut matches = 0;
    for case in grep_cases() {
        let expected = by_rg(directory, &case);
        matches += expected.len();
        let mut by_file: BTreeMap<String, u64> = BTreeMap::new();
        expected.iter().for_each(|(path, _)| *by_file.entry(path.clone()).or_default() += 1);
        let counts = joined(world, "grep", "counts", case.args("counts", 60)).await;
        let count = |count: &Value| (path_in_tree(&count["path"]), count["count"].as_u64().unwrap());
        same(&case, &counts.iter().map(count).collect(), &by_file.clone().into_iter().collect());
        let files = joined(world, "grep", "files", case.args("files", 50)).await;
        same(&case, &files.iter().map(path_in_tree).collect(), &by_file.into_keys().collect());
        // Pages without end are no better proof than some.
        if expected.len() < MOST_LINES {
            let found = joined(world, "grep", "matches", case.args("matches", 400)).await;
            let spot = |found: &Value| (path_in_tree(&found["path"]), found["line"].as_u64().unwrap());
            same(&case, &found.iter().map(spot).collect(), &expected);
            assert_eq!(found.len(), expected.len(), "{case:?}: nothing is told twice");
        }
    }
    assert!(matches > 100, "a comparison of nothing with nothing shows nothing: {matches}");
}

/// One search by path, for both.
#[derive(Debug, Clone, Default)]
struct FindCase {
    pattern: &'static str,
    kind: Option<&'static str>,
    max_depth: Option<u32>,
    hidden: bool,
    gitignore: bool,
}

fn find_cases() -> Vec<FindCase> {
    let usual = FindCase { gitignore: true, ..FindCase::default() };
    let patterns = [
        "*",
        "*.rs",
        "a*",
        "lib.rs",
        "**/*.md",
        "alpha/*",
        "alpha/**",
        "*/*/*.py",
        "[ab]*",
        "{lib,main}.*",
        "ünï*",
        "?",
        "**/alpha/**/*.rs",
        "*.none",
        r"\[odd\]*",
        "*b*",
        "**",
    ];
    let mut cases = Vec::new();
    for pattern in patterns {
        for (hidden, gitignore) in [(true, true), (true, false), (false, true), (false, false)] {
            cases.push(FindCase { pattern, hidden, gitignore, ..usual.clone() });
        }
    }
    cases.extend(["file", "folder", "link"].map(|kind| FindCase { pattern: "*", kind: Some(kind), ..usual.clone() }));
    cases.extend([1, 2, 3].map(|depth| FindCase { pattern: "*a*", max_depth: Some(depth), ..usual.clone() }));
    cases
}

/// What fd finds. It knows no relative paths as patterns, so those are made absolute for it.
fn by_fd(directory: &Path, case: &FindCase) -> BTreeSet<String> {
    let mut arguments = flags(&[
        (true, "--glob"),
        (true, "--case-sensitive"),
        (true, "--print0"),
        (true, "--no-global-ignore-file"),
        (true, "--exclude=.git"),
        (case.hidden, "--hidden"),
        (!case.gitignore, "--no-ignore"),
    ]);
    let kind = case.kind.map(|kind| {
        if kind == "folder" {
            "directory"
        } else if kind == "link" {
            "symlink"
        } else {
            kind
        }
    });
    arguments.extend(kind.map(|kind| format!("--type={kind}")));
    arguments.extend(case.max_depth.map(|depth| format!("--max-depth={depth}")));
    match case.pattern.contains('/') {
        true => arguments.extend(["--full-path".to_owned(), format!("{}/{}", directory.display(), case.pattern)]),
        false => arguments.push(case.pattern.to_owned()),
    }
    let output = run("fdfind", directory, &arguments);
    let tidy = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    output.split_terminator('\0').map(tidy).collect()
}

async fn compare_find(world: &TestWorkspace, directory: &Path) {
    let mut paths = 0;
    for case in find_cases() {
        let mut args = json!({
            "pattern": case.pattern, "hidden": case.hidden, "gitignore": case.gitignore, "path": DIRECTORY, "limit": 300,
        });
        case.kind.into_iter().for_each(|kind| args["kind"] = json!(kind));
        case.max_depth.into_iter().for_each(|depth| args["max_depth"] = json!(depth));
        let listed = joined(world, "find", "paths", args).await;
        let is_gits = |path: &String| path == ".git" || path.starts_with(".git/");
        let found: BTreeSet<String> = listed.iter().map(path_in_tree).collect();
        assert_eq!(listed.len(), found.len(), "{case:?}: nothing is told twice");
        let found: BTreeSet<String> = found.into_iter().filter(|path| !is_gits(path)).collect();
        let expected = by_fd(directory, &case);
        same(&case, &found, &expected);
        paths += found.len();
    }
    assert!(paths > 100, "a comparison of nothing with nothing shows nothing: {paths}");
}

/// A world in which policy hides nothing of the tree, as the peers have no policy.
fn world() -> (TestWorkspace, PathBuf) {
    let world = TestWorkspace::new(toolgate_tools::all(), "[sensitive]\nexcept = [\"tree/**\"]\n");
    let directory = world.path().canonicalize().unwrap().join(DIRECTORY);
    (world, directory)
}

/// This fd honours `.gitignore` only where a repository is.
fn make_repository(directory: &Path) {
    std::fs::create_dir_all(directory.join(".git")).unwrap();
}

#[tokio::test]
async fn generated_trees_give_the_same_lines_as_ripgrep() {
    for seed in 0..TREES {
        let (world, directory) = world();
        Tree::new(seed).with_file_named(".rgignore").make(&directory);
        compare_grep(&world, &directory).await;
    }
}

#[tokio::test]
async fn generated_trees_give_the_same_paths_as_fd() {
    for seed in 0..TREES {
        let (world, directory) = world();
        Tree::new(seed).make(&directory);
        make_repository(&directory);
        compare_find(&world, &directory).await;
    }
}

#[tokio::test]
async fn a_real_tree_gives_the_same_as_both() {
    let Some(repository) = std::env::var_os("TOOLGATE_REPO") else {
        return toolgate_testkit::skip("no-repository-named", "TOOLGATE_REPO names no tree to search");
    };
    let (world, directory) = world();
    let copy = Command::new("cp").arg("-a").arg(&repository).arg(&directory).status().unwrap();
    assert!(copy.success(), "{} can be copied", repository.display());
    make_repository(&directory);
    compare_grep(&world, &directory).await;
    compare_find(&world, &directory).await;
}
