//! `toolgate serve`: the gate for other programs.

mod http;

use anyhow::Result;
use clap::Args;

use super::Setting;
use crate::exit::Exit;

/// Serve this workspace's tools to other programs.
///
/// Listens on loopback, for HTTP. Every request needs the token from the file that is named when the server starts;
/// `GET /openapi.json` describes what can be asked. Ctrl-C or SIGTERM ends every call and its processes, finishes the
/// record and stops; a second one leaves at once.
///
/// Examples:
///   toolgate serve
///   toolgate serve --listen 127.0.0.1:9000
///   curl -H "Authorization: Bearer $(cat ~/.local/state/toolgate/http.token)" \
///        -H 'Content-Type: application/json' -d '{"name":"list"}' http://127.0.0.1:8731/v1/calls
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    #[command(flatten)]
    http: http::Http,
}

impl Serve {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        self.http.run(setting)
    }
}
