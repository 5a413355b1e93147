//! The approval queue next to a front end: the first answer wins, and the other request is withdrawn.
#![allow(clippy::disallowed_methods, reason = "tests look at files of their own")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_contract::{ApprovalScope, Clock, ErrorCode, EventPayload, Reply, erase};
use toolgate_journal::{ApprovalQueue, QueuedAnswer, SigningKey, StateDirectory};
use toolgate_runtime::{ApprovalAnswer, ApprovalQueueClient, ApprovalRequest, Approver, NobodyToAsk, Session};
use toolgate_testkit::{
    ScriptedApprover, SilentApprover, TestWorkspace, WritingTool, wait_for_async, wait_until_async,
};

const ASKING: &str = "rules = [{ decision = 'ask', tool = 'writes' }]";

fn world() -> TestWorkspace {
    let world = TestWorkspace::new([erase(WritingTool::default())], ASKING);
    world.file("a.txt", "old\n");
    world
}

/// The approval queue of this world, as another process would open it.
fn queue(world: &TestWorkspace) -> Arc<ApprovalQueue> {
    Arc::new(StateDirectory::open(world.path()).unwrap().queue(SigningKey::from([7; 32])).unwrap())
}

fn session(world: &TestWorkspace, own: impl Approver + 'static, wait: Duration) -> Session {
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    world.session().approved_by(Arc::new(own)).with_approval_queue(ApprovalQueueClient {
        approvals: queue(world),
        wait,
        clock,
    })
}

async fn write(world: &TestWorkspace, session: &Session) -> Reply {
    world.perform_in(session, "writes", json!({ "path": "a.txt" })).await
}

/// Waits until a request is queued and answers it.
async fn answer(world: &TestWorkspace, answer: QueuedAnswer) -> ApprovalRequest {
    let (queue, now) = (queue(world), world.clock.now());
    let ask = wait_for_async("a request is queued", || queue.asks(now).unwrap().into_iter().next()).await;
    queue.answer(&ask.id, &answer, now).unwrap();
    assert_eq!((ask.run.as_str(), ask.session.as_str()), ("run_test", "test"));
    serde_json::from_value(ask.request).unwrap()
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn the_desk_answers_while_the_front_end_still_asks() {
    let world = world();
    let session = session(&world, SilentApprover, Duration::ZERO);
    let by_desk = QueuedAnswer::Granted { scope: ApprovalScope::Session, by: "ada".into() };
    let (reply, request) = tokio::join!(write(&world, &session), answer(&world, by_desk));
    assert!(reply.ok, "{reply:?}");
    assert_eq!(request.preview.as_deref(), Some("-old\n+new\n"), "the desk shows what the terminal shows");
    assert!(queue(&world).asks(world.clock.now()).unwrap().is_empty(), "the ask is out of the queue");
    let granted = |event: &toolgate_contract::Event| matches!(&event.payload, EventPayload::ApprovalGranted { scope: ApprovalScope::Session, by } if by == "ada");
    assert!(world.events().iter().any(granted));
    let again = write(&world, &session).await;
    assert!(again.ok, "a yes for the session covers the next call: {again:?}");
}

#[tokio::test]
async fn a_no_from_the_desk_is_a_no() {
    let world = world();
    let session = session(&world, SilentApprover, Duration::ZERO);
    let no = QueuedAnswer::Denied { by: "ada".into(), reason: Some("not that file".into()) };
    let (reply, _) = tokio::join!(write(&world, &session), answer(&world, no));
    let error = reply.error.unwrap();
    assert_eq!(error.code, ErrorCode::ApprovalDenied);
    assert!(error.message.contains("not that file"), "{error}");
}

#[tokio::test]
async fn an_own_answer_never_bothers_the_desk_and_nobody_is_refused_at_once() {
    let world = world();
    let reply = write(&world, &session(&world, ScriptedApprover::grants(ApprovalScope::Call), Duration::ZERO)).await;
    assert!(reply.ok, "{reply:?}");
    let reply = write(&world, &session(&world, NobodyToAsk, Duration::ZERO)).await;
    assert_eq!(reply.error.unwrap().code, ErrorCode::ApprovalRequired);
    let directory = std::fs::read_dir(world.path().join(".toolgate/desk")).unwrap();
    assert_eq!(directory.count(), 0, "not even a lock was taken");
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_desk_is_waited_at_if_it_was_said_so() {
    let world = world();
    let patient = session(&world, NobodyToAsk, HOUR);
    let yes = QueuedAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let (reply, _) = tokio::join!(write(&world, &patient), answer(&world, yes));
    assert!(reply.ok, "{reply:?}");
    let hasty = session(&world, NobodyToAsk, Duration::from_millis(1));
    assert_eq!(write(&world, &hasty).await.error.unwrap().code, ErrorCode::ApprovalRequired);
    assert!(queue(&world).asks(world.clock.now()).unwrap().is_empty());
}

/// Waits for a moment, then answers that no person can be asked.
struct Leaves;

impl Approver for Leaves {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> toolgate_contract::BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            tokio::task::yield_now().await;
            ApprovalAnswer::Nobody
        })
    }
}

#[tokio::test]
async fn when_the_front_ends_person_leaves_the_desk_goes_on_as_long_as_was_said() {
    let world = world();
    let yes = QueuedAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let patient = session(&world, Leaves, HOUR);
    let (reply, _) = tokio::join!(write(&world, &patient), answer(&world, yes));
    assert!(reply.ok, "{reply:?}");
    let reply = write(&world, &session(&world, Leaves, Duration::ZERO)).await;
    assert_eq!(reply.error.unwrap().code, ErrorCode::ApprovalRequired);
}

#[tokio::test]
async fn a_yes_that_reaches_farther_than_was_offered_is_no_yes() {
    let tools = [erase(WritingTool::default())];
    let world = TestWorkspace::new(tools, &format!("{ASKING}\n[approvals]\nalways_days = 0"));
    let session = session(&world, SilentApprover, Duration::ZERO);
    let always = QueuedAnswer::Granted { scope: ApprovalScope::Always, by: "ada".into() };
    let (reply, request) = tokio::join!(write(&world, &session), answer(&world, always));
    assert!(request.scopes.iter().all(|offer| offer.scope != ApprovalScope::Always));
    assert_eq!(reply.error.unwrap().code, ErrorCode::ApprovalDenied);
}

#[tokio::test]
async fn a_cancelled_call_takes_its_ask_off_the_desk() {
    let world = world();
    let session = session(&world, SilentApprover, Duration::ZERO);
    let cancel = toolgate_contract::CancellationToken::new();
    let call = world.call("writes", json!({ "path": "a.txt" }));
    let cancelled = async {
        let is_queued = || !queue(&world).asks(world.clock.now()).unwrap().is_empty();
        wait_until_async("the request is queued", is_queued).await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(world.gate.perform(call, &session, cancel.clone()), cancelled);
    assert_eq!(reply.error.unwrap().code, ErrorCode::Cancelled);
    assert!(queue(&world).asks(world.clock.now()).unwrap().is_empty());
}
