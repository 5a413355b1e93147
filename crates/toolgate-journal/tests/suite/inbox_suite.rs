//! What every inbox must do. Each function gets an empty inbox; every implementation runs the same list.

use std::collections::BTreeSet;
use std::sync::Mutex;

use jiff::Timestamp;
use toolgate_journal::{Inbox, Lease, NewTask, TaskState};

/// A test by its name.
type Test = (&'static str, fn(&dyn Inbox));

pub(crate) const SUITE: &[Test] = &[
    ("a task goes its way", a_task_goes_its_way),
    ("the oldest comes first and nobody takes it twice", the_oldest_comes_first_and_nobody_takes_it_twice),
    ("a task whose worker is gone is taken again", a_task_whose_worker_is_gone_is_taken_again),
    ("an answer that was not delivered is taken again", an_answer_that_was_not_delivered_is_taken_again),
    ("a lost lease counts for nothing", a_lost_lease_counts_for_nothing),
    ("what nobody wants any more", cancelled_tasks),
    ("adding and taking twice changes nothing", adding_and_taking_twice_changes_nothing),
    ("many workers at once", many_workers_at_once),
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn lease(token: &str, until: i64) -> Lease {
    Lease { token: token.into(), until: at(until) }
}

fn add(inbox: &dyn Inbox, id: &str, second: i64) {
    let task = NewTask { id: id.into(), task: format!("do {id}"), reply_to: "terminal".into(), created: at(second) };
    inbox.add(&task).unwrap();
}

fn a_task_goes_its_way(inbox: &dyn Inbox) {
    let held = lease("a", 60);
    assert_eq!(inbox.take(&held, at(0)).unwrap(), None);
    add(inbox, "one", 0);
    assert_eq!(inbox.task("one").unwrap().unwrap().state, TaskState::Waiting);
    let task = inbox.take(&held, at(1)).unwrap().unwrap();
    assert_eq!((task.task.as_str(), task.state, task.attempts), ("do one", TaskState::Working, 1));
    assert!(inbox.begin("one", &held, &["run_1".into()]).unwrap());
    assert_eq!(inbox.renew("one", &lease("a", 120)).unwrap().unwrap().runs, ["run_1"]);
    assert!(inbox.answer("one", &held, "answered", "forty-two", at(9)).unwrap());
    let task = inbox.task("one").unwrap().unwrap();
    assert_eq!(
        (task.state, task.answer.as_deref(), task.finished),
        (TaskState::Answered, Some("forty-two"), Some(at(9)))
    );
    assert!(inbox.done("one", &held).unwrap());
    assert_eq!((inbox.tasks(false, 10).unwrap().len(), inbox.tasks(true, 10).unwrap().len()), (0, 1));
    assert_eq!(inbox.take(&lease("b", 999), at(900)).unwrap(), None, "what is done is done");
}

fn the_oldest_comes_first_and_nobody_takes_it_twice(inbox: &dyn Inbox) {
    add(inbox, "second", 2);
    add(inbox, "first", 1);
    let take = |token: &str| inbox.take(&lease(token, 60), at(3)).unwrap().map(|task| task.id);
    assert_eq!((take("a").as_deref(), take("b").as_deref(), take("c")), (Some("first"), Some("second"), None));
}

fn a_task_whose_worker_is_gone_is_taken_again(inbox: &dyn Inbox) {
    add(inbox, "one", 0);
    let (gone, next) = (lease("gone", 60), lease("next", 120));
    inbox.take(&gone, at(1)).unwrap().unwrap();
    inbox.begin("one", &gone, &["run_1".into()]).unwrap();
    assert_eq!(inbox.take(&next, at(59)).unwrap(), None, "its lease still holds");
    let task = inbox.take(&next, at(61)).unwrap().unwrap();
    assert_eq!((task.attempts, task.state, task.runs), (2, TaskState::Working, vec!["run_1".to_owned()]));
}

fn an_answer_that_was_not_delivered_is_taken_again(inbox: &dyn Inbox) {
    add(inbox, "one", 0);
    let gone = lease("gone", 60);
    inbox.take(&gone, at(1)).unwrap().unwrap();
    assert!(inbox.answer("one", &gone, "answered", "kept", at(2)).unwrap());
    let next = lease("next", 120);
    let task = inbox.take(&next, at(61)).unwrap().unwrap();
    assert_eq!((task.state, task.answer.as_deref()), (TaskState::Answered, Some("kept")));
    assert!(!inbox.done("one", &gone).unwrap());
    assert!(inbox.done("one", &next).unwrap());
}

fn a_lost_lease_counts_for_nothing(inbox: &dyn Inbox) {
    add(inbox, "one", 0);
    let (slow, next) = (lease("slow", 60), lease("next", 120));
    inbox.take(&slow, at(1)).unwrap();
    inbox.take(&next, at(61)).unwrap().unwrap();
    assert_eq!(inbox.renew("one", &lease("slow", 200)).unwrap(), None);
    assert!(!inbox.begin("one", &slow, &["run_9".into()]).unwrap());
    assert!(!inbox.answer("one", &slow, "answered", "too late", at(62)).unwrap());
    assert!(inbox.answer("one", &next, "answered", "in time", at(63)).unwrap());
    assert!(!inbox.answer("one", &next, "answered", "again", at(64)).unwrap(), "there is one answer");
    assert_eq!(inbox.task("one").unwrap().unwrap().answer.as_deref(), Some("in time"));
}

fn cancelled_tasks(inbox: &dyn Inbox) {
    add(inbox, "waits", 0);
    add(inbox, "runs", 1);
    assert!(inbox.cancel("waits").unwrap());
    assert_eq!(inbox.task("waits").unwrap().unwrap().state, TaskState::Cancelled);
    let held = lease("a", 60);
    assert_eq!(inbox.take(&held, at(2)).unwrap().unwrap().id, "runs");
    assert!(inbox.cancel("runs").unwrap());
    let told = inbox.renew("runs", &held).unwrap().unwrap();
    assert!(told.is_unwanted && told.state == TaskState::Working);
    assert!(inbox.answer("runs", &held, "cancelled", "stopped", at(3)).unwrap());
    assert!(!inbox.cancel("runs").unwrap() && !inbox.cancel("nothing").unwrap());
}

fn adding_and_taking_twice_changes_nothing(inbox: &dyn Inbox) {
    add(inbox, "one", 0);
    add(inbox, "one", 5);
    add(inbox, "two", 6);
    assert_eq!(inbox.task("one").unwrap().unwrap().created, at(0));
    let held = lease("a", 60);
    let first = inbox.take(&held, at(7)).unwrap();
    assert_eq!(inbox.take(&held, at(8)).unwrap(), first, "the same lease never holds two");
}

fn many_workers_at_once(inbox: &dyn Inbox) {
    (0..40).for_each(|number| add(inbox, &format!("task-{number:02}"), number));
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let taken = &taken;
            scope.spawn(move || {
                for round in 0.. {
                    let held = lease(&format!("{worker}-{round}"), 1_000);
                    let Some(task) = inbox.take(&held, at(100)).unwrap() else { break };
                    taken.lock().unwrap().push(task.id);
                }
            });
        }
    });
    let taken = taken.into_inner().unwrap();
    assert_eq!((taken.len(), taken.iter().collect::<BTreeSet<_>>().len()), (40, 40));
}
