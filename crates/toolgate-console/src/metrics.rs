//! Metrics for Prometheus: calls by tool and outcome, their duration, refused requests, and what waits.

use std::collections::HashSet;
use std::fmt::Write;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use toolgate_contract::Reply;

/// The metrics of one server.
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    seconds: Family<ToolLabels, Histogram>,
    refused: Family<RefusalLabels, Counter>,
    /// Connections that are open.
    pub(crate) connections: Gauge,
    running: Gauge,
    sessions: Gauge,
    waiting: Gauge,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    /// `ok`, or the error's code.
    outcome: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    code: &'static str,
}

/// The gauges at this moment.
pub(crate) struct GaugeValues {
    pub(crate) running: usize,
    pub(crate) sessions: usize,
    pub(crate) waiting: usize,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("toolgate");
        let calls = Family::default();
        registry.register("calls", "Calls that ended, by tool and outcome", calls.clone());
        // From a millisecond to about a quarter of an hour.
        let buckets = || Histogram::new(exponential_buckets(0.001, 4.0, 11));
        let seconds = Family::new_with_constructor(buckets as fn() -> Histogram);
        registry.register("call_duration_seconds", "How long calls took", seconds.clone());
        let refused = Family::default();
        registry.register("requests_refused", "Requests refused before routing, by reason", refused.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let connections = gauge("connections", "Connections that are open");
        let running = gauge("calls_running", "Calls that are running");
        let sessions = gauge("sessions", "Sessions that are open");
        let waiting = gauge("approvals_waiting", "Calls that wait for an approval");
        Self { registry, calls, seconds, refused, connections, running, sessions, waiting }
    }

    /// Counts a call that has ended.
    pub(crate) fn call(&self, tool: String, reply: &Reply) {
        let outcome = reply.error.as_ref().map_or("ok", |error| error.code.as_str());
        self.seconds.get_or_create(&ToolLabels { tool: tool.clone() }).observe(reply.duration_ms as f64 / 1000.0);
        self.calls.get_or_create(&CallLabels { tool, outcome }).inc();
    }

    /// Counts a refused request.
    pub(crate) fn refused(&self, code: &'static str) {
        self.refused.get_or_create(&RefusalLabels { code }).inc();
    }

    /// All metrics, as text.
    pub(crate) fn text(&self, present: &GaugeValues, format: MetricsFormat) -> String {
        let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.running.set(whole(present.running));
        self.sessions.set(whole(present.sessions));
        self.waiting.set(whole(present.waiting));
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = encode(&mut text, &self.registry);
        match format {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Prometheus => prometheus_text(&text),
        }
    }
}

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// The Prometheus text format 0.0.4, which every scraper reads, and `promtool check metrics`.
    Prometheus,
    /// OpenMetrics 1.0, for whoever asks for it.
    OpenMetrics,
}

impl MetricsFormat {
    /// The format for a client that accepts these media types.
    pub(crate) fn accepted(accept: &str) -> Self {
        let asks = |range: &str| range.split(';').next().unwrap_or_default().trim() == "application/openmetrics-text";
        if accept.split(',').any(asks) { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// OpenMetrics in the Prometheus text format. There a counter is declared under the name that its samples have, with
/// `_total`, and there are neither units nor an end mark.
fn prometheus_text(open_metrics: &str) -> String {
    let counter = |line: &'_ str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_owned());
    let counters: HashSet<String> = open_metrics.lines().filter_map(counter).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        let written = match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF" | "UNIT"), ..) => continue,
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(name) => {
                writeln!(text, "# {kind} {name}_total {rest}")
            }
            _ => writeln!(text, "{line}"),
        };
        debug_assert!(written.is_ok(), "writing to a string can't fail");
    }
    text
}
