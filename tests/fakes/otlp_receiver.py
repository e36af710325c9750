"""A collector on loopback that keeps what it is sent by OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Receiver:
    url: str = ""
    received: list[tuple[str, bytes]] = field(default_factory=list)

    def spans(self) -> list[tuple[dict[str, str], Any]]:
        """Each span with the attributes of its resource."""
        found = []
        for path, body in self.received:
            if path == "/v1/traces":
                for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                    resource = {each.key: each.value.string_value for each in group.resource.attributes}
                    found += [(resource, span) for scope in group.scope_spans for span in scope.spans]
        return found

    def metrics(self) -> set[tuple[str, str]]:
        """Service and name of each metric."""
        found = set()
        for path, body in self.received:
            if path == "/v1/metrics":
                for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    resource = {each.key: each.value.string_value for each in group.resource.attributes}
                    names = [metric.name for scope in group.scope_metrics for metric in scope.metrics]
                    found |= {(resource["service.name"], name) for name in names}
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
