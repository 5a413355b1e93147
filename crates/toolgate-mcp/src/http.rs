//! MCP over HTTP: one endpoint that takes messages by POST. An answer is plain JSON when nothing came before it, and a
//! stream of events otherwise. Clients with a handshake have a session in a header; the others are known by their
//! principal and their name. Whoever hangs up ends what they had asked for: nothing could bring them the answer.

mod clients;
mod headers;
mod response;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use toolgate_runtime::Principal;

use self::clients::ClientRegistry;
use self::response::PendingResponse;
use crate::backend::ClientIdentity;
use crate::json_rpc::{self, JsonRpcMessage, JsonRpcRequest};
use crate::json_rpc_error::JsonRpcError;
use crate::methods;
use crate::protocol_version::{self, ClientProfile};
use crate::server::McpServer;

const SESSION: &str = "mcp-session-id";

/// The endpoint. Nest it where clients look for it, usually `/mcp`.
pub fn service(server: Arc<McpServer>) -> Router {
    Router::new().fallback(handle).with_state(Arc::new(ClientRegistry::new(server)))
}

async fn handle(State(door): State<Arc<ClientRegistry>>, request: HttpRequest) -> Response {
    let principal = match authorize(&door, &request) {
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
fn authorize(door: &ClientRegistry, request: &HttpRequest) -> Result<String, &'static str> {
    let principal = request.extensions().get::<Principal>().map(|principal| principal.0.clone());
    if door.server.options.is_behind_door {
        return principal.ok_or("This token isn't good for MCP. Use the owner's.");
    }
    headers::check_origin(request.headers())?;
    Ok(principal.unwrap_or_else(|| "local".into()))
}

/// An answer that ends the request early.
type EarlyResponse = Box<Response>;

fn plain(status: StatusCode, why: &'static str) -> EarlyResponse {
    Box::new((status, why).into_response())
}

/// A protocol error, with the status that the protocol asks for.
fn fault(request: Option<&JsonRpcRequest>, status: StatusCode, fault: &JsonRpcError) -> EarlyResponse {
    let body = json_rpc::error(request.map(|request| &request.id), fault);
    Box::new((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

async fn post(door: &Arc<ClientRegistry>, principal: String, request: HttpRequest) -> Result<Response, EarlyResponse> {
    let (parts, body) = request.into_parts();
    if !headers::is_json(&parts.headers) {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send application/json."));
    }
    let bytes = axum::body::to_bytes(body, door.server.options.most_bytes).await;
    let bytes = bytes.map_err(|_| plain(StatusCode::PAYLOAD_TOO_LARGE, "The message is too long, or broke off."))?;
    match json_rpc::read(&bytes) {
        Ok(JsonRpcMessage::Request(request)) => ask(door, principal, &parts.headers, request).await,
        Ok(JsonRpcMessage::Notification { method, params }) => {
            if let Some(client) = door.session(&principal, &parts.headers)? {
                methods::note(&client, &method, &params);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Ok(JsonRpcMessage::Answer { id, outcome }) => {
            let client = door.session(&principal, &parts.headers)?;
            client.ok_or_else(|| plain(StatusCode::BAD_REQUEST, "Nothing was asked."))?.answered(&id, outcome);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Err(unusable) => {
            let body = json_rpc::error(unusable.id.as_ref(), &unusable.fault);
            Ok((StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
    }
}

/// A request: finds out who asks and in which manner, then answers.
async fn ask(
    door: &Arc<ClientRegistry>,
    principal: String,
    headers: &HeaderMap,
    request: JsonRpcRequest,
) -> Result<Response, EarlyResponse> {
    if headers::is_stateless(headers, &request) {
        let profile = declared_version(headers, &request)?;
        let client = door.visitor(ClientIdentity { principal, name: profile.client.clone() });
        return Ok(PendingResponse::begin(client, profile, request).respond(true).await);
    }
    if request.method == "initialize" {
        let (id, client) = door.admit(principal);
        let profile = ClientProfile::of_handshake(&request.params);
        let mut response = PendingResponse::begin(client, profile, request).respond(false).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
        return Ok(response);
    }
    let client = door.session(&principal, headers)?;
    let client = client.ok_or_else(|| {
        let missing =
            JsonRpcError::invalid_request("Send the session's id in the header Mcp-Session-Id, or initialize first.");
        fault(Some(&request), StatusCode::BAD_REQUEST, &missing)
    })?;
    let profile = methods::protocol_version_of(&client, &request);
    let profile = profile.map_err(|wrong| fault(Some(&request), StatusCode::BAD_REQUEST, &wrong))?;
    Ok(PendingResponse::begin(client, profile, request).respond(false).await)
}

/// How a request that stands alone introduces itself; headers have to say the same as the body, which decides.
fn declared_version(headers: &HeaderMap, request: &JsonRpcRequest) -> Result<ClientProfile, EarlyResponse> {
    let refuse = |wrong: JsonRpcError| fault(Some(request), StatusCode::BAD_REQUEST, &wrong);
    headers::check_headers(headers, request).map_err(refuse)?;
    let profile = ClientProfile::of_request(&request.params).map_err(refuse)?;
    profile.ok_or_else(|| refuse(protocol_version::missing_version()))
}

/// A stream for what belongs to no request.
fn watch(door: &Arc<ClientRegistry>, principal: &str, headers: &HeaderMap) -> Result<Response, EarlyResponse> {
    let client = door.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST."))?;
    if !headers::takes_events(headers) {
        return Err(plain(StatusCode::NOT_ACCEPTABLE, "This is a stream of events; accept text/event-stream."));
    }
    Ok(response::aside(&client))
}

/// The end of a session.
fn leave(door: &Arc<ClientRegistry>, principal: &str, headers: &HeaderMap) -> Result<Response, EarlyResponse> {
    let client = door.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "There is no session to end."))?;
    door.remove_session(headers);
    tokio::spawn(async move { client.leave().await });
    Ok(StatusCode::NO_CONTENT.into_response())
}
