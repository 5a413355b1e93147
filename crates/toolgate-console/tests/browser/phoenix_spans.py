"""Sends a run of so many calls to Arize Phoenix, as one trace: `phoenix_spans.py URL FROM CALLS`."""
import sys
import urllib.request

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE = bytes.fromhex("01a1ffffffffffff800000000000000f")
ROOT = (1).to_bytes(8, "big")
BEGAN = 1_767_225_600_000_000_000  # 2026-01-01, in nanoseconds
BATCH = 2_000


def attribute(span, key, value):
    entry = span.attributes.add()
    entry.key, entry.value.string_value = key, value


def add_span(scope, index):
    span = scope.spans.add()
    span.trace_id, span.span_id = TRACE, (index + 2).to_bytes(8, "big")
    span.name, span.parent_span_id = "read", ROOT
    span.start_time_unix_nano = BEGAN + index * 50_000_000
    span.end_time_unix_nano = span.start_time_unix_nano + 12_000_000
    attribute(span, "openinference.span.kind", "TOOL")
    attribute(span, "input.value", f"src/file_{index % 97}.rs")
    attribute(span, "output.value", "x" * 80)


def send(url, first, count):
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    if first == 0:
        root = scope.spans.add()
        root.trace_id, root.span_id, root.name = TRACE, ROOT, "run"
        root.start_time_unix_nano, root.end_time_unix_nano = BEGAN, BEGAN + 1_000_000_000_000
        attribute(root, "openinference.span.kind", "AGENT")
    for index in range(first, first + count):
        add_span(scope, index)
    body = urllib.request.Request(
        f"{url}/v1/traces", request.SerializeToString(), {"Content-Type": "application/x-protobuf"}
    )
    urllib.request.urlopen(body, timeout=120).read()


def main():
    url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for start in range(first, first + count, BATCH):
        send(url, start, min(BATCH, first + count - start))


main()
