//! What the agent's own tools do beyond a scenario: across sessions, without anybody there, and against policy.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::sync::Arc;

use serde_json::json;
use toolgate_contract::{ErrorCode, EventPayload};
use toolgate_testkit::{FirstChoiceAnswerer, TestWorkspace};

const SKILL: &str = "---\nname: deploy\ndescription: Brings it out.\nallowed-tools: Delete\n---\nCarefully.\n";

fn world(config: &str) -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), config)
}

#[tokio::test]
async fn nobody_to_ask_is_said_clearly_and_the_question_is_on_record() {
    let world = world("");
    let reply = world.perform("ask", json!({"question": "Which way?"})).await;
    let error = reply.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::NoAnswer, "No person is available to answer."));
    assert_eq!(world.trail(), ["tool_call.started", "question_asked", "tool_call.failed"]);
}

#[tokio::test]
async fn a_question_shows_no_secret_and_its_answer_says_who_gave_it() {
    let world = world("");
    let session = world.session().answered_by(Arc::new(FirstChoiceAnswerer("left")));
    let reply = world.perform_in(&session, "ask", json!({"question": "Is it correct-horse-battery?"})).await;
    assert_eq!(reply.payload.unwrap(), json!({"answer": "left"}));
    assert_eq!(world.trail(), ["tool_call.started", "question_asked", "question_answered", "tool_call.completed"]);
    let asked = world.events().into_iter().find_map(|event| match event.payload {
        EventPayload::QuestionAsked(question) => Some(question.question),
        _ => None,
    });
    assert_eq!(asked.unwrap(), "Is it ***REDACTED***?");
}

#[tokio::test]
async fn the_memory_outlives_a_session_and_keeps_no_secret_on_disk() {
    let world = world("");
    world.perform("memory", json!({"action": "create", "content": "it is correct-horse-battery"})).await;
    let found = world.perform("memory", json!({"action": "search", "query": "it"})).await;
    assert_eq!(found.payload.unwrap()["memories"][0]["content"], "it is ***REDACTED***");
    let file = std::fs::read_to_string(world.path().join(".toolgate/memory.json")).unwrap();
    assert!(!file.contains("correct-horse"), "{file}");
}

#[tokio::test]
async fn there_is_an_end_to_what_is_remembered() {
    let world = world("");
    let session = world.session();
    for n in 0..200 {
        let args = json!({"action": "create", "content": format!("fact {n}")});
        assert!(world.perform_in(&session, "memory", args).await.ok);
    }
    let reply = world.perform_in(&session, "memory", json!({"action": "create", "content": "one more"})).await;
    assert_eq!(reply.error.unwrap().code, ErrorCode::LimitReached);
}

#[tokio::test]
async fn a_skill_obeys_every_kind_of_deny() {
    for config in [
        "[skills]\ndeny = ['deploy']",
        "tools.deny = ['skill']",
        "rules = [{ decision = 'deny', permission = 'agent' }]",
        "rules = [{ decision = 'deny', path = '.agents/**' }]",
    ] {
        let world = world(config);
        world.file(".agents/skills/deploy/SKILL.md", SKILL);
        let reply = world.perform("skill", json!({"name": "deploy"})).await;
        assert!(!reply.ok, "{config}: {reply:?}");
    }
}

#[tokio::test]
async fn a_list_of_tools_approves_only_where_the_user_says_so_and_only_for_the_users_own() {
    let approval = "[skills]\nallowed_tools = 'approval'";
    for (config, directory, meaning, is_deleted) in [
        ("", "home/skills", "ceiling", false),
        (approval, ".agents/skills", "ceiling", false),
        (approval, "home/skills", "approval", true),
    ] {
        let world = world(config);
        world.file(&format!("{directory}/deploy/SKILL.md"), SKILL).file("a.txt", "text");
        let session = world.session();
        let loaded = world.perform_in(&session, "skill", json!({"name": "deploy"})).await;
        assert_eq!(loaded.payload.unwrap()["allowed_tools"], meaning, "{config} {directory}");
        let reply = world.perform_in(&session, "delete", json!({"path": "a.txt"})).await;
        assert_eq!(reply.ok, is_deleted, "{config} {directory}: {reply:?}");
        let reply = world.perform_in(&session, "list", json!({})).await;
        assert_eq!(reply.ok, meaning == "approval", "{config} {directory}: {reply:?}");
    }
}

#[tokio::test]
async fn a_skill_that_leads_elsewhere_is_not_read() {
    let world = world("");
    world.file("secret.txt", SKILL).file(".agents/skills/deploy/x.txt", "");
    std::os::unix::fs::symlink("../../../secret.txt", world.path().join(".agents/skills/deploy/SKILL.md")).unwrap();
    std::os::unix::fs::symlink("/etc", world.path().join(".agents/skills/etc")).unwrap();
    let reply = world.perform("skill", json!({})).await;
    let payload = reply.payload.unwrap();
    assert!(payload.get("skills").is_none(), "{payload}");
    assert!(payload["unusable"][0]["reason"].as_str().unwrap().contains("is a symbolic link"), "{payload}");
}
