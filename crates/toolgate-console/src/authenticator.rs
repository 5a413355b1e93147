//! Authentication, before every route: the `Host` (against DNS rebinding), the `Origin` (against cross-site requests) and
//! the token. Refused requests are recorded.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use toolgate_contract::RefusedRequest;

use crate::console_options::ConsoleOptions;
use crate::http_session::Caller;
use crate::page;
use crate::problem::Problem;
use crate::server_state::ServerState;
use crate::token::{constant_time_eq, digest};

/// The address that a connection came from.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Routes that need no token.
const OPEN: &[&str] = &["/health"];

/// Where a browser signs in, with a one-time link in place of a token.
const SIGN_IN: &str = "/v1/console/session";

/// The header that the page sends with every request that changes something. Pages of other origins can't send it without
/// being allowed to first.
const PAGE_HEADER: &str = "x-toolgate-console";

/// The caller is a browser that is signed in.
#[derive(Clone, Copy)]
pub(crate) struct SignedIn;

/// The content security policy of everything but the page: data that a browser shows as a document can do nothing.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Query parameters that usually hold a token. Logs and browser histories keep URLs.
const TOKEN_NAMES: &[&str] =
    &["token", "access_token", "auth_token", "api_key", "apikey", "key", "bearer", "authorization"];

/// The names under which this server may be called, and the pages that may call it.
#[derive(Debug, Clone)]
pub struct AllowedOrigins {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl AllowedOrigins {
    /// What a server at this address allows: on loopback its usual names, elsewhere its address, and these additions.
    pub fn at(address: SocketAddr, more_hosts: &[String], more_origins: &[String]) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        hosts.extend(more_hosts.iter().map(|host| host.to_ascii_lowercase()));
        // Clients leave out a scheme's default port.
        for usual in [":80", ":443"] {
            hosts.extend(hosts.clone().iter().filter_map(|host| host.strip_suffix(usual).map(str::to_owned)));
        }
        let own = hosts.iter().flat_map(|host| [format!("http://{host}"), format!("https://{host}")]);
        let origins = own.chain(more_origins.iter().map(|origin| origin.to_ascii_lowercase())).collect();
        Self { hosts, origins }
    }

    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = match (named.next().map(|value| value.to_str()), named.next()) {
            (Some(Ok(host)), None) => host.to_ascii_lowercase(),
            _ => return Err(wrong_host("no single, readable `Host`")),
        };
        let also = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        match self.hosts.contains(&host) && also.is_none_or(|also| also == host) {
            true => Ok(()),
            false => Err(wrong_host("another name than this server's")),
        }
    }

    /// Checks that a request of a browser that changes something comes from the page itself.
    fn check_page(&self, headers: &HeaderMap, method: &Method) -> Result<(), Problem> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let has_header = headers.get(PAGE_HEADER).is_some_and(|value| value == "1");
        match headers.contains_key(header::ORIGIN) && has_header {
            true => Ok(()),
            false => {
                let hint =
                    "A program sends `Authorization: Bearer …`; a page sends `Origin` and `X-Toolgate-Console: 1`.";
                let message = "A browser changes something only through the console's own page.";
                Err(Problem::new(StatusCode::FORBIDDEN, "not_from_page", message, hint))
            }
        }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        for origin in headers.get_all(header::ORIGIN) {
            let is_known = origin.to_str().is_ok_and(|origin| self.origins.contains(&origin.to_ascii_lowercase()));
            if !is_known {
                return Err(cross_origin());
            }
        }
        // Browsers set this header. Another port of this machine is `same-site`, and still another origin.
        let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
        match site {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if headers.contains_key(header::ORIGIN) => Ok(()),
            Some(_) => Err(cross_origin()),
        }
    }
}

fn wrong_host(why: &str) -> Problem {
    let hint = "Call the server by the address that `toolgate serve` printed, or add a name with `--allow-host`.";
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", format!("The request has {why}."), hint)
}

fn cross_origin() -> Problem {
    let hint = "Call from a program, or add the page's origin with `--allow-origin`.";
    let message = "The request comes from a page of another origin.";
    Problem::new(StatusCode::FORBIDDEN, "cross_origin", message, hint)
}

