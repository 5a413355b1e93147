//! Servers that are stopped, killed, confused or slow: each is told of, none is waited for without end, and the next question is
//! answered.

use serde_json::{Value, json};
use toolgate_testkit::{TestWorkspace, skip, wait_until};

use crate::payload;
use crate::projects::project;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_misbehaves_is_told_of_and_ended() {
    for (script, status) in [
        ("import sys; sys.stdout.write('garbage ' * 100); sys.exit(3)", "crashed"),
        (
            "import sys; sys.stdout.write('Content-Length: nonsense\\r\\n\\r\\n'); sys.stdout.flush(); import time; time.sleep(600)",
            "crashed",
        ),
    ] {
        let config = format!(
            "preset = 'full'\n[lsp.servers.bad]\ncommand = ['/usr/bin/python3', '-c', {}]\nfiles = {{ xyz = 'xyz' }}\n",
            serde_json::to_string(script).unwrap()
        );
        let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
        world.file("a.xyz", "a\n");
        let error = world.perform("lsp_symbols", json!({ "path": "a.xyz" })).await.error.unwrap();
        assert_eq!(error.details.clone().unwrap_or_default()["server_status"], status, "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_are_found_beside_a_server_that_cannot_start() {
    let Some((world, project)) = project("ty") else { return };
    let config = std::fs::read_to_string(world.location().config.user.as_path()).unwrap();
    let bad =
        "[lsp.servers.bad]\ncommand = ['/usr/bin/python3', '-c', 'import sys; sys.exit(1)']\nfiles = { xyz = 'xyz' }\n";
    let world = world.reopened("run_beside", toolgate_tools::all(), &format!("{config}{bad}")).confined();
    world.file("a.xyz", "greet\n");
    let found = payload(world.perform("lsp_symbols", json!({ "query": "greet" })).await);
    let symbols = found["symbols"].to_string();
    assert!(symbols.contains(project.library.0), "the other server answers: {found}");
    let none = "[lsp.servers.none]\ncommand = ['no-such-server']\nfiles = { abc = 'abc' }\ninstall = 'get it'\n";
    let world = world.reopened("run_missing", toolgate_tools::all(), &format!("{config}{none}")).confined();
    std::fs::remove_file(world.path().join("a.xyz")).unwrap();
    world.file("b.abc", "greet\n").file("c.json", "{}\n");
    let missing = payload(world.perform("lsp_symbols", json!({ "query": "greet" })).await);
    assert_eq!(
        missing["notes"],
        json!(["Symbols of abc are missing: no language server is installed for it (`get it`)."])
    );
    assert_eq!(missing["server"], "ty", "a server without symbols of the workspace isn't started: {missing}");
    assert!(found["notes"].to_string().contains("`bad`: The language server `bad` ended."), "{found}");
}

/// A workspace whose server is this Python script, with one file for it.
fn scripted(script: &str, wait_seconds: u64) -> TestWorkspace {
    let config = format!(
        "preset = 'full'\nlsp.wait_seconds = {wait_seconds}\n[lsp.servers.scripted]\ncommand = ['/usr/bin/python3', '-c', {}]\nfiles = {{ xyz = 'xyz' }}\n",
        serde_json::to_string(script).unwrap()
    );
    let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
    world.file("a.xyz", "a\n");
    world
}

/// The beginning of every scripted server: how it reads and sends.
const PROTOCOL: &str = include_str!("protocol.py");

fn hover() -> Value {
    json!({ "path": "a.xyz", "line": 1, "symbol": "a" })
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_in_the_middle_ends_the_server_and_the_next_question_starts_it_again() {
    let script = format!(
        "{PROTOCOL}\nimport os\nmarker = os.environ['HOME'] + '/asked'\n\
         for message in messages():\n    \
         if message.get('method') == 'textDocument/hover' and not os.path.exists(marker):\n        \
         open(marker, 'w').close()\n        \
         sys.stdout.buffer.write(b'Content-Length: 12\\r\\n\\r\\nnot json at!!\\r\\n\\r\\nmore garbage\\r\\n\\r\\n' * 10)\n        \
         sys.stdout.buffer.flush()\n    \
         elif 'id' in message:\n        answer(message)\n"
    );
    let world = scripted(&script, 5);
    let error = world.perform("lsp_hover", hover()).await.error.unwrap();
    // What isn't the protocol is passed over as noise, so the answer never comes.
    assert_eq!(error.details.unwrap()["server_status"], "timeout", "{}", error.message);
    let answer = payload(world.perform("lsp_hover", hover()).await);
    assert_eq!((&answer["contents"], &answer["server_status"]), (&json!("an answer"), &json!("ready")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_indexing_is_waited_for_or_told_of() {
    let progress = |kind: &str, more: &str| {
        format!(
            "send({{'jsonrpc': '2.0', 'method': '$/progress', 'params': {{'token': 1, 'value': {{'kind': '{kind}'{more}}}}}}})"
        )
    };
    let begin = progress("begin", ", 'title': 'Indexing', 'percentage': 7");
    let script = |ends: &str| {
        format!(
            "{PROTOCOL}\nimport time\nready = False\nfor message in messages():\n    \
             if message.get('method') == 'initialized':\n        {begin}\n    \
             elif message.get('method') == 'textDocument/didOpen':\n        {ends}\n    \
             elif message.get('method') == 'textDocument/hover':\n        answer(message, empty=not ready)\n    \
             elif 'id' in message:\n        answer(message)\n"
        )
    };
    let world = scripted(&script("pass"), 1);
    let error = world.perform("lsp_hover", hover()).await.error.unwrap();
    let details = error.details.unwrap();
    assert_eq!(details["server_status"], "indexing", "{}", error.message);
    assert!(details["progress"].as_str().unwrap().contains("Indexing, 7 %"), "{details}");
    let end = progress("end", "");
    let world = scripted(&script(&format!("time.sleep(1); ready = True; {end}")), 60);
    let answer = payload(world.perform("lsp_hover", hover()).await);
    assert_eq!((&answer["contents"], &answer["server_status"]), (&json!("an answer"), &json!("ready")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_each_question_is_left_alone_for_a_while() {
    let script = format!(
        "{PROTOCOL}\nfor message in messages():\n    \
         if message.get('method') == 'textDocument/hover':\n        sys.exit(1)\n    \
         elif 'id' in message:\n        answer(message)\n"
    );
    let world = scripted(&script, 5);
    for _ in 0..3 {
        let error = world.perform("lsp_hover", hover()).await.error.unwrap();
        assert_eq!(error.details.unwrap()["server_status"], "crashed", "{}", error.message);
    }
    let error = world.perform("lsp_hover", hover()).await.error.unwrap();
    assert!(error.message.contains("The language server `scripted` ended in 3 calls in a row"), "{}", error.message);
    assert_eq!(error.details.unwrap()["server_status"], "crashed");
    assert!(error.hint.unwrap().contains("grep"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_could_not_start_is_tried_again_when_a_person_asks_for_it() {
    let first = format!(
        "{PROTOCOL}\nimport os\nif not os.path.exists(os.environ['HOME'] + '/repaired'):\n    sys.exit(1)\n\
         for message in messages():\n    \
         if 'id' in message:\n        answer(message)\n"
    );
    let second = format!("{PROTOCOL}\nfor message in messages():\n    if 'id' in message:\n        answer(message)\n");
    let server = |name: &str, script: &str| {
        let script = serde_json::to_string(script).unwrap();
        format!("[lsp.servers.{name}]\ncommand = ['/usr/bin/python3', '-c', {script}]\nfiles = {{ xyz = 'xyz' }}\n")
    };
    let config = format!("preset = 'full'\n{}{}", server("a-first", &first), server("b-second", &second));
    let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
    world.file("a.xyz", "a\n");
    let answers = async || payload(world.perform("lsp_hover", hover()).await)["server"].clone();
    assert_eq!(answers().await, "b-second", "the first can't start");
    let homes = world.location().language_server_log("a-first").unwrap();
    std::fs::write(homes.parent().unwrap().join("a-first/repaired"), "").unwrap();
    assert_eq!(answers().await, "b-second", "nobody asked for another try");
    crate::restart(&world, "a-first");
    assert_eq!(answers().await, "a-first");
}

/// Ended and started again, a server that takes long to read a project would never be ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_busy_indexing_to_answer_goes_on_with_that() {
    let script = format!(
        "{PROTOCOL}\nimport os\nopen(os.environ['HOME'] + '/starts', 'a').write('x')\nasked = 0\n\
         def progress(value):\n    \
         send({{'jsonrpc': '2.0', 'method': '$/progress', 'params': {{'token': 1, 'value': value}}}})\n\n\
         for message in messages():\n    \
         if message.get('method') == 'initialized':\n        progress({{'kind': 'begin', 'title': 'Indexing'}})\n    \
         elif message.get('method') == 'textDocument/hover':\n        \
         asked += 1\n        \
         if asked > 1:\n            progress({{'kind': 'end'}})\n            answer(message)\n    \
         elif 'id' in message:\n        answer(message)\n"
    );
    let world = scripted(&script, 1);
    let error = world.perform("lsp_hover", hover()).await.error.unwrap();
    assert_eq!(error.details.unwrap()["server_status"], "indexing", "{}", error.message);
    let answer = payload(world.perform("lsp_hover", hover()).await);
    assert_eq!(answer["contents"], "an answer");
    let log = world.location().language_server_log("scripted").unwrap();
    let starts = std::fs::read_to_string(log.with_file_name("scripted").join("starts")).unwrap();
    assert_eq!(starts, "x", "it was started once");
}

/// A server of which nothing is known but that it publishes what is wrong when a document is given to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_configured_server_that_only_publishes_is_not_believed_about_an_older_project() {
    let script = format!(
        "{PROTOCOL}\ndef publish(document):\n    \
         bad = 'bad' in open('other.xyz').read()\n    \
         items = [{{'range': {{'start': {{'line': 0, 'character': 0}}, 'end': {{'line': 0, 'character': 1}}}}, 'message': 'bad'}}] if bad else []\n    \
         send({{'jsonrpc': '2.0', 'method': 'textDocument/publishDiagnostics', 'params': {{'uri': document['uri'], 'version': document['version'], 'diagnostics': items}}}})\n\
         for message in messages():\n    \
         if message.get('method') in ('textDocument/didOpen', 'textDocument/didChange'):\n        publish(message['params']['textDocument'])\n    \
         elif 'id' in message:\n        answer(message)\n"
    );
    let world = scripted(&script, 5);
    for (text, expected) in [("good", 0), ("bad", 1), ("good", 0)] {
        world.file("other.xyz", text);
        let found = payload(world.perform("lsp_diagnostics", json!({ "path": "a.xyz" })).await);
        assert_eq!(found["count"], expected, "{found}");
    }
}

/// The processes of the server of this workspace.
fn server_processes(world: &TestWorkspace) -> Vec<i32> {
    let is_here = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|path| path == world.path());
    toolgate_testkit::processes_with("ty\0server").into_iter().filter(is_here).collect()
}

fn signal(name: &str, pids: &[i32]) {
    let pids = pids.iter().map(i32::to_string);
    assert!(std::process::Command::new("kill").arg(name).args(pids).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_started_again() {
    let Some((world, project)) = project("ty") else { return };
    let target = json!({ "path": project.program_file.0, "symbol": "greet", "line": 1 });
    let before = payload(world.perform("lsp_references", target.clone()).await);
    let pids = server_processes(&world);
    if pids.is_empty() {
        return skip("no-process-list", "the processes of the sandbox can't be seen");
    }
    signal("-KILL", &pids);
    wait_until("it is gone", || server_processes(&world).iter().all(|pid| !pids.contains(pid)));
    world.file("more.py", "from library import greet\ngreet('x')\n");
    let after = world.perform("lsp_references", target.clone()).await;
    let after = match after.error {
        // It may be noticed only by the question that it dies of; the next one is answered.
        Some(error) => {
            assert_eq!(error.details.unwrap()["server_status"], "crashed", "{}", error.message);
            payload(world.perform("lsp_references", target).await)
        }
        None => payload(after),
    };
    assert_eq!(after["total"].as_u64(), before["total"].as_u64().map(|total| total + 2), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_given_up_and_the_next_question_is_answered() {
    let Some((world, project)) = project("ty") else { return };
    let config = std::fs::read_to_string(world.location().config.user.as_path()).unwrap();
    let world = world
        .reopened("run_impatient", toolgate_tools::all(), &config.replace("wait_seconds = 120", "wait_seconds = 1"))
        .confined();
    let target = json!({ "path": project.program_file.0, "symbol": "greet", "line": 1 });
    let before = payload(world.perform("lsp_references", target.clone()).await);
    let pids = server_processes(&world);
    if pids.is_empty() {
        return skip("no-process-list", "the processes of the sandbox can't be seen");
    }
    signal("-STOP", &pids);
    let error = world.perform("lsp_references", target.clone()).await.error.unwrap();
    assert_eq!(error.details.unwrap()["server_status"], "timeout", "{}", error.message);
    wait_until("the stopped server is gone", || server_processes(&world).iter().all(|pid| !pids.contains(pid)));
    assert_eq!(payload(world.perform("lsp_references", target).await), before);
}
