//! `search` through the gate: what it finds, what it must not find, and that no answer is older than its question.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_contract::{Tool, erase};
use toolgate_search::{IndexLimits, WorkspaceIndex};
use toolgate_testkit::TestWorkspace;
use toolgate_tools::{SearchTool, WriteTool};

fn world() -> TestWorkspace {
    TestWorkspace::new([erase(SearchTool), erase(WriteTool)], "preset = 'full'")
}

/// The same workspace in another program.
fn another(world: &TestWorkspace, run: &str) -> TestWorkspace {
    world.reopened(run, [erase(SearchTool), erase(WriteTool)], "preset = 'full'")
}

async fn search(world: &TestWorkspace, args: Value) -> Value {
    let reply = world.perform("search", args.clone()).await;
    assert!(reply.ok, "{args}: {:?}", reply.error);
    reply.payload.unwrap()
}

fn paths(found: &Value) -> Vec<&str> {
    found["results"].as_array().unwrap().iter().map(|place| place["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_question_finds_the_function_it_is_about() {
    let world = world();
    world.file("src/retry.rs", "/// Waits longer after each failed attempt.\npub fn backoff_delay(attempt: u32) -> u64 {\n    100 << attempt\n}\n");
    world.file("src/other.rs", "fn unrelated() {}\n\nfn main() {\n    let delay = 3;\n}\n");
    world.file("tests/retry.rs", "fn test_backoff_delay() { backoff_delay(3); }\n");
    for query in ["how long to wait after a failed attempt", "backoffDelay", "backoff_delay", "delays of retries"] {
        let found = search(&world, json!({ "query": query })).await;
        let first = &found["results"][0];
        assert_eq!(first["path"], json!("src/retry.rs"), "{query}: {found}");
        assert_eq!((&first["symbol"], &first["lines"]), (&json!("backoff_delay"), &json!([1, 4])), "{query}");
        assert!(first["snippet"].as_str().unwrap().contains("100 << attempt"), "{found}");
        assert_eq!(found["coverage"], json!({ "files": 3, "indexed": 3, "scanned": 0 }));
        assert_eq!(found["fallback"], Value::Null);
    }
    let tests = search(&world, json!({ "query": "backoff delay", "kind": "tests" })).await;
    assert_eq!(paths(&tests), ["tests/retry.rs"]);
    let beneath = search(&world, json!({ "query": "backoff delay", "paths": ["tests", "tests/retry.rs"] })).await;
    assert_eq!((paths(&beneath), &beneath["coverage"]["files"]), (vec!["tests/retry.rs"], &json!(1)));
    let globbed = search(&world, json!({ "query": "delay", "glob": ["*.rs", "!src/retry.rs"], "lang": "rust" })).await;
    assert!(!paths(&globbed).contains(&"src/retry.rs") && paths(&globbed).len() == 2, "{globbed}");
    let bounded = search(&world, json!({ "query": "delay", "limit": 1, "max_bytes": 10 })).await;
    assert_eq!(bounded["results"].as_array().unwrap().len(), 1);
    assert!(bounded["results"][0]["snippet"].as_str().unwrap().len() <= 10);
    let reply = world.perform("search", json!({ "query": "delay", "lang": "klingon" })).await;
    assert!(!reply.ok && reply.error.unwrap().message.contains("klingon"));
    assert!(!world.perform("search", json!({ "query": "?!" })).await.ok);
}

#[tokio::test]
async fn a_name_finds_the_definition_that_is_spelled_so() {
    let world = world();
    world.file("walk.rs", "fn max_filesize() {\n    max_filesize();\n    max_filesize();\n}\n");
    world.file("flags.rs", "struct MaxFilesize;\n").file("maxFilesize.md", "# max_filesize, MaxFilesize\n");
    for (query, expected) in
        [("MaxFilesize", "flags.rs"), ("max_filesize", "walk.rs"), ("walk::max_filesize", "walk.rs")]
    {
        let found = search(&world, json!({ "query": query })).await;
        assert_eq!(paths(&found)[0], expected, "{query}: {found}");
        assert_eq!(paths(&found).len(), 3, "other spellings are found too: {found}");
    }
}

#[tokio::test]
async fn a_name_finds_what_defines_it_and_not_what_mentions_it() {
    let world = world();
    world.file("lib.rs", "pub mod backoff_delay;\n").file("other.rs", "fn backoff_delay() -> u64 {\n    100\n}\n");
    world.file("response.js", "res.sendStatus = function (code) {\n  return this.send(code);\n};\n");
    world.file("response.test.js", "describe('sendStatus', function () {\n  it('sendStatus', sendStatus);\n});\n");
    world.file("inner.py", "def _getchar():\n    pass\n");
    world.file("outer.py", "def getchar():\n    getchar()\n    getchar()\n    getchar()\n");
    for (query, expected) in [
        ("backoff_delay", "other.rs"),
        ("sendStatus", "response.js"),
        ("_getchar", "inner.py"),
        ("getchar()", "outer.py"),
    ] {
        let found = search(&world, json!({ "query": query })).await;
        assert_eq!(paths(&found)[0], expected, "{query}: {found}");
    }
}

#[tokio::test]
async fn of_a_file_the_place_that_declares_what_is_asked_for_is_shown_and_others_are_named() {
    let world = world();
    let log = "    log(\"socket timeout, the socket had a timeout\");\n".repeat(3);
    let open = "fn open(socket: Socket, timeout: Duration) {\n    wait(1);\n}\n";
    world.file("net.rs", format!("{open}\nfn report() {{\n{log}}}\n\nfn unrelated() {{\n    wait(2);\n}}\n"));
    let found = search(&world, json!({ "query": "socket timeout" })).await;
    let place = &found["results"][0];
    assert_eq!((&place["symbol"], &place["lines"]), (&json!("open"), &json!([1, 3])), "{found}");
    assert_eq!(place["also"], json!([{ "lines": [5, 9], "symbol": "report" }]));
}

#[tokio::test]
async fn ignored_hidden_and_secret_files_are_never_found() {
    let world = world();
    world.git_init("built/\n*.log\n");
    for path in ["built/a.txt", "b.log", ".hidden/c.txt", ".env", "id_rsa", "plain.txt"] {
        world.file(path, "zanzibar quokka\n");
    }
    fs::hard_link(world.path().join(".env"), world.path().join("innocent.txt")).unwrap();
    let found = search(&world, json!({ "query": "zanzibar quokka", "limit": 100 })).await;
    assert_eq!(paths(&found), ["plain.txt"], "{found}");
    let stored = walk_bytes(&world.path().join(".toolgate/search"));
    assert!(!contains(&stored, b"zanzibar") && !contains(&stored, b"innocent"), "no text, and no path of theirs");
}

#[tokio::test]
async fn what_policy_hides_since_it_was_indexed_is_not_found() {
    let world = world();
    world.file("plans/secret.md", "# Rhubarb\n\nzanzibar quokka\n").file("plans/open.md", "zanzibar quokka\n");
    assert_eq!(paths(&search(&world, json!({ "query": "zanzibar quokka" })).await).len(), 2);
    let rule = "preset = 'full'\n[[rules]]\ndecision = 'deny'\npath = 'plans/secret.md'\naccess = ['read']\n";
    let tight = world.reopened("run_tight", [erase(SearchTool)], rule);
    for query in ["zanzibar quokka", "rhubarb", "secret"] {
        let found = search(&tight, json!({ "query": query })).await;
        assert!(!found.to_string().contains("secret.md") && !found.to_string().contains("Rhubarb"), "{query}: {found}");
    }
    let stored = walk_bytes(&world.path().join(".toolgate/search"));
    assert!(!contains(&stored, b"rhubarb") && !contains(&stored, b"Rhubarb"));
    // The first program goes on with its own rules.
    assert_eq!(paths(&search(&world, json!({ "query": "zanzibar quokka" })).await).len(), 2);
}

#[tokio::test]
async fn secrets_in_text_are_redacted_as_everywhere() {
    let world = world();
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).get(..36).unwrap());
    world.file("deploy.py", format!("def deploy():\n    token = '{token}'\n"));
    let found = search(&world, json!({ "query": "deploy token" })).await;
    assert_eq!(paths(&found), ["deploy.py"]);
    assert!(!found.to_string().contains(&token), "{found}");
}

