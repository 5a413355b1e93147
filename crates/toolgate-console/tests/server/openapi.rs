//! The OpenAPI document names every route and no other.

use crate::test_server::{ConsoleTestServer, OWNER};

#[tokio::test]
async fn the_document_names_every_route_and_no_other() {
    let server = ConsoleTestServer::start();
    let document = server.get(OWNER, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch"] {
            let path = path.replace("{id}", "some").replace("{call}", "other");
            // Only the head: a live stream has no end.
            let status = server.send(Some(OWNER), &method.to_uppercase(), &path, &[], None).await.status();
            assert_eq!(status != 405, methods.get(method).is_some(), "{method} {path}: {status}");
        }
    }
    for schema in ["Problem", "Call", "Reply", "ApprovalView", "SessionView"] {
        assert!(document["components"]["schemas"][schema].is_object(), "{schema}");
    }
}
