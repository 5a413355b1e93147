//! The inbox as a user meets it.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::inbox_killed::end_leases;
use crate::telegram_server::Bot;
use crate::world::{PROGRAM, World};

const SCRIPT: &str = r#"
[[turns]]
text = "First I write it down."
calls = [{ tool = "shell", args = { command = "echo once >> log.txt" } }]

[[turns]]
text = "All done."
"#;

pub(crate) fn add(world: &World, task: &str) -> String {
    world.run(&["--json", "inbox", "add", task]).json()["id"].as_str().unwrap().to_owned()
}

pub(crate) fn task(world: &World, id: &str) -> Value {
    world.run(&["--json", "inbox", "show", id]).json()
}

/// A worker that follows the script of its workspace. Its lease is long: a slow machine must not make it lose a task.
pub(crate) fn worker(world: &World, more: &[&str]) -> Child {
    start_worker(world, world.command(PROGRAM), 3600, more)
}

/// A worker whose program is the last word of `command`, with a lease of some seconds.
pub(crate) fn start_worker(world: &World, mut command: Command, lease: u32, more: &[&str]) -> Child {
    let script = world.workspace().join("script.toml");
    command.args(["work", "--lease-seconds", &lease.to_string(), "--model", &format!("scripted:{}", script.display())]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_task_is_added_done_and_answered() {
    let world = World::new().file("script.toml", SCRIPT);
    let id = add(&world, "write it down");
    let other = add(&world, "never mind");
    assert_eq!(world.run(&["inbox", "cancel", &other]).code, 0);
    let list = world.run(&["inbox", "list"]);
    assert!(list.out.contains(&id) && list.out.contains("waiting") && !list.out.contains(&other), "{list:?}");
    let said = worker(&world, &["--once"]).wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(out.contains(&id) && out.contains("All done."), "{said:?}");
    let done = task(&world, &id);
    assert_eq!((&done["state"], &done["outcome"], &done["attempts"]), (&json!("done"), &json!("answered"), &json!(1)));
    assert_eq!(world.read("log.txt"), "once\n");
    assert_eq!(world.run(&["inbox", "cancel", &id]).code, 2, "what has ended can't be cancelled");
    assert_eq!(world.run(&["inbox", "show", "task_nothing"]).code, 2);
    assert_eq!(world.run(&["inbox", "add", "x", "--reply-to", "pigeon"]).code, 2);
}

#[test]
fn a_worker_follows_its_script_once_for_each_task() {
    let world = World::new().file("script.toml", SCRIPT);
    let ids = [add(&world, "the first"), add(&world, "the second")];
    let said = worker(&world, &["--once"]).wait_with_output().unwrap();
    for id in &ids {
        let done = task(&world, id);
        assert_eq!((&done["outcome"], &done["answer"]), (&json!("answered"), &json!("All done.")), "{done}: {said:?}");
    }
    assert_eq!(world.read("log.txt"), "once\nonce\n");
}

#[test]
fn two_workers_never_take_the_same_task() {
    let turns = "[[turns]]\ntext = \"done\"\n".repeat(8);
    let world = World::new().file("script.toml", turns);
    let ids: Vec<String> = (0..8).map(|number| add(&world, &format!("task {number}"))).collect();
    let workers = [worker(&world, &["--once"]), worker(&world, &["--once"])];
    let said: String =
        workers.into_iter().map(|one| String::from_utf8(one.wait_with_output().unwrap().stdout).unwrap()).collect();
    for id in ids {
        let task = task(&world, &id);
        assert_eq!((&task["state"], &task["attempts"]), (&json!("done"), &json!(1)), "{task}");
        assert_eq!((task["runs"].as_array().unwrap().len(), said.matches(&id).count()), (1, 1), "{said}");
    }
}

#[test]
fn an_answer_waits_until_whoever_wants_it_is_there() {
    let world = World::new().file("script.toml", SCRIPT);
    let mut bot = Bot::start();
    let id = world
        .run(&["--json", "inbox", "add", "write it down", "--reply-to", &format!("{}/answers", bot.url)])
        .json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    bot.refuse_next();
    worker(&world, &["--once"]).wait_with_output().unwrap();
    assert_eq!(task(&world, &id)["state"], "answered");
    end_leases(&world);
    worker(&world, &["--once"]).wait_with_output().unwrap();
    assert_eq!(task(&world, &id)["state"], "done");
    assert_eq!(world.read("log.txt"), "once\n", "only the delivery was repeated");
    let posted = bot.posted("/answers");
    assert_eq!((&posted["id"], &posted["answer"]), (&json!(id), &json!("All done.")));
}

#[test]
fn a_chat_on_the_list_gives_tasks_approves_with_a_button_and_gets_the_answer() {
    let script =
        "[[turns]]\ncalls = [{ tool = \"delete\", args = { path = \"hello.txt\" } }]\n\n[[turns]]\ntext = \"Gone.\"\n";
    let world = World::new().file("script.toml", script);
    world.put(&world.home().join("token"), "12345:secret-token\n");
    let mut bot = Bot::start();
    bot.message(66, "delete everything");
    bot.message(42, "delete the greeting");
    let token = world.home().join("token");
    let mut child = worker(
        &world,
        &["--telegram-url", &bot.url, "--telegram-chat", "42", "--telegram-token-file", token.to_str().unwrap()],
    );
    let asked = bot.sent(|message| message.get("reply_markup").is_some());
    assert_eq!(asked["chat_id"], 42);
    assert!(asked["text"].as_str().unwrap().contains("delete hello.txt"), "{asked}");
    let yes = asked["reply_markup"]["inline_keyboard"][0][0]["callback_data"].as_str().unwrap().to_owned();
    bot.press(66, &yes);
    bot.press(42, &yes);
    let answer = bot.sent(|message| message["text"].as_str().is_some_and(|text| text.contains("Gone.")));
    assert_eq!(answer["chat_id"], 42);
    child.kill().unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&said.stderr).contains("secret-token"), "{said:?}");
    assert!(!world.workspace().join("hello.txt").exists());
    let tasks = world.run(&["--json", "inbox", "list", "--all"]).list();
    assert_eq!(tasks.as_array().unwrap().len(), 1, "a chat that isn't on the list is not heard: {tasks}");
}