#[tokio::test]
async fn odd_files_are_searched_as_far_as_they_are_text() {
    let world = world();
    world.file("app.min.js", format!("var marmalade=1;{}", "x.y(z);".repeat(400_000)));
    world.file("line.json", format!("{{\"key\":\"{}\",\"after\":\"nonexistentword\"}}", "a ".repeat(600_000)));
    world.file("latin.txt", b"caf\xe9 gorgonzola\n");
    world.file(
        "utf16.txt",
        [b"\xff\xfe".to_vec(), "mozzarella\n".encode_utf16().flat_map(u16::to_le_bytes).collect()].concat(),
    );
    world.file("picture.bin", b"\x89PNG\0\0mozzarella gorgonzola");
    world.file("empty.txt", "");
    world.file("中文.md", "# 配置\n\n读取配置文件并验证签名。\n");
    for (query, expected) in [
        ("marmalade", "app.min.js"),
        ("gorgonzola", "latin.txt"),
        ("mozzarella", "utf16.txt"),
        ("验证签名", "中文.md"),
        ("读取配置", "中文.md"),
    ] {
        let found = search(&world, json!({ "query": query })).await;
        assert_eq!(paths(&found), [expected], "{query}");
        assert!(found.to_string().len() < 20_000, "a line of a megabyte is cut");
    }
}