/// Passes a request on with its caller, or refuses and records it.
pub(crate) async fn authenticate(State(state): State<Arc<ServerState>>, mut request: Request, next: Next) -> Response {
    let admitted = admit(&state, &request);
    match admitted {
        Ok(admitted) => {
            if let AdmittedRequest::SignedIn = admitted {
                request.extensions_mut().insert(SignedIn);
            }
            if let Some(caller) = admitted.caller() {
                request.extensions_mut().insert(caller.principal());
                request.extensions_mut().insert(caller);
            }
            let from = request.extensions().get::<Peer>().map(|peer| peer.0.ip().to_string());
            let mut response = next.run(request).await;
            if let Some(refusal) = response.extensions_mut().remove::<RefusedRequest>() {
                state.refusals.keep(&state.owner.session, RefusedRequest { from, ..refusal });
            }
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
            let policy = header::HeaderValue::from_static(DATA_POLICY);
            headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
            headers.entry(header::CACHE_CONTROL).or_insert(header::HeaderValue::from_static("no-store"));
            response
        }
        Err(problem) => {
            let from = request.extensions().get::<Peer>().map(|peer| peer.0.ip().to_string());
            state.record_refusal(&problem, request.method(), request.uri(), from);
            problem.into_response()
        }
    }
}

/// A request that may go on.
enum AdmittedRequest {
    /// To a route that is open to all.
    Open,
    /// With a token.
    Token(Caller),
    /// With the cookie of a browser that is signed in.
    SignedIn,
}

impl AdmittedRequest {
    fn caller(self) -> Option<Caller> {
        match self {
            Self::Open => None,
            Self::Token(caller) => Some(caller),
            Self::SignedIn => Some(Caller::Owner),
        }
    }
}

fn admit(state: &ServerState, request: &Request) -> Result<AdmittedRequest, Problem> {
    let (headers, uri, method) = (request.headers(), request.uri(), request.method());
    state.allowed_origins.check_host(headers, uri)?;
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    // A link to the page may be followed from anywhere: the document holds nothing, and cookies stay away.
    let is_followed_link = uri.path() == "/" && is_read && is_navigation(headers);
    if !is_followed_link {
        state.allowed_origins.check_origin(headers)?;
    }
    check_address(state, uri)?;
    if OPEN.contains(&uri.path()) || (is_read && page::is_page(uri.path())) {
        return Ok(AdmittedRequest::Open);
    }
    if uri.path() == SIGN_IN && *method == Method::POST {
        state.allowed_origins.check_page(headers, method)?;
        return Ok(AdmittedRequest::Open);
    }
    if !headers.contains_key(header::AUTHORIZATION) && is_signed_in(state, headers) {
        state.allowed_origins.check_page(headers, method)?;
        return Ok(AdmittedRequest::SignedIn);
    }
    caller(state, headers).map(AdmittedRequest::Token)
}

/// Whether a person follows a link to a whole page, as opposed to a frame or a script.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, expected: &str| headers.get(name).is_some_and(|value| value == expected);
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// Whether the request has the cookie of a session of the console that hasn't ended.
fn is_signed_in(state: &ServerState, headers: &HeaderMap) -> bool {
    let Some(console) = &state.console else { return false };
    let now = state.workspace.clock.now();
    console_token(headers, console)
        .is_some_and(|token| console.access.session(token, &console.workspace(), now).is_some())
}

/// The token in the console's cookie; none where there are several.
pub(crate) fn console_token<'a>(headers: &'a HeaderMap, console: &ConsoleOptions) -> Option<&'a str> {
    let name = console.cookie_name();
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let mut own = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    match (own.next(), own.next()) {
        (Some(token), None) => Some(token),
        _ => None,
    }
}

