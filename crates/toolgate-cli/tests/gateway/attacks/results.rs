//! G22 to G24: links, results that contradict themselves, and arguments that nobody approved.

use serde_json::json;
use toolgate_testkit::mcp::tool_error_code;

use super::{connected, events, recorded_end};
use crate::servers::{call, world};

#[test]
fn g22_a_link_leads_only_to_its_server_and_only_in_its_run() {
    let world = world("");
    let mut client = connected(&world);
    let link = json!({ "content": [{ "type": "resource_link", "uri": "file:///etc/passwd", "name": "p" }] });
    let result = client.call("trial__result", json!({ "result": link })).to_string();
    assert!(!result.contains("resource_link"), "a client could read nothing there: {result}");
    let handle = result.split("by the link `").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
    let read = client.call("mcp_read", json!({ "server": "trial", "link": handle }));
    assert_eq!(tool_error_code(&read), "server_error", "the server itself is asked, and has no resources: {read}");
    for (server, link) in
        [("trial", "file:///etc/passwd"), ("trial", "art_00000000000000000000000000000000"), ("other", &handle)]
    {
        let refused = client.call("mcp_read", json!({ "server": server, "link": link }));
        assert_eq!(refused["isError"], true, "{server} {link}: {refused}");
    }
    client.end();
    let ends = events(&world).into_iter().filter(|event| event["kind"] == "tool_call.failed");
    let codes: Vec<String> = ends.map(|event| event["error"]["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(codes, ["server_error", "not_found", "not_found", "invalid_args"], "each refusal is on record");
    let elsewhere = call(&world, "mcp_read", &json!({ "server": "trial", "link": handle }));
    assert_eq!(elsewhere["error"]["code"], "not_found", "another run: {elsewhere}");
    assert_eq!(recorded_end(&world, "mcp_read"), "not_found");
    let asked = world.call("mcp_read", json!({ "server": "trial", "link": handle }));
    assert_eq!(asked["error"]["code"], "approval_required", "it is judged: {asked}");
}

#[test]
fn g23_text_and_data_that_differ_are_both_told() {
    let world = world("");
    let reply = call(&world, "trial__poisoned", &json!({}));
    let notes = reply["payload"]["notes"].to_string();
    assert!(notes.contains("aren't what the server's own schema says") && notes.contains("aren't the same"), "{reply}");
    let record = events(&world).into_iter().find(|event| event["kind"] == "tool_call.completed").unwrap().to_string();
    assert!(record.contains("no number") && record.contains(r"\n1\n"), "both are on record: {record}");
    let printed = world.run(&["call", "--approve", "trial__poisoned"]);
    assert!(printed.err.contains("aren't the same"), "a person is told too: {printed:?}");
}

#[test]
fn g24_arguments_are_those_of_the_approved_schema() {
    let world = world("");
    for args in [
        json!({ "a": 1, "b": 2, "__proto__": { "x": 1 } }),
        json!({ "a": 1, "b": 2, "_meta": { "progressToken": 1 } }),
        json!({ "a": 1, "b": 2, "note": "x" }),
    ] {
        assert_eq!(call(&world, "trial__add", &args)["error"]["code"], "invalid_args", "{args}");
        assert_eq!(recorded_end(&world, "trial__add"), "invalid_args");
    }
}