#[tokio::test]
async fn a_damaged_index_is_built_again_and_that_is_told() {
    let world = world();
    world.file("a.txt", "pomegranate\n");
    assert_eq!(paths(&search(&world, json!({ "query": "pomegranate" })).await), ["a.txt"]);
    let store = world.path().join(".toolgate/search");
    for round in 0..3 {
        for entry in fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
            let mut bytes = fs::read(&entry).unwrap();
            match (round, name.as_str()) {
                (_, "lock") => continue,
                (0, _) => bytes.truncate(bytes.len() / 2),
                (1, "manifest") => bytes = b"forged".to_vec(),
                (2, "manifest") => continue,
                _ => *bytes.last_mut().unwrap() ^= 1,
            }
            fs::remove_file(&entry).unwrap();
            fs::write(&entry, bytes).unwrap();
        }
        // Another program reads what is stored; this one has it in memory.
        let other = another(&world, &format!("run_a{round}"));
        let found = search(&other, json!({ "query": "pomegranate" })).await;
        assert_eq!(paths(&found), ["a.txt"], "{round}");
        assert!(found["note"].as_str().is_some_and(|note| note.contains("indexed again")), "{round}: {found}");
        let found = search(&another(&world, &format!("run_b{round}")), json!({ "query": "pomegranate" })).await;
        assert_eq!((paths(&found), &found["note"]), (vec!["a.txt"], &Value::Null), "{round}");
    }
}

#[tokio::test]
async fn what_another_program_indexed_is_used_and_its_changes_are_seen() {
    let first = world();
    let second = another(&first, "run_second");
    first.file("a.txt", "aubergine\n");
    for world in [&first, &second] {
        assert_eq!(paths(&search(world, json!({ "query": "aubergine" })).await), ["a.txt"]);
    }
    for round in 0..20 {
        let (one, other) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        first.file(&format!("n{round}.txt"), format!("aubergine word{round}\n"));
        assert_eq!(paths(&search(one, json!({ "query": format!("word{round}") })).await), [format!("n{round}.txt")]);
        assert_eq!(paths(&search(other, json!({ "query": format!("word{round}") })).await), [format!("n{round}.txt")]);
    }
    let all = search(&second, json!({ "query": "aubergine", "limit": 100 })).await;
    assert_eq!(paths(&all).len(), 21);
    assert!(fs::read_dir(first.path().join(".toolgate/search")).unwrap().count() <= 10, "small parts are merged");
}

#[tokio::test]
async fn a_file_that_only_changes_its_case_or_its_content_in_the_same_moment_is_seen() {
    let world = world();
    world.file("Readme.txt", "persimmon aaa\n");
    assert_eq!(paths(&search(&world, json!({ "query": "persimmon" })).await), ["Readme.txt"]);
    fs::rename(world.path().join("Readme.txt"), world.path().join("README.txt")).unwrap();
    assert_eq!(paths(&search(&world, json!({ "query": "persimmon" })).await), ["README.txt"]);
    // The same size, inode and modification time.
    let file = fs::File::options().write(true).open(world.path().join("README.txt")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"tangerine bbb\n", 0).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(paths(&search(&world, json!({ "query": "persimmon" })).await), Vec::<&str>::new());
    assert_eq!(paths(&search(&world, json!({ "query": "tangerine" })).await), ["README.txt"]);
}

/// A workspace whose index has this much time for each answer, and this much room.
fn limited(wait: Duration, max_bytes: u64) -> TestWorkspace {
    let world = world();
    let state = world.location().state().unwrap();
    world.with_search(Arc::new(WorkspaceIndex::new(state, None, IndexLimits { wait, max_bytes })))
}

