//! What every inbox must do. Each function gets an empty inbox; every implementation runs the same list. No test waits for
//! a lease to expire: one that lasts no time at all has expired when it is granted.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use toolgate_journal::{Inbox, Lease, NewTask, TaskState};

/// A test by its name.
type Test = (&'static str, fn(&dyn Inbox));

pub(crate) const SUITE: &[Test] = &[
    ("a task goes its way", a_task_goes_its_way),
    ("the oldest comes first and nobody takes it twice", the_oldest_comes_first_and_nobody_takes_it_twice),
    ("a task whose worker is gone is taken again", a_task_whose_worker_is_gone_is_taken_again),
    ("a renewed lease holds", a_renewed_lease_holds),
    ("an answer that was not delivered is taken again", an_answer_that_was_not_delivered_is_taken_again),
    ("a lost lease counts for nothing", a_lost_lease_counts_for_nothing),
    ("leases are shown, the next one to expire first", leases_are_shown),
    ("what nobody wants any more", cancelled_tasks),
    ("whatever is repeated changes nothing", whatever_is_repeated_changes_nothing),
    ("many workers at once", many_workers_at_once),
];

const HOUR: Duration = Duration::from_secs(3600);

fn lease(token: &str, lasts: Duration) -> Lease {
    Lease { token: token.into(), lasts }
}

/// The lease of a worker that works.
fn held(token: &str) -> Lease {
    lease(token, HOUR)
}

/// The lease of a worker that has died: it expires at once.
fn gone(token: &str) -> Lease {
    lease(token, Duration::ZERO)
}

fn add(inbox: &dyn Inbox, id: &str) {
    inbox
        .add(&NewTask { id: id.into(), task: format!("do {id}"), reply_to: toolgate_journal::ReplyAddress::Terminal })
        .unwrap();
}

fn take(inbox: &dyn Inbox, lease: &Lease) -> Option<String> {
    inbox.take(lease).unwrap().map(|task| task.id)
}

fn a_task_goes_its_way(inbox: &dyn Inbox) {
    let held = held("a");
    assert_eq!(inbox.take(&held).unwrap(), None);
    add(inbox, "one");
    assert_eq!(inbox.task("one").unwrap().unwrap().state, TaskState::Waiting);
    let task = inbox.take(&held).unwrap().unwrap();
    assert_eq!((task.task.as_str(), task.state, task.attempts), ("do one", TaskState::Working, 1));
    assert!(inbox.begin("one", &held, &["run_1".into()]).unwrap());
    assert_eq!(inbox.renew("one", &held).unwrap().unwrap().runs, ["run_1"]);
    assert!(inbox.answer("one", &held, "answered", "forty-two").unwrap());
    let task = inbox.task("one").unwrap().unwrap();
    assert_eq!((task.state, task.answer.as_deref()), (TaskState::Answered, Some("forty-two")));
    assert!(task.finished.is_some_and(|finished| finished >= task.created), "{task:?}");
    assert!(inbox.done("one", &held).unwrap());
    assert_eq!((inbox.tasks(false, 10).unwrap().len(), inbox.tasks(true, 10).unwrap().len()), (0, 1));
    assert_eq!(take(inbox, &gone("b")), None, "what is done is done");
}

fn the_oldest_comes_first_and_nobody_takes_it_twice(inbox: &dyn Inbox) {
    add(inbox, "z, added first");
    add(inbox, "a, added second");
    let names = |tasks: Vec<toolgate_journal::Task>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(names(inbox.tasks(true, 1).unwrap()), ["z, added first"]);
    assert_eq!(names(inbox.newest_tasks(1).unwrap()), ["a, added second"], "the limit leaves out the oldest");
    let [first, second, third] = ["a", "b", "c"].map(|token| take(inbox, &held(token)));
    assert_eq!((first.as_deref(), second.as_deref(), third), (Some("z, added first"), Some("a, added second"), None));
}

fn a_task_whose_worker_is_gone_is_taken_again(inbox: &dyn Inbox) {
    add(inbox, "one");
    add(inbox, "two");
    let gone = gone("gone");
    assert_eq!(take(inbox, &gone).as_deref(), Some("one"));
    assert!(inbox.begin("one", &gone, &["run_1".into()]).unwrap());
    let task = inbox.take(&held("next")).unwrap().unwrap();
    assert_eq!(task.id, "one", "what was begun comes before what waits");
    assert_eq!((task.attempts, task.state, task.runs), (2, TaskState::Working, vec!["run_1".to_owned()]));
    assert_eq!(take(inbox, &held("third")).as_deref(), Some("two"));
    assert_eq!(take(inbox, &held("fourth")), None);
}

fn a_renewed_lease_holds(inbox: &dyn Inbox) {
    add(inbox, "one");
    inbox.take(&gone("slow")).unwrap().unwrap();
    assert!(inbox.renew("one", &held("slow")).unwrap().is_some(), "nobody else has taken it");
    assert_eq!(take(inbox, &held("next")), None);
    inbox.renew("one", &gone("slow")).unwrap();
    assert_eq!(take(inbox, &held("next")).as_deref(), Some("one"), "a lease can be given back");
}

fn an_answer_that_was_not_delivered_is_taken_again(inbox: &dyn Inbox) {
    add(inbox, "one");
    let gone = gone("gone");
    inbox.take(&gone).unwrap().unwrap();
    assert!(inbox.answer("one", &gone, "answered", "kept").unwrap());
    let next = held("next");
    let task = inbox.take(&next).unwrap().unwrap();
    assert_eq!((task.state, task.answer.as_deref()), (TaskState::Answered, Some("kept")));
    assert!(!inbox.done("one", &gone).unwrap());
    assert!(inbox.done("one", &next).unwrap());
}

fn a_lost_lease_counts_for_nothing(inbox: &dyn Inbox) {
    add(inbox, "one");
    let (slow, next) = (gone("slow"), held("next"));
    inbox.take(&slow).unwrap();
    inbox.take(&next).unwrap().unwrap();
    assert_eq!(inbox.renew("one", &held("slow")).unwrap(), None);
    assert!(!inbox.begin("one", &slow, &["run_9".into()]).unwrap());
    assert!(!inbox.answer("one", &slow, "answered", "too late").unwrap());
    assert!(inbox.answer("one", &next, "answered", "in time").unwrap());
    assert!(!inbox.answer("one", &slow, "answered", "in time").unwrap());
    assert!(!inbox.answer("one", &next, "answered", "again").unwrap(), "there is one answer");
    assert_eq!(inbox.task("one").unwrap().unwrap().answer.as_deref(), Some("in time"));
}

fn leases_are_shown(inbox: &dyn Inbox) {
    ["one", "two", "three", "waits"].iter().for_each(|id| add(inbox, id));
    let (long, short, done) = (lease("long", 2 * HOUR), held("short"), held("done"));
    [&long, &short, &done].iter().for_each(|lease| drop(inbox.take(lease).unwrap().unwrap()));
    inbox.answer("three", &done, "answered", "kept").unwrap();
    inbox.done("three", &done).unwrap();
    let before = inbox.leases().unwrap();
    assert_eq!(before.iter().map(|lease| lease.token.as_str()).collect::<Vec<_>>(), ["short", "long"]);
    inbox.renew("two", &lease("short", 3 * HOUR)).unwrap().unwrap();
    let after = inbox.leases().unwrap();
    assert_eq!(after.iter().map(|lease| lease.token.as_str()).collect::<Vec<_>>(), ["long", "short"]);
    assert!(after[0] == before[1] && after[1].until > before[0].until, "{before:?} {after:?}");
}

fn cancelled_tasks(inbox: &dyn Inbox) {
    add(inbox, "waits");
    add(inbox, "runs");
    assert!(inbox.cancel("waits").unwrap());
    assert_eq!(inbox.task("waits").unwrap().unwrap().state, TaskState::Cancelled);
    let held = held("a");
    assert_eq!(take(inbox, &held).as_deref(), Some("runs"));
    assert!(inbox.cancel("runs").unwrap());
    let told = inbox.renew("runs", &held).unwrap().unwrap();
    assert!(told.is_unwanted && told.state == TaskState::Working);
    assert!(inbox.answer("runs", &held, "cancelled", "stopped").unwrap());
    assert!(!inbox.cancel("runs").unwrap() && !inbox.cancel("nothing").unwrap());
}

/// A worker repeats whatever it doesn't know the result of.
fn whatever_is_repeated_changes_nothing(inbox: &dyn Inbox) {
    add(inbox, "one");
    let added = inbox.task("one").unwrap();
    add(inbox, "one");
    add(inbox, "two");
    assert_eq!(inbox.task("one").unwrap(), added);
    let first = inbox.take(&gone("a")).unwrap();
    assert_eq!(inbox.take(&held("a")).unwrap(), first, "the same lease never holds two");
    assert_eq!(take(inbox, &held("b")).as_deref(), Some("two"), "taking again renews the lease");
    let repeat = |change: &dyn Fn() -> bool| assert!(change() && change());
    repeat(&|| inbox.begin("one", &held("a"), &["run_1".into()]).unwrap());
    repeat(&|| inbox.answer("one", &held("a"), "answered", "kept").unwrap());
    repeat(&|| inbox.done("one", &held("a")).unwrap());
    assert_eq!(inbox.task("one").unwrap().unwrap().state, TaskState::Done);
    assert_eq!(inbox.take(&held("c")).unwrap(), None);
}

fn many_workers_at_once(inbox: &dyn Inbox) {
    (0..40).for_each(|number| add(inbox, &format!("task-{number:02}")));
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let taken = &taken;
            scope.spawn(move || {
                for round in 0.. {
                    let Some(task) = inbox.take(&held(&format!("{worker}-{round}"))).unwrap() else { break };
                    taken.lock().unwrap().push(task.id);
                }
            });
        }
    });
    let taken = taken.into_inner().unwrap();
    assert_eq!((taken.len(), taken.iter().collect::<BTreeSet<_>>().len()), (40, 40));
}
