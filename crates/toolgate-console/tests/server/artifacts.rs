//! Stored output over HTTP: whole, in part, cached, and never another session's.

use serde_json::json;
use toolgate_contract::Artifacts;

use crate::test_server::{ConsoleTestServer, OWNER};

#[tokio::test]
async fn an_artifact_comes_whole_or_in_part() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let reply = server.call(&token, "big", json!({ "lines": 30_000 })).await;
    let path = format!("/v1/artifacts/{}", reply["artifacts"]["refs"][0]["id"].as_str().unwrap());
    let whole = server.get(&token, &path).await;
    let text = String::from_utf8(whole.body.clone()).unwrap();
    let expected: String = (1..=30_000).map(|number| format!("line {number}\n")).collect();
    assert!(whole.status == 200 && text.contains(&expected), "{}", &text[..200]);
    assert_eq!(whole.header("content-disposition"), Some("attachment"));

    let part = server.ask(Some(&token), "GET", &path, &[("range", "bytes=5-10")], None).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &whole.body[5..=10]));
    assert_eq!(part.header("content-range"), Some(format!("bytes 5-10/{}", whole.body.len()).as_str()));
    let outside = server.ask(Some(&token), "GET", &path, &[("range", "bytes=999999999-")], None).await;
    assert_eq!(outside.problem(), (416, "outside_range".into()));
    let tag = whole.header("etag").unwrap();
    assert_eq!(server.ask(Some(&token), "GET", &path, &[("if-none-match", tag)], None).await.status, 304);

    let (_, other) = server.session(json!({})).await;
    let by_run = format!("{path}?run={}", session["run"].as_str().unwrap());
    assert_eq!(server.get(&other, &path).await.status, 404, "another session's artifact is not found");
    assert_eq!(server.get(&other, &by_run).await.status, 404, "not even by its run");
    assert_eq!(server.get(OWNER, &by_run).await.status, 200, "the owner sees all runs");
}

#[tokio::test]
async fn binary_data_with_a_secret_is_refused_whole_and_in_part() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let artifacts = server.workspace.workspace().state.artifacts(session["run"].as_str().unwrap()).unwrap();
    let filler = [0, 0xff].repeat(100_000);
    for secret in ["correct-horse-battery", "DB_PASSWORD=hunter2\0"] {
        let bytes = [filler.as_slice(), secret.as_bytes(), &filler].concat();
        let path = format!("/v1/artifacts/{}", artifacts.store(&bytes, "application/octet-stream").unwrap().id);
        for range in [None, Some(("range", "bytes=0-9"))] {
            let answer = server.ask(Some(&token), "GET", &path, range.as_slice(), None).await;
            assert_eq!(answer.problem(), (403, "secret_in_artifact".into()), "{secret} {range:?}");
        }
    }
    let path = format!("/v1/artifacts/{}", artifacts.store(&filler, "application/octet-stream").unwrap().id);
    assert_eq!(server.get(&token, &path).await.body, filler, "data without a secret comes as it is");
}
