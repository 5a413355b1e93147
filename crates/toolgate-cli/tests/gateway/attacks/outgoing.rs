//! G25 and G30: what goes out to a server.

use serde_json::{Value, json};
use toolgate_testkit::mcp::tool_error_code;

use super::recorded_end;
use crate::client;
use crate::remote_server::SpeakerServer;
use crate::servers::{SERVER, approve, unapproved};
use crate::world::{PROGRAM, Said, World};

#[test]
fn g25_a_way_out_is_asked_about_after_private_and_untrusted_text() {
    let remote = SpeakerServer::start(json!({ "version": "handshake" }));
    let world = allowing_servers(&remote);
    let mut client = client::start(&world, &[], false, json!({}));
    client.initialize();
    let args = || json!({ "a": 1, "b": 2 });
    assert_eq!(client.call("remote__add", args())["isError"], Value::Null, "allowed by a rule");
    assert_eq!(client.call("remote__add", args())["isError"], Value::Null, "nothing private was read");
    assert_eq!(client.call("read", json!({ "path": "hello.txt" }))["isError"], Value::Null);
    let third = client.call("remote__add", args());
    assert_eq!(tool_error_code(&third), "approval_required", "{third}");
    assert!(third.to_string().contains("has heard a stranger"), "{third}");
    client.end();
    assert_eq!(recorded_end(&world, "remote__add"), "approval_required");
}

#[test]
fn g25_what_a_server_on_this_machine_says_may_be_what_it_read() {
    let remote = SpeakerServer::start(json!({ "version": "handshake" }));
    let world = allowing_servers(&remote);
    let mut client = client::start(&world, &[], false, json!({}));
    client.initialize();
    let args = || json!({ "a": 1, "b": 2 });
    assert_eq!(client.call("remote__add", args())["isError"], Value::Null, "nobody here has read anything");
    assert_eq!(client.call("trial__look", json!({}))["isError"], Value::Null);
    let asked = client.call("remote__add", args());
    assert_eq!(tool_error_code(&asked), "approval_required", "{asked}");
    client.end();
    assert_eq!(recorded_end(&world, "remote__add"), "approval_required");
}

/// A workspace with the hostile server on this machine and one elsewhere, whose tools a rule allows.
fn allowing_servers(remote: &SpeakerServer) -> World {
    let world = remote.world("");
    world.put(&world.workspace().join("server.py"), SERVER);
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    let rules = "rules = [{ decision = 'allow', host = '127.0.0.1' }, { decision = 'allow', permission = 'mcp.call' }]";
    let config = config.replace("rules = [{ decision = 'allow', host = '127.0.0.1' }]", rules);
    let local = "[mcp.servers.trial]\ncommand = ['python3', 'server.py']\ndirectory = 'workspace'\n";
    world.put(&world.user_config(), config + local);
    for server in ["remote", "trial"] {
        assert_eq!(world.run(&["--json", "mcp", "approve", server, "--yes"]).code, 0);
    }
    world
}

#[test]
fn g30_a_secret_among_the_arguments_is_asked_about() {
    let world = unapproved("");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    world.put(&world.user_config(), format!("rules = [{{ decision = 'allow', permission = 'mcp.call' }}]\n{config}"));
    assert_eq!(approve(&world, &["--yes"]).code, 0);
    let run = |flags: &[&str], token: &str| {
        let args = json!({ "path": "x", "text": token }).to_string();
        let mut command = world.command(PROGRAM);
        command.env("GITHUB_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
        Said::from(command.args([&["--json", "call"], flags, &["trial__write", &args]].concat()).output().unwrap())
            .json()
    };
    assert_eq!(run(&[], "plain")["error"]["code"], "server_error", "allowed by a rule, and the server can't write");
    let asked = run(&[], "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
    assert_eq!(asked["error"]["code"], "approval_required", "{asked}");
    assert!(asked.to_string().contains("A secret would go out to the MCP server `trial`, in `/text`"), "{asked}");
    assert!(!asked.to_string().contains("ghp_16C7"), "{asked}");
    assert_eq!(recorded_end(&world, "trial__write"), "approval_required");
}
