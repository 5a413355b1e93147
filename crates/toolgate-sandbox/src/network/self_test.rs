//! Tests whether an allow list of hosts works on this machine: a host on the list is reached, and one that isn't is denied
//! and named in the denial. Both names are made up, and nothing leaves the machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolgate_contract::{BoxFuture, Denial, EgressPolicy, LaunchSpec, NetworkAccess};

use super::resolver::Resolver;
use crate::process::{Profile, Sandbox, SandboxOptions};

const LISTED: &str = "listed.invalid";
const UNLISTED: &str = "unlisted.invalid";
const ANSWER: &str = "HTTP/1.1 204 No Content";

/// Sends a request to the listed host, prints the first line of its answer, and tries the other host.
const SCRIPT: &str = "exec 3<>/dev/tcp/listed.invalid/80 && printf 'GET / HTTP/1.1\\r\\nHost: listed.invalid\\r\\n\\r\\n' >&3 \
                       && read -r answer <&3 && echo \"$answer\"; ! (exec 4<>/dev/tcp/unlisted.invalid/80)";

/// Tests an allow list under this profile. The error says in words what doesn't work.
pub async fn test_host_list(profile: &Profile) -> Result<(), String> {
    let server = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| format!("no server can be started on 127.0.0.1: {error}"))?;
    let address = server.local_addr().map_err(|error| format!("no server can be started on 127.0.0.1: {error}"))?;
    let serving = tokio::spawn(serve(server));
    let tried = attempt(profile, address).await;
    serving.abort();
    let (output, denials) = tried?;
    if !output.contains(ANSWER) {
        return Err("a host that is on the list wasn't reached".into());
    }
    match denials.iter().any(|denial| denial.missing_in_words().contains(UNLISTED)) {
        true => Ok(()),
        false => Err("a host that isn't on the list wasn't denied by name".into()),
    }
}

async fn attempt(profile: &Profile, server: SocketAddr) -> Result<(String, Vec<Denial>), String> {
    let options = SandboxOptions { warm: 0, resolver: Arc::new(FixedResolver(server)), ..SandboxOptions::default() };
    let sandbox = Sandbox::new(options).await.map_err(|error| error.to_string())?;
    let spec = LaunchSpec::shell(SCRIPT).network(NetworkAccess::Listed(Arc::new(SingleHostPolicy)));
    let child = sandbox.launch(profile, &spec).await.map_err(|error| error.to_string())?;
    let (output, _) = child.read_to_end().await;
    child.wait().await.map_err(|error| error.to_string())?;
    Ok((String::from_utf8_lossy(&output).into_owned(), child.network_denials()))
}

async fn serve(server: TcpListener) {
    while let Ok((mut client, _)) = server.accept().await {
        let _ = client.read(&mut [0; 1024]).await;
        let _ = client.write_all(format!("{ANSWER}\r\nConnection: close\r\n\r\n").as_bytes()).await;
    }
}

/// An allow list with one host.
#[derive(Debug)]
struct SingleHostPolicy;

impl EgressPolicy for SingleHostPolicy {
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
        match host {
            LISTED => Ok(()),
            other => Err(Denial::of_host(other, port, format!("{other} isn't on the list."), None)),
        }
    }

    fn arrive(&self, _: &str, _: u16, _: IpAddr) -> Result<(), Denial> {
        Ok(())
    }

    fn cleared(&self) -> Vec<(String, u16)> {
        Vec::new()
    }
}

/// Resolves every name to one address.
#[derive(Debug)]
struct FixedResolver(SocketAddr);

impl Resolver for FixedResolver {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(std::future::ready(Ok(vec![self.0])))
    }
}