/// Refuses a token in a URL, valid or not: URLs end up in logs and browser histories.
fn check_address(state: &ServerState, uri: &Uri) -> Result<(), Problem> {
    let query = uri.query().unwrap_or_default();
    let names = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let mut words = uri.path().split('/').chain(query.split(['&', '=']));
    let is_named = names.map(str::to_ascii_lowercase).any(|name| TOKEN_NAMES.contains(&name.as_str()));
    let holds_one = words.any(|word| word.starts_with("tgt_") || state.caller_by_token(word).is_some());
    if !is_named && !holds_one {
        return Ok(());
    }
    let hint = "Send it as `Authorization: Bearer …`. If it was part of a URL before, make a new one.";
    Err(Problem::new(StatusCode::BAD_REQUEST, "token_in_url", "A token must not be part of a URL.", hint))
}

fn caller(state: &ServerState, headers: &HeaderMap) -> Result<Caller, Problem> {
    let refused = |message: &str| {
        let hint = "Send `Authorization: Bearer TOKEN`; `toolgate serve` says where the owner's token is.";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message, hint)
    };
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else {
        return Err(refused("Exactly one token is required."));
    };
    let text = value.to_str().map_err(|_| refused("The token is not valid text."))?;
    let token = match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => return Err(refused("Only `Bearer` tokens are accepted.")),
    };
    state.caller_by_token(token).ok_or_else(|| refused("The token is unknown."))
}

impl ServerState {
    fn caller_by_token(&self, token: &str) -> Option<Caller> {
        let digest = digest(token);
        match constant_time_eq(&digest, &self.owner_token) {
            true => Some(Caller::Owner),
            false => self.clients.with_token(&digest).map(Caller::Session),
        }
    }

    /// Records a refused request: of the URL only the path, and only if it holds no token.
    pub(crate) fn record_refusal(&self, problem: &Problem, method: &Method, uri: &Uri, from: Option<String>) {
        self.metrics.refused(problem.code);
        let path: String = uri.path().chars().take(200).collect();
        let path = if problem.code == "token_in_url" { "(a URL with a token)".into() } else { path };
        self.refusals.record(&self.owner.session, problem.code, format!("{method} {path}"), from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn only_this_servers_own_names_are_answered() {
        let allowed_origins = AllowedOrigins::at("127.0.0.1:8731".parse().unwrap(), &["Gate.test:8731".into()], &[]);
        let uri: Uri = "/v1/tools".parse().unwrap();
        for (host, is_ours) in [
            ("127.0.0.1:8731", true),
            ("localhost:8731", true),
            ("LOCALHOST:8731", true),
            ("[::1]:8731", true),
            ("gate.test:8731", true),
            ("localhost", false),
            ("localhost:80", false),
            ("evil.example:8731", false),
            ("127.0.0.1.nip.io:8731", false),
            ("localhost.evil.example:8731", false),
            ("", false),
        ] {
            assert_eq!(allowed_origins.check_host(&headers(&[("host", host)]), &uri).is_ok(), is_ours, "{host}");
        }
        assert!(allowed_origins.check_host(&headers(&[]), &uri).is_err(), "no host");
        let two = headers(&[("host", "localhost:8731"), ("host", "evil.example")]);
        assert!(allowed_origins.check_host(&two, &uri).is_err(), "two hosts");
        let elsewhere: Uri = "http://evil.example/v1/tools".parse().unwrap();
        assert!(
            allowed_origins.check_host(&headers(&[("host", "localhost:8731")]), &elsewhere).is_err(),
            "absolute form"
        );
    }

    #[test]
    fn only_pages_of_this_server_may_call_it() {
        let allowed_origins =
            AllowedOrigins::at("127.0.0.1:8731".parse().unwrap(), &[], &["https://console.test".into()]);
        let table: &[(&[(&'static str, &str)], bool)] = &[
            (&[], true),
            (&[("origin", "http://localhost:8731")], true),
            (&[("origin", "http://127.0.0.1:8731"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "https://console.test"), ("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("origin", "null")], false),
            (&[("origin", "http://localhost:3000")], false),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "http://localhost:8731"), ("origin", "http://evil.example")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ];
        for (pairs, is_ours) in table {
            assert_eq!(allowed_origins.check_origin(&headers(pairs)).is_ok(), *is_ours, "{pairs:?}");
        }
    }
}
