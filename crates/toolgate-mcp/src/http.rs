//! MCP over HTTP: one endpoint that takes messages by POST. An answer is plain JSON when nothing came before it, and a
//! stream of events otherwise. Clients with a handshake send their session's id in a header; the others are identified by
//! principal and name. Disconnecting cancels the request, since nothing could deliver its answer.

mod clients;
mod headers;
mod response;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use toolgate_contract::RefusedRequest;
use toolgate_runtime::Principal;

use self::clients::ClientRegistry;
use self::response::PendingResponse;
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

async fn handle(State(registry): State<Arc<ClientRegistry>>, request: HttpRequest) -> Response {
    let principal = match authorize(&registry, &request) {
        Ok(principal) => principal,
        Err(why) => return (StatusCode::FORBIDDEN, why).into_response(),
    };
    let answered = match request.method().clone() {
        Method::POST => post(&registry, &principal, request).await,
        Method::GET => open_stream(&registry, &principal, request.headers()),
        Method::DELETE => end_session(&registry, &principal, request.headers()),
        _ => Err(plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST.")),
    };
    answered.unwrap_or_else(|refusal| *refusal)
}

/// Decides who may send requests, and as whom.
fn authorize(registry: &ClientRegistry, request: &HttpRequest) -> Result<Principal, &'static str> {
    let principal = request.extensions().get::<Principal>().cloned();
    if registry.server.options.is_preauthenticated {
        return principal.ok_or("MCP needs a token.");
    }
    headers::check_origin(request.headers())?;
    Ok(principal.unwrap_or_else(|| Principal { name: "local".into(), session: None }))
}

/// A response that is sent before the request reaches a method.
type EarlyResponse = Box<Response>;

fn plain(status: StatusCode, why: &'static str) -> EarlyResponse {
    Box::new((status, why).into_response())
}

/// A refusal that belongs into the record: whoever serves this endpoint finds it in the response's extensions.
fn recorded(mut response: EarlyResponse, code: &str, request: String) -> EarlyResponse {
    let refusal = RefusedRequest { door: "mcp".into(), code: code.to_owned(), request, from: None, unrecorded: 0 };
    response.extensions_mut().insert(refusal);
    response
}

/// A protocol error with this status.
fn fault(request: Option<&JsonRpcRequest>, status: StatusCode, fault: &JsonRpcError) -> EarlyResponse {
    let body = json_rpc::error(request.map(|request| &request.id), fault);
    Box::new((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

async fn post(
    registry: &Arc<ClientRegistry>,
    principal: &Principal,
    request: HttpRequest,
) -> Result<Response, EarlyResponse> {
    let (parts, body) = request.into_parts();
    if !headers::is_json(&parts.headers) {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send application/json."));
    }
    let bytes = axum::body::to_bytes(body, registry.server.options.max_message_bytes).await;
    let bytes = bytes.map_err(|_| plain(StatusCode::PAYLOAD_TOO_LARGE, "The message is too long or incomplete."))?;
    match json_rpc::read(&bytes) {
        Ok(JsonRpcMessage::Request(request)) => ask(registry, principal, &parts.headers, request).await,
        Ok(JsonRpcMessage::Notification { method, params }) => {
            if let Some(client) = registry.session(principal, &parts.headers)? {
                methods::handle_notification(&client, &method, &params);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Ok(JsonRpcMessage::Answer { id, outcome }) => {
            let client = registry.session(principal, &parts.headers)?;
            client.ok_or_else(|| plain(StatusCode::BAD_REQUEST, "No request is pending."))?.resolve(&id, outcome);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Err(unusable) => {
            let body = json_rpc::error(unusable.id.as_ref(), &unusable.fault);
            Ok((StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response())
        }
    }
}

/// Answers a request in the protocol version that it uses.
async fn ask(
    registry: &Arc<ClientRegistry>,
    principal: &Principal,
    headers: &HeaderMap,
    request: JsonRpcRequest,
) -> Result<Response, EarlyResponse> {
    if headers::is_stateless(headers, &request) {
        let profile = declared_version(headers, &request)?;
        let client = registry.stateless_client(principal, &profile.client)?;
        return Ok(PendingResponse::begin(client, profile, request).respond(true).await);
    }
    if request.method == "initialize" {
        let (id, client) = registry.admit(principal)?;
        let profile = ClientProfile::of_handshake(&request.params);
        let mut response = PendingResponse::begin(client, profile, request).respond(false).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
        return Ok(response);
    }
    let client = registry.session(principal, headers)?;
    let client = client.ok_or_else(|| {
        let missing =
            JsonRpcError::invalid_request("Send the session's id in the header Mcp-Session-Id, or initialize first.");
        fault(Some(&request), StatusCode::BAD_REQUEST, &missing)
    })?;
    let profile = methods::profile_of(&client, &request);
    let profile = profile.map_err(|wrong| fault(Some(&request), StatusCode::BAD_REQUEST, &wrong))?;
    Ok(PendingResponse::begin(client, profile, request).respond(false).await)
}

/// The profile in a request without a handshake. The body decides; headers have to agree with it.
fn declared_version(headers: &HeaderMap, request: &JsonRpcRequest) -> Result<ClientProfile, EarlyResponse> {
    let refuse = |wrong: JsonRpcError| fault(Some(request), StatusCode::BAD_REQUEST, &wrong);
    headers::check_headers(headers, request)
        .map_err(|wrong| recorded(refuse(wrong), "header_mismatch", headers::described(request)))?;
    let profile = ClientProfile::of_request(&request.params).map_err(refuse)?;
    profile.ok_or_else(|| refuse(protocol_version::missing_version()))
}

/// Opens the stream for messages that belong to no request.
fn open_stream(
    registry: &Arc<ClientRegistry>,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Response, EarlyResponse> {
    let client = registry.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST."))?;
    if !headers::takes_events(headers) {
        return Err(plain(StatusCode::NOT_ACCEPTABLE, "This is an event stream; accept text/event-stream."));
    }
    Ok(response::notification_stream(&client))
}

/// Ends a session.
fn end_session(
    registry: &Arc<ClientRegistry>,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Response, EarlyResponse> {
    let client = registry.session(principal, headers)?;
    let client = client.ok_or_else(|| plain(StatusCode::METHOD_NOT_ALLOWED, "There is no session to end."))?;
    registry.remove_session(headers);
    tokio::spawn(async move { client.disconnect().await });
    Ok(StatusCode::NO_CONTENT.into_response())
}
