//! Build output is folded in lists of changes; the record and undo have every path.

use serde_json::{Value, json};

use crate::world::World;

/// Writes by hand and builds, as one command.
const BUILD: &str = "mkdir -p src target/debug node_modules/a web/build && echo 1 > src/lib.rs && \
    for n in 1 2 3 4 5; do echo $n > target/debug/$n.o; echo $n > node_modules/a/$n.js; echo $n > web/build/$n.js; done";

fn folded(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |list| list.iter().map(|entry| entry["path"].as_str().unwrap()).collect())
}

#[test]
fn replies_and_lists_fold_build_output_and_undo_covers_it() {
    let world = World::new().file(".gitignore", "/target\n");
    let reply = world.call("shell", json!({ "command": BUILD }));
    let changes = &reply["payload"]["changes"];
    assert_eq!(changes["created"], json!(23), "counts are exact: {reply}");
    assert_eq!(folded(&changes["folded"]), ["node_modules/", "target/"], "{reply}");
    assert_eq!(changes["folded"][1], json!({ "path": "target/", "created": 7, "changed": 0, "deleted": 0 }));
    let paths = changes["paths"].to_string();
    assert!(paths.contains("+src/lib.rs") && paths.contains("web/build/5.js"), "not ignored, so by hand: {paths}");
    assert!(!paths.contains("target") && !paths.contains("node_modules"), "{paths}");
    assert_eq!(reply["artifacts"]["folded"], changes["folded"]);
    assert!(!reply["artifacts"]["files_changed"].to_string().contains("target"), "{reply}");

    let shown = world.run(&["changes", "--stat"]).out;
    assert!(shown.contains("  src/lib.rs +1 -0\n") && shown.contains("  target/ +7 "), "{shown}");
    assert!(!shown.contains("1.o"), "{shown}");
    assert!(world.run(&["changes", "--stat", "--all"]).out.contains("target/debug/1.o"));
    let told = world.run(&["--json", "changes"]).json();
    assert_eq!((folded(&told["folded"]), &told["count"]), (vec!["node_modules/", "target/"], &json!(23)), "{told}");
    let all = world.run(&["--json", "changes", "--all"]).json();
    assert_eq!(all["changes"].as_array().unwrap().len(), 23, "{all}");

    let undone = world.run(&["undo", "last"]);
    assert!(undone.code == 0 && undone.out.contains("  target/ -7 "), "{undone:?}");
    assert!(!undone.out.contains("1.o"), "{undone:?}");
    for path in ["target", "node_modules", "src", "web"] {
        assert!(!world.workspace().join(path).exists(), "{path} is undone, though it was folded");
    }
}

#[test]
fn a_cache_tag_is_enough_and_ones_own_directory_of_that_name_is_shown() {
    let build = "mkdir target; echo 1 > target/a; echo 2 > target/b";
    let world = World::new();
    let by_hand = world.call("shell", json!({ "command": build }));
    assert!(by_hand["payload"]["changes"]["folded"].is_null(), "{by_hand}");
    let world = World::new();
    let tagged = world.call("shell", json!({ "command": format!("{build}; echo Signature > target/CACHEDIR.TAG") }));
    assert_eq!(folded(&tagged["payload"]["changes"]["folded"]), ["target/"], "{tagged}");
    let undone = world.run(&["undo", "last"]);
    assert!(undone.code == 0 && undone.out.contains("  target/ -4 "), "a tag that is gone now counts too: {undone:?}");
}
