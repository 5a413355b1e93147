//! A server for each test, and requests to its router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use toolgate_console::{AllowedOrigins, ConsoleOptions, HttpLimits, HttpOptions, HttpServer, Token};
use toolgate_contract::erase;
use toolgate_journal::ConsoleAccess;
use toolgate_testkit::{HangingTool, LongOutputTool, TestWorkspace};
use tower::ServiceExt;

/// The owner's token.
pub(crate) const OWNER: &str = "tgt_owner";

/// Headers of a request, as a table can hold them.
pub(crate) type HeaderTable<'a> = &'a [(&'a str, &'a str)];

/// A server that no connection leads to but this router.
pub(crate) struct ConsoleTestServer {
    pub(crate) workspace: TestWorkspace,
    pub(crate) server: HttpServer,
    pub(crate) router: Router,
}

/// A response that has come whole.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|fault| panic!("not JSON ({fault}): {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The status and the code of a problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

impl ConsoleTestServer {
    pub(crate) fn start() -> Self {
        Self::with("", HttpLimits::default())
    }

    pub(crate) fn with(config: &str, limits: HttpLimits) -> Self {
        let workspace = workspace(config);
        let allowed_origins = AllowedOrigins::at("127.0.0.1:8731".parse().unwrap(), &[], &[]);
        let options = HttpOptions { allowed_origins, limits, tls: None, console: Some(console_options(&workspace)) };
        let server = HttpServer::new(workspace.workspace(), &Token::new(OWNER), options).unwrap();
        let router = server.router();
        Self { workspace, server, router }
    }

    /// Sends a request with this token and returns the response as it begins.
    pub(crate) async fn send(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        headers: HeaderTable<'_>,
        body: Option<&Value>,
    ) -> Response<Body> {
        let request = self.request(token, method, path, headers, body);
        self.router.clone().oneshot(request).await.unwrap()
    }

    fn request(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        headers: HeaderTable<'_>,
        body: Option<&Value>,
    ) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", "127.0.0.1:8731");
        }
        if body.is_some() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", "application/json");
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()
    }

    /// Sends a request and waits for the whole response.
    pub(crate) async fn ask(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        headers: HeaderTable<'_>,
        body: Option<&Value>,
    ) -> HttpAnswer {
        collect(self.send(token, method, path, headers, body).await).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> HttpAnswer {
        self.ask(Some(token), "GET", path, &[], None).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> HttpAnswer {
        self.ask(Some(token), "POST", path, &[], Some(body)).await
    }

    pub(crate) async fn delete(&self, token: &str, path: &str) -> HttpAnswer {
        self.ask(Some(token), "DELETE", path, &[], None).await
    }

    /// A call and its reply.
    pub(crate) async fn call(&self, token: &str, tool: &str, args: Value) -> Value {
        let answer = self.post(token, "/v1/calls", &json!({ "name": tool, "args": args })).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Begins a request that is answered later, in a task of its own.
    pub(crate) fn spawn(&self, token: &str, path: &str, body: &Value) -> tokio::task::JoinHandle<HttpAnswer> {
        let request = self.request(Some(token), "POST", path, &[], Some(body));
        let router = self.router.clone();
        tokio::spawn(async move { collect(router.oneshot(request).await.unwrap()).await })
    }

    /// Begins a session: how it is shown, and its token.
    pub(crate) async fn session(&self, wanted: Value) -> (Value, String) {
        let answer = self.post(OWNER, "/v1/sessions", &wanted).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = answer.json();
        let token = session["token"].as_str().unwrap().to_owned();
        (session, token)
    }

    /// The first entry that waits in a list such as `/v1/approvals`, once there is one.
    pub(crate) async fn waiting(&self, token: &str, list: &str) -> Value {
        loop {
            let answer = self.get(token, &format!("/v1/{list}")).await.json();
            match answer[list].as_array().unwrap().first() {
                Some(entry) => return entry.clone(),
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The recorded events of a run.
    pub(crate) async fn events(&self, run: &Value) -> Vec<Value> {
        let answer = self.get(OWNER, &format!("/v1/runs/{}/events", run.as_str().unwrap())).await;
        answer.json()["events"].as_array().unwrap().clone()
    }

    /// Waits until a run has an event of this kind.
    pub(crate) async fn event(&self, run: &Value, kind: &str) -> Value {
        loop {
            match self.events(run).await.into_iter().find(|event| event["kind"] == kind) {
                Some(event) => return event,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// The codes of the refusals that were recorded.
    pub(crate) async fn refusals(&self) -> Vec<String> {
        let runs = self.get(OWNER, "/v1/runs?session=http").await.json();
        let events = self.events(&runs["runs"][0]["id"]).await;
        let refused = events.iter().filter(|event| event["kind"] == "request.refused");
        refused.map(|event| event["code"].as_str().unwrap().to_owned()).collect()
    }

    /// The text of a file in the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace.path().join(path)).unwrap()
    }
}

/// The console of a test's workspace.
fn console_options(workspace: &TestWorkspace) -> ConsoleOptions {
    ConsoleOptions {
        access: ConsoleAccess::new(workspace.location().config.console()),
        location: workspace.location().clone(),
        doctor: Arc::new(|| Ok(json!([]))),
        others: None,
        port: 8731,
        is_encrypted: false,
    }
}

async fn collect(response: Response<Body>) -> HttpAnswer {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    HttpAnswer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// The built-in tools and some of the testkit's, with a file to read, and an approval queue at which calls wait only if
/// their session says how long.
fn workspace(config: &str) -> TestWorkspace {
    let own = [erase(LongOutputTool), erase(HangingTool)];
    let workspace = TestWorkspace::new(toolgate_tools::all().into_iter().chain(own), config);
    workspace.file("hello.txt", "hello\nworld\n").file(".env", "TOKEN=x\n");
    workspace.with_approval_queue(Duration::ZERO)
}
