//! How much the server carries, as the command line says it.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use toolgate_console::HttpLimits;

/// What the HTTP server carries at a time. What is over it is answered with 429, 503 or 413.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct ServerLimitArgs {
    /// Connections at a time.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().connections, value_parser = some())]
    max_connections: usize,
    /// Sessions at a time.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().sessions, value_parser = some())]
    max_sessions: usize,
    /// Calls at a time, of all sessions together.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().calls, value_parser = some())]
    max_calls: usize,
    /// Calls at a time of one session, or of one client of MCP.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().calls_per_session, value_parser = some())]
    pub(super) max_calls_per_session: usize,
    /// Bytes of a request's body, or of a message of MCP.
    #[arg(long, value_name = "BYTES", default_value_t = HttpLimits::default().body_bytes, value_parser = some())]
    pub(super) max_body_bytes: usize,
}

/// At least one, and no more than any machine carries.
fn some() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1 << 30)
}

impl ServerLimitArgs {
    pub(super) fn limits(&self) -> HttpLimits {
        HttpLimits {
            connections: self.max_connections,
            sessions: self.max_sessions,
            calls: self.max_calls,
            calls_per_session: self.max_calls_per_session,
            body_bytes: self.max_body_bytes,
            ..HttpLimits::default()
        }
    }
}
