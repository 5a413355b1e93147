//! What clients hear when their list of tools becomes another one: a skill that is loaded holds its session to some of
//! them, and that session alone.

use serde_json::{Value, json};

use super::client::Talk;
use super::names;
use crate::world::World;

const SKILL: &str = "---\nname: review\ndescription: Reads and judges.\nallowed-tools: Read\n---\nLook closely.\n";
const CHANGED: &str = "notifications/tools/list_changed";

fn world() -> World {
    let world = World::new();
    world.put(&world.home().join(".agents/skills/review/SKILL.md"), SKILL);
    world
}

/// Waits until the client has heard this.
fn hear(talk: &mut Talk, method: &str) -> Value {
    let heard = talk.heard.iter().find(|message| message["method"] == method).cloned();
    heard.unwrap_or_else(|| talk.listen(method))
}

/// Loads the skill, and tells which tools are offered before and after.
fn before_and_after(talk: &mut Talk) -> [Vec<String>; 2] {
    let list = |talk: &mut Talk| {
        let list = talk.ask("tools/list", json!({}));
        names(&list).into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let before = list(talk);
    let loaded = talk.call("skill", json!({ "name": "review" }));
    assert!(loaded.get("isError").is_none(), "{loaded}");
    hear(talk, CHANGED);
    [before, list(talk)]
}

#[test]
fn a_client_with_a_handshake_hears_of_it_and_others_do_not() {
    let world = world();
    let mut talk = Talk::legacy(&world, json!({}));
    let [before, after] = before_and_after(&mut talk);
    assert!(before.contains(&"shell".into()) && after.contains(&"read".into()), "{after:?}");
    assert!(!after.contains(&"shell".into()), "{after:?}");
    let refused = talk.call("shell", json!({ "command": "true" }));
    assert_eq!(refused["_meta"]["toolgate/error"]["code"], "tool_not_allowed", "what isn't listed isn't run");
    let mut other = Talk::legacy(&world, json!({}));
    other.call("read", json!({ "path": "hello.txt" }));
    assert!(names(&other.ask("tools/list", json!({}))).contains(&"shell"));
    assert!(other.heard.iter().all(|message| message["method"] != CHANGED));
}

#[test]
fn a_client_that_listens_hears_of_it() {
    let world = world();
    let mut talk = Talk::modern(&world, json!({}));
    let id = talk.begin("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    hear(&mut talk, "notifications/subscriptions/acknowledged");
    let [_, after] = before_and_after(&mut talk);
    assert!(!after.contains(&"shell".into()), "{after:?}");
    let told = hear(&mut talk, CHANGED);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id));
}
