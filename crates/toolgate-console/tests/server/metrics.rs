//! Metrics: what is counted, in a text that Prometheus reads.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::test_server::{ConsoleTestServer, OWNER};

/// A server with something to count.
async fn busy_server() -> ConsoleTestServer {
    let server = ConsoleTestServer::start();
    server.call(OWNER, "list", json!({})).await;
    server.call(OWNER, "read", json!({ "path": "none" })).await;
    server.call(OWNER, "made-up", json!({})).await;
    server.ask(None, "GET", "/v1/tools", &[], None).await;
    server
}

/// The metrics for a client that accepts these media types, with the media type that it got.
async fn scrape(server: &ConsoleTestServer, accept: Option<&str>) -> (String, String) {
    let headers: Vec<(&str, &str)> = accept.map(|accept| ("accept", accept)).into_iter().collect();
    let answer = server.ask(Some(OWNER), "GET", "/metrics", &headers, None).await;
    let kind = answer.header("content-type").unwrap().to_owned();
    (kind, String::from_utf8(answer.body).unwrap())
}

#[tokio::test]
async fn metrics_count_calls_and_refusals() {
    let server = busy_server().await;
    let (kind, metrics) = scrape(&server, None).await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "# TYPE toolgate_calls_total counter",
        "toolgate_calls_total{tool=\"list\",outcome=\"ok\"} 1",
        "toolgate_calls_total{tool=\"read\",outcome=\"not_found\"} 1",
        "toolgate_calls_total{tool=\"unknown\",outcome=\"unknown_tool\"} 1",
        "toolgate_requests_refused_total{code=\"unauthorized\"} 1",
        "toolgate_calls_running 0",
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line} is missing in\n{metrics}");
    }
    check_prometheus_text(&metrics);
}

#[tokio::test]
async fn a_scraper_that_asks_for_openmetrics_gets_it() {
    let server = busy_server().await;
    let accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                  text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let (kind, metrics) = scrape(&server, Some(accept)).await;
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(metrics.contains("# TYPE toolgate_calls counter\n") && metrics.ends_with("# EOF\n"), "{metrics}");
}

#[tokio::test]
async fn promtool_finds_no_fault() {
    let server = busy_server().await;
    let (_, metrics) = scrape(&server, None).await;
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return toolgate_testkit::skip("no-promtool", "promtool is not installed (`cargo xtask setup`)");
        }
        Err(error) => panic!("promtool can't be started: {error}"),
    };
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = child.wait_with_output().unwrap();
    let said = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success() && said.is_empty(), "{}\n{metrics}", String::from_utf8_lossy(&said));
}

/// Checks the text by the rules of the format: each metric has one HELP and one TYPE, both before its samples, which come
/// together; the names of samples fit the type; no sample comes twice; values are numbers; buckets are cumulative.
fn check_prometheus_text(text: &str) {
    assert!(text.ends_with('\n'), "the last line ends");
    let (mut helps, mut types) = (HashSet::new(), HashMap::new());
    let (mut samples, mut closed, mut current) = (HashSet::new(), HashSet::new(), String::new());
    let mut buckets: HashMap<String, f64> = HashMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let family = match words[..] {
            ["#", "HELP", name, help] => {
                assert!(helps.insert(name.to_owned()) && !help.is_empty(), "{line}");
                name.to_owned()
            }
            ["#", "TYPE", name, kind] => {
                assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                name.to_owned()
            }
            _ => {
                let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
                assert!(samples.insert(series.to_owned()), "twice: {line}");
                let name = series.split('{').next().unwrap();
                let family = family_of(name, &types).unwrap_or_else(|| panic!("no TYPE before: {line}"));
                check_labels(series);
                if name.ends_with("_bucket") {
                    let (bounds, others): (Vec<_>, Vec<_>) =
                        series.split(['{', ',', '}']).partition(|label| label.starts_with("le="));
                    assert_eq!(bounds.len(), 1, "one bound: {line}");
                    let below = buckets.insert(others.join(","), value).unwrap_or_default();
                    assert!(value >= below, "not cumulative: {line}");
                }
                family
            }
        };
        assert!(!closed.contains(&family), "{family} is in two places: {line}");
        if family != current && !current.is_empty() {
            closed.insert(std::mem::replace(&mut current, family));
        } else {
            current = family;
        }
    }
    assert_eq!(helps, types.into_keys().collect(), "HELP and TYPE of the same metrics");
}

/// The declared metric that a sample of this name belongs to.
fn family_of(sample: &str, types: &HashMap<String, String>) -> Option<String> {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().filter_map(|suffix| sample.strip_suffix(suffix));
    let histogram = of_histogram.into_iter().find(|name| types.get(*name).is_some_and(|kind| kind == "histogram"));
    let own = types.get(sample).filter(|kind| *kind != "histogram").map(|_| sample);
    histogram.or(own).map(str::to_owned)
}

/// Labels are `name="value"`, with commas between and no name twice.
fn check_labels(series: &str) {
    let Some((_, labels)) = series.split_once('{') else { return };
    let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("not closed: {series}"));
    let mut names = HashSet::new();
    for label in labels.split(',') {
        let (name, value) = label.split_once('=').unwrap_or_else(|| panic!("no label: {series}"));
        assert!(names.insert(name) && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{series}");
        assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{series}");
    }
}