#[tokio::test]
async fn what_is_not_indexed_yet_is_searched_word_by_word_and_the_reply_says_so() {
    let world = limited(Duration::ZERO, u64::MAX);
    world.file("src/kiwi.rs", "/// Peels a quince.\nfn peel() {}\n").file("src/other.rs", "fn other() {}\n");
    for _ in 0..2 {
        let found = search(&world, json!({ "query": "quince" })).await;
        assert_eq!(paths(&found), ["src/kiwi.rs"], "{found}");
        assert_eq!((&found["results"][0]["symbol"], &found["results"][0]["lines"]), (&json!("peel"), &json!([1, 2])));
        assert!(found["results"][0]["why"].as_str().unwrap().starts_with("not indexed yet"), "{found}");
        assert_eq!(found["coverage"], json!({ "files": 2, "indexed": 0, "scanned": 2 }));
        let fallback = found["fallback"].as_str().unwrap();
        assert!(fallback.contains("2 files") && fallback.contains("`grep`"), "{fallback}");
    }
    // Policy and filters hold there too.
    world.file(".env", "quince=1\n").file("tests/quince.rs", "fn test_quince() {}\n");
    let found = search(&world, json!({ "query": "quince", "kind": "tests" })).await;
    assert_eq!(paths(&found), ["tests/quince.rs"], "{found}");
}

#[tokio::test]
async fn an_index_stays_within_its_bound_and_the_rest_is_still_found() {
    const BOUND: u64 = 60_000;
    let world = TestWorkspace::new([erase(SearchTool)], &format!("preset = 'full'\nsearch.max_bytes = {BOUND}"));
    for number in 0..60 {
        let words: String = (0..400).map(|word| format!("w{number}x{word} ")).collect();
        world.file(&format!("f{number}.txt"), format!("{words}\nlychee{number}\n"));
    }
    for round in 0..3 {
        for number in [0, 31, 59] {
            let found = search(&world, json!({ "query": format!("lychee{number}") })).await;
            assert_eq!(paths(&found), [format!("f{number}.txt")], "{round}");
            let (files, indexed) = (&found["coverage"]["files"], found["coverage"]["indexed"].as_u64().unwrap());
            assert!(*files == json!(60) && (1..60).contains(&indexed), "{}", found["coverage"]);
            assert!(found["note"].as_str().unwrap().contains("search.max_bytes"), "{found}");
            assert!(found["fallback"].is_string(), "{found}");
        }
        let stored = walk_bytes(&world.path().join(".toolgate/search")).len() as u64;
        assert!(stored <= BOUND, "{stored} bytes in round {round}");
    }
}

/// Weights in which `automobile` means nearly what `car` does, and `banana` something else; `scale` makes others of them.
fn weights(directory: &Path, scale: i8) {
    let vocabulary = json!({ "[UNK]": 0, "car": 1, "automobile": 2, "banana": 3, "##s": 4 });
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary },
    });
    let numbers: Vec<u8> =
        [[0, 0], [10, 0], [9, 1], [-10, 9], [1, 0]].concat().iter().map(|n| (n * scale) as u8).collect();
    let table = json!({ "embeddings": { "dtype": "I8", "shape": [5, 2], "data_offsets": [0, 10] } }).to_string();
    fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let file = [&(table.len() as u64).to_le_bytes(), table.as_bytes(), &numbers].concat();
    fs::write(directory.join("model.safetensors"), file).unwrap();
}

#[tokio::test]
async fn with_weights_of_the_user_a_place_is_found_by_meaning_and_is_as_fresh() {
    let directory = tempfile::tempdir().unwrap();
    weights(directory.path(), 1);
    let without = world();
    without.file("garage.txt", "Cars\n").file("fruit.txt", "banana\n");
    assert_eq!(paths(&search(&without, json!({ "query": "automobile" })).await), Vec::<&str>::new());
    let settings = format!("preset = 'full'\nsearch.weights = '{}'", directory.path().display());
    let with = |run: &str| without.reopened(run, [erase(SearchTool)], &settings);
    let first = with("run_first");
    let found = search(&first, json!({ "query": "automobile" })).await;
    assert_eq!(paths(&found), ["garage.txt"], "{found}");
    assert_eq!(found["results"][0]["why"], json!("close in meaning"));
    assert_eq!(found["coverage"], json!({ "files": 2, "indexed": 2, "scanned": 0 }));
    // Words count as before, and programs with and without weights share the index.
    assert_eq!(paths(&search(&first, json!({ "query": "banana" })).await), ["fruit.txt"]);
    assert_eq!(paths(&search(&without, json!({ "query": "cars" })).await), ["garage.txt"]);
    without.file("garage.txt", "banana\n").file("street.txt", "a car\n");
    assert_eq!(paths(&search(&without, json!({ "query": "street" })).await), ["street.txt"]);
    assert_eq!(paths(&search(&with("run_second"), json!({ "query": "automobile" })).await), ["street.txt"]);
    // Other weights: what was made with the former ones isn't compared with them.
    weights(directory.path(), -1);
    assert_eq!(paths(&search(&with("run_third"), json!({ "query": "automobile" })).await), ["street.txt"]);
    let tight = format!("{settings}\n[[rules]]\ndecision = 'deny'\npath = 'street.txt'\naccess = ['read']\n");
    let tight = without.reopened("run_tight", [erase(SearchTool)], &tight);
    assert_eq!(paths(&search(&tight, json!({ "query": "automobile" })).await), Vec::<&str>::new());
}

