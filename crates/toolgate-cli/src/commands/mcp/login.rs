//! `toolgate mcp login`: gets a token for a server elsewhere, by a login of the person at whoever gives tokens for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use toolgate_config::McpServerConfig;
use toolgate_gateway::{
    AuthorizationServer, ClientRegistration, LoginAttempt, TokenStore, discover_issuer, discover_server, host_of,
    register,
};
use toolgate_journal::new_token;
use toolgate_policy::{CompiledConfig, Policy};
use toolgate_runtime::CallEgress;
use toolgate_web::{FetchLimits, WebClient};

use super::KnownServer;
use crate::commands::{Invocation, block_on};
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, confirm, paint, plain};

/// How long the person may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes of the request that the browser comes back with.
const LARGEST_REQUEST: u64 = 16 * 1024;

/// Log in to a server elsewhere.
///
/// The server names who gives tokens for it. You agree to that, open the address that is shown, and log in there; nothing is opened for
/// you. The token is kept in your own state directory, never in a workspace, and is renewed when it expires.
///
/// Examples:
///   toolgate mcp login issues
///   toolgate mcp login issues --scope "read write"
///   toolgate mcp login issues --forget
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct LoginArgs {
    /// The server's name.
    name: String,
    /// What the token is to allow, in the server's words.
    #[arg(long)]
    scope: Option<String>,
    /// As whom Toolgate is known there, where no program can introduce itself.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Agree to whoever the server names.
    #[arg(long, short)]
    yes: bool,
    /// Forget the token instead.
    #[arg(long, conflicts_with_all = ["scope", "client_id", "yes"])]
    forget: bool,
}

impl LoginArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let server = KnownServer::find(invocation, &self.name)?;
        let Some(url) = server.config.url.clone() else {
            anyhow::bail!("`{}` is a program on this machine; only servers elsewhere have logins", self.name);
        };
        let tokens = invocation.location.server_tokens(&url)?;
        if self.forget {
            let had = tokens.forget()?;
            match invocation.json {
                true => outln!("{}", json!({ "name": self.name, "forgotten": had })),
                false => outln!("{}", if had { "The token is forgotten." } else { "There was no token." }),
            }
            return Ok(Exit::Ok);
        }
        let CompiledConfig { policy, .. } = invocation.location.load()?;
        let flow =
            LoginFlow { args: &self, url, config: server.config, policy: Arc::new(policy), json: invocation.json };
        block_on(flow.run(tokens.as_ref()))??;
        match invocation.json {
            true => outln!("{}", json!({ "name": self.name, "logged_in": true })),
            false => outln!("Logged in. Look at its tools: toolgate mcp approve {}", self.name),
        }
        Ok(Exit::Ok)
    }
}

/// One login.
struct LoginFlow<'a> {
    args: &'a LoginArgs,
    url: String,
    config: McpServerConfig,
    policy: Arc<Policy>,
    json: bool,
}

impl LoginFlow<'_> {
    async fn run(&self, tokens: &dyn TokenStore) -> Result<()> {
        let web = WebClient::new(FetchLimits::default());
        let (issuer, resource, wanted) = discover_issuer(&self.url, &web, &self.egress(&[])).await?;
        self.agree(&issuer)?;
        let issuers_host: Vec<(String, u16)> = host_of(&issuer).into_iter().collect();
        let egress = self.egress(&issuers_host);
        let server = discover_server(&issuer, &web, &egress).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("nothing can be listened to on this machine")?;
        let redirect_uri = format!("http://127.0.0.1:{}/callback", listener.local_addr()?.port());
        let client = match &self.args.client_id {
            Some(id) => ClientRegistration { client_id: id.clone(), client_secret: None },
            None => register(&server, &redirect_uri, &web, &egress).await?,
        };
        let attempt = attempt(server, resource, client, redirect_uri)?;
        let scope = self.args.scope.clone().or(wanted);
        self.show(&attempt.address(scope.as_deref())?);
        let came_back = tokio::time::timeout(LOGIN_TIMEOUT, came_back(&listener)).await;
        let mut came_back = came_back.context("nobody logged in for ten minutes")??;
        let token = match attempt.code(&came_back.parameters) {
            Ok(code) => attempt.exchange(&code, &web, &egress).await,
            Err(error) => Err(error),
        };
        came_back.answer(token.is_ok()).await;
        let _held = tokens.lock()?;
        Ok(tokens.save(&token?)?)
    }

    /// The server's own host, those of its configuration, and these.
    fn egress(&self, more: &[(String, u16)]) -> CallEgress {
        let configured = self.config.hosts.iter().filter_map(|host| host_of(&format!("https://{host}")));
        let cleared = host_of(&self.url).into_iter().chain(configured).chain(more.iter().cloned()).collect();
        CallEgress::new(Arc::clone(&self.policy), cleared)
    }

    fn agree(&self, issuer: &str) -> Result<()> {
        let name = &self.args.name;
        if !self.json {
            errln!("{name} says that {} gives tokens for it.", paint(BOLD, plain(issuer)));
        }
        if self.args.yes || confirm("Log in there?", &format!("toolgate mcp login {name} --yes"))? {
            return Ok(());
        }
        anyhow::bail!("You didn't agree, so nothing was sent there")
    }

    fn show(&self, address: &str) {
        match self.json {
            true => outln!("{}", json!({ "open": address })),
            false => {
                errln!("Open this address and log in there:");
                outln!("{}", plain(address));
            }
        }
    }
}

fn attempt(
    server: AuthorizationServer,
    resource: String,
    client: ClientRegistration,
    redirect_uri: String,
) -> Result<LoginAttempt> {
    let random = || new_token().context("there is no randomness");
    Ok(LoginAttempt { server, resource, client, redirect_uri, state: random()?, verifier: random()? })
}

/// What the person's browser came back with.
struct ReturnedBrowser {
    stream: TcpStream,
    parameters: BTreeMap<String, String>,
}

impl ReturnedBrowser {
    async fn answer(&mut self, is_done: bool) {
        let words = match is_done {
            true => "You are logged in. You can close this page.",
            false => "The login failed; the program says why. You can close this page.",
        };
        respond(&mut self.stream, "200 OK", words).await;
    }
}

/// Waits for the browser. Whatever else asks here is told that there is nothing.
async fn came_back(listener: &TcpListener) -> Result<ReturnedBrowser> {
    loop {
        let (mut stream, _) = listener.accept().await.context("the browser can't be waited for")?;
        let reading = tokio::time::timeout(Duration::from_secs(10), request_line(&mut stream));
        let line = reading.await.ok().and_then(Result::ok).unwrap_or_default();
        let target = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
        if let Some(query) = target.and_then(|target| target.strip_prefix("/callback?")) {
            let parameters = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            return Ok(ReturnedBrowser { stream, parameters });
        }
        respond(&mut stream, "404 Not Found", "There is nothing here.").await;
    }
}

/// The first line of a request. The rest of its head is read as well: closing a connection with something unread in it resets it, and
/// the browser would show an error instead of the answer.
async fn request_line(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut lines = BufReader::new(stream.take(LARGEST_REQUEST)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    Ok(first)
}

async fn respond(stream: &mut TcpStream, status: &str, words: &str) {
    let head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close";
    let text = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{words}", words.len());
    // A browser that is gone doesn't change whether the login worked.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
