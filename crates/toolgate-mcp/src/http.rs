//! MCP over HTTP: one endpoint that takes messages by POST. An answer is plain JSON when nothing came before it, and a
//! stream of events otherwise. Clients with a handshake have a session in a header; the others are known by their
//! principal and their name. Whoever hangs up ends what they had asked for: nothing could bring them the answer.

mod door;
mod guard;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use toolgate_runtime::Principal;

use self::door::Door;
use self::stream::Reply;
use crate::era::{self, Manner};
use crate::fault::Fault;
use crate::host::Visitor;
use crate::message::{self, Message, Request};
use crate::methods;
use crate::server::Server;

const SESSION: &str = "mcp-session-id";

/// The endpoint. Nest it where clients look for it, usually `/mcp`.
pub fn service(server: Arc<Server>) -> Router {
    Router::new().fallback(handle).with_state(Arc::new(Door::new(server)))
}

async fn handle(State(door): State<Arc<Door>>, request: HttpRequest) -> Response {
    let principal = match let_in(&door, &request) {
        Ok(principal) => principal,
        Err(why) => return (StatusCode::FORBIDDEN, why).into_response(),
    };
    let answered = match request.method().clone() {
        Method::POST => post(&door, principal, request).await,
        Method::GET => watch(&door, &principal, request.headers()),
        Method::DELETE => leave(&door, &principal, request.headers()),
        _ => Err(plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST.")),
    };
    answered.unwrap_or_else(|refusal| *refusal)
}

/// Who may come in, and as whom.
fn let_in(door: &Door, request: &HttpRequest) -> Result<String, &'static str> {
    let principal = request.extensions().get::<Principal>().map(|principal| principal.0.clone());
    if door.server.options.is_behind_door {
        return principal.ok_or("This token isn't good for MCP. Use the owner's.");
    }
    guard::check_origin(request.headers())?;
    Ok(principal.unwrap_or_else(|| "local".into()))
}

/// An answer that ends the request early.
type Refusal = Box<Response>;

fn plain(status: StatusCode, why: &'static str) -> Refusal {
    Box::new((status, why).into_response())
}

/// A protocol error, with the status that the protocol asks for.
fn fault(request: Option<&Request>, status: StatusCode, fault: &Fault) -> Refusal {
    let body = message::error(request.map(|request| &request.id), fault);
    Box::new((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

async fn post(door: &Arc<Door>, principal: String, request: HttpRequest) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    if !guard::is_json(&parts.headers) {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send application/json."));
    }
    let bytes = axum::body::to_bytes(body, door.server.options.most_bytes).await;
    let bytes = bytes.map_err(|_| plain(StatusCode::PAYLOAD_TOO_LARGE, "The message is too long, or broke off."))?;
    match message::read(&bytes) {
        Ok(Message::Request(request)) => ask(door, principal, &parts.headers, request).await,
        Ok(Message::Notification { method, params }) => {
            if let Some(client) = door.session(&principal, &parts.headers)? {
                methods::note(&client, &method, &params);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Ok(Message::Answer { id, outcome }) => {
            let client = door.session(&principal, &parts.headers)?;
            client.ok_or_else(|| plain(StatusCode::BAD_REQUEST, "Nothing was asked."))?.answered(&id, outcome);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Err(unusable) => {
            let body = message::error(unusable.id.as_ref(), &unusable.fault);
            Ok((StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
    }
}

/// A request: finds out who asks and in which manner, then answers.
async fn ask(door: &Arc<Door>, principal: String, headers: &HeaderMap, request: Request) -> Result<Response, Refusal> {
    if guard::stands_alone(headers, &request) {
        let manner = introduced(headers, &request)?;
        let client = door.visitor(Visitor { principal, name: manner.client.clone() });
        return Ok(Reply::begin(client, manner, request).respond(true).await);
    }
    if request.method == "initialize" {
        let (id, client) = door.admit(principal);
        let manner = Manner::of_handshake(&request.params);
        let mut response = Reply::begin(client, manner, request).respond(false).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
        return Ok(response);
    }
    let client = door.session(&principal, headers)?;
    let client = client.ok_or_else(|| {
        let missing =
            Fault::invalid_request("Send the session's id in the header Mcp-Session-Id, or initialize first.");
        fault(Some(&request), StatusCode::BAD_REQUEST, &missing)
    })?;
    let manner = methods::manner_of(&client, &request);
    let manner = manner.map_err(|wrong| fault(Some(&request), StatusCode::BAD_REQUEST, &wrong))?;
    Ok(Reply::begin(client, manner, request).respond(false).await)
}

/// How a request that stands alone introduces itself; headers have to say the same as the body, which decides.
fn introduced(headers: &HeaderMap, request: &Request) -> Result<Manner, Refusal> {
    let refuse = |wrong: Fault| fault(Some(request), StatusCode::BAD_REQUEST, &wrong);
    guard::check_headers(headers, request).map_err(refuse)?;
    let manner = Manner::of_request(&request.params).map_err(refuse)?;
    manner.ok_or_else(|| refuse(era::unintroduced()))
}

/// A stream for what belongs to no request.
fn watch(door: &Arc<Door>, principal: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    let client = door.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST."))?;
    if !guard::takes_events(headers) {
        return Err(plain(StatusCode::NOT_ACCEPTABLE, "This is a stream of events; accept text/event-stream."));
    }
    Ok(stream::aside(&client))
}

/// The end of a session.
fn leave(door: &Arc<Door>, principal: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    let client = door.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "There is no session to end."))?;
    door.dismiss(headers);
    tokio::spawn(async move { client.leave().await });
    Ok(StatusCode::NO_CONTENT.into_response())
}
