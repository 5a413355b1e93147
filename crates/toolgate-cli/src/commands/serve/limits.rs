//! The limits of the server, on the command line.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use toolgate_console::HttpLimits;

/// Limits of the HTTP server. Requests over a limit are answered with 429, 503 or 413.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct ServerLimitArgs {
    /// Connections at a time.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().connections, value_parser = at_least_one())]
    max_connections: usize,
    /// Sessions at a time.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().sessions, value_parser = at_least_one())]
    max_sessions: usize,
    /// Calls at a time, of all sessions together.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().calls, value_parser = at_least_one())]
    max_calls: usize,
    /// Calls at a time of one session, or of one client of MCP.
    #[arg(long, value_name = "COUNT", default_value_t = HttpLimits::default().calls_per_session, value_parser = at_least_one())]
    pub(super) max_calls_per_session: usize,
    /// Bytes of a request's body, or of a message of MCP.
    #[arg(long, value_name = "BYTES", default_value_t = HttpLimits::default().body_bytes, value_parser = at_least_one())]
    pub(super) max_body_bytes: usize,
}

/// At least one, with a generous upper bound.
fn at_least_one() -> RangedU64ValueParser<usize> {
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
