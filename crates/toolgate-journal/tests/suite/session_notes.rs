//! Notes of a session and notes shared by all: signed, limited in size, and rewritten one at a time.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, NoteKind};
use toolgate_journal::{RunOptions, StateDirectory};

use crate::world::{World, key};

#[test]
fn a_plan_belongs_to_its_session_and_the_memory_to_all() {
    let world = World::new();
    let [one, two] = ["one", "two"].map(|session| world.state.notebook(session, &world.options).unwrap());
    for book in [NoteKind::Plan, NoteKind::Memory] {
        assert_eq!(one.read(book).unwrap(), None);
        one.rewrite(book, &mut |before| Ok(json!([before, "kept"]))).unwrap();
        one.rewrite(book, &mut |before| Ok(json!([before, "again"]))).unwrap();
    }
    let expected = Some(json!([[null, "kept"], "again"]));
    assert_eq!(one.read(NoteKind::Plan).unwrap(), expected);
    assert_eq!(two.read(NoteKind::Plan).unwrap(), None);
    assert_eq!(two.read(NoteKind::Memory).unwrap(), expected);
    assert!(world.state.notebook("../x", &world.options).is_err());
}

#[test]
fn notes_without_a_valid_signature_are_not_read() {
    let world = World::new();
    let options = RunOptions { key: Some(key()), ..world.options.clone() };
    let notebook = |session: &str| world.state.notebook(session, &options).unwrap();
    notebook("one").rewrite(NoteKind::Todo, &mut |_| Ok(json!(["mine"]))).unwrap();
    notebook("one").rewrite(NoteKind::Memory, &mut |_| Ok(json!(["mine"]))).unwrap();
    let sessions = world.state.path().join("sessions");
    notebook("two");
    std::fs::copy(sessions.join("one/todo.json"), sessions.join("two/todo.json")).unwrap();
    let memory = world.state.path().join("memory.json");
    let forged = std::fs::read_to_string(&memory).unwrap().replace("mine", "theirs");
    std::fs::write(&memory, forged).unwrap();
    for (session, book) in [("two", NoteKind::Todo), ("one", NoteKind::Memory)] {
        let error = notebook(session).read(book).unwrap_err();
        assert!(error.message.contains("has no valid signature"), "{error}");
        assert!(notebook(session).rewrite(book, &mut |_| Ok(Value::Null)).is_err(), "nor is it written over");
    }
    assert_eq!(notebook("one").read(NoteKind::Todo).unwrap(), Some(json!(["mine"])));
}

#[test]
fn notes_have_a_size_limit_and_a_failed_change_leaves_them_unchanged() {
    let world = World::new();
    let notebook = world.state.notebook("one", &world.options).unwrap();
    notebook.rewrite(NoteKind::Memory, &mut |_| Ok(json!("small"))).unwrap();
    let error = notebook.rewrite(NoteKind::Memory, &mut |_| Ok(json!("x".repeat(1 << 20)))).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitReached);
    assert!(notebook.rewrite(NoteKind::Memory, &mut |_| Err(error.clone())).is_err());
    assert_eq!(notebook.read(NoteKind::Memory).unwrap(), Some(json!("small")));
}

#[test]
fn changes_at_one_moment_follow_each_other() {
    let world = World::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let state = StateDirectory::open(world.workspace.path()).unwrap();
                let notebook = state.notebook("one", &world.options).unwrap();
                for _ in 0..20 {
                    let add = |before: Option<Value>| Ok(json!(before.and_then(|n| n.as_u64()).unwrap_or(0) + 1));
                    notebook.rewrite(NoteKind::Memory, &mut { add }).unwrap();
                }
            });
        }
    });
    assert_eq!(world.state.notebook("one", &world.options).unwrap().read(NoteKind::Memory).unwrap(), Some(json!(160)));
}