#[tokio::test]
async fn weights_that_cannot_be_used_are_told_of_and_words_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let settings = |path: &str| format!("preset = 'full'\nsearch.weights = '{path}'");
    let place = directory.path().display().to_string();
    for (round, (path, reason)) in
        [(place.as_str(), "can't be read"), ("models", "absolute"), (place.as_str(), "safetensors")].iter().enumerate()
    {
        let world = TestWorkspace::new([erase(SearchTool)], &settings(path));
        world.file("a.txt", "papaya\n");
        let found = search(&world, json!({ "query": "papaya" })).await;
        assert_eq!(paths(&found), ["a.txt"], "{round}");
        let note = found["note"].as_str().unwrap();
        assert!(note.contains("`search.weights`") && note.contains(reason), "{round}: {note}");
        weights(directory.path(), 1);
        fs::write(directory.path().join("model.safetensors"), b"not weights").unwrap();
    }
}

#[test]
fn models_are_told_when_to_use_it_in_few_words() {
    let description = SearchTool::SPEC.description;
    assert!(description.contains("`grep`"));
    // A token is at least a word or a sign here, and seldom less than four letters.
    assert!(description.len() / 4 <= 120, "{} bytes", description.len());
}

/// One thing that happens between two questions.
#[derive(Debug, Clone)]
enum Step {
    Write(u8, u8),
    Remove(u8),
    Rename(u8, u8),
    /// Everything is another, as after `git switch`.
    Switch(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12_u8, 0..8_u8).prop_map(|(file, word)| Step::Write(file, word)),
        2 => (0..12_u8).prop_map(Step::Remove),
        2 => (0..12_u8, 0..12_u8).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (0..8_u8).prop_map(Step::Switch),
    ]
}

const WORDS: [&str; 8] =
    ["apricot", "bergamot", "cardamom", "dandelion", "elderberry", "fennel", "gooseberry", "hazelnut"];

fn name(file: u8) -> String {
    format!("d{}/f{file}.txt", file % 3)
}

fn do_step(world: &TestWorkspace, step: &Step) {
    let at = |file: u8| world.path().join(name(file));
    let write = |file: u8, word: u8| {
        world.file(&name(file), format!("{} text\n", WORDS[usize::from(word)]));
    };
    match step {
        Step::Write(file, word) => write(*file, *word),
        // A file that isn't there stays so.
        Step::Remove(file) => drop(fs::remove_file(at(*file))),
        Step::Rename(from, to) => drop(fs::rename(at(*from), at(*to))),
        Step::Switch(seed) => {
            for file in 0..12 {
                match (file + seed) % 3 {
                    0 => drop(fs::remove_file(at(file))),
                    _ => write(file, (file * 3 + seed) % 8),
                }
            }
        }
    }
}

/// What a scan of the files says: the files of each word.
fn scan(world: &TestWorkspace) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in 0..12 {
        let Ok(text) = fs::read_to_string(world.path().join(name(file))) else { continue };
        for word in WORDS.iter().filter(|word| text.contains(**word)) {
            found.entry(word).or_default().insert(name(file));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn no_answer_is_older_than_its_question(rounds in proptest::collection::vec(proptest::collection::vec(step(), 1..5), 1..6)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let world = Arc::new(world());
        (0..3).for_each(|directory| fs::create_dir(world.path().join(format!("d{directory}"))).unwrap());
        for steps in rounds {
            steps.iter().for_each(|step| do_step(&world, step));
            let expected = scan(&world);
            for word in WORDS {
                let found = runtime.block_on(search(&world, json!({ "query": word, "limit": 100 })));
                let names: BTreeSet<String> = paths(&found).into_iter().map(str::to_owned).collect();
                prop_assert_eq!(&names, &expected.get(word).cloned().unwrap_or_default(), "{} after {:?}", word, steps);
                for place in found["results"].as_array().unwrap() {
                    prop_assert!(place["snippet"].as_str().unwrap().contains(word), "a stale line: {}", place);
                }
            }
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// All bytes of the files in a directory.
fn walk_bytes(directory: &std::path::Path) -> Vec<u8> {
    fs::read_dir(directory).unwrap().flat_map(|entry| fs::read(entry.unwrap().path()).unwrap_or_default()).collect()
}
