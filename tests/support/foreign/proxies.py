# SPDX-License-Identifier: MIT
"""Proxies that speak HTTP/2 in front, with their own log of each request: HTTP/1.1 behind, and gRPC for test.Service."""
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from ..conditions import PYPI, needs_program
from ..net import accepts, free_port
from ..process import Process, own_folder, wait_until

ENVOY = next(iter(PYPI.glob("lib/python3*/site-packages/envoy/_bin/envoy")), None)
needs_haproxy = needs_program("haproxy")
needs_envoy = pytest.mark.skipif(ENVOY is None, reason="Envoy is not there: tools/setup --pypi")

HAPROXY = """
global
    log stdout format raw local0
    nbthread 1
defaults
    mode http
    log global
    log-format "request %cp %ST %[var(txn.span)]"
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port} proto h2
    {tls}
    http-request set-var(txn.begun) date(0,us)
    http-response set-var(txn.span) date(0,us),sub(txn.begun)
    http-request return status 404 if {{ path /missing }}
    use_backend gone if {{ path /gone }}
    use_backend calls if {{ path_beg /test.Service/ }}
    default_backend plain
backend plain
    server plain 127.0.0.1:{plain}
backend calls
    server calls 127.0.0.1:{calls} proto h2
backend gone
    retries 0
    server gone 127.0.0.1:1
"""
ENVOY_CONFIGURATION = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - {tls}
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: clear
          codec_type: AUTO
          access_log:
          - name: envoy.access_loggers.stdout
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
              log_format:
                text_format_source:
                  inline_string: "request %DOWNSTREAM_REMOTE_PORT% %RESPONSE_CODE% %COMMON_DURATION(DS_RX_END:DS_TX_BEG:us)%\\n"
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {{match: {{path: /missing}}, direct_response: {{status: 404}}}}
              - {{match: {{path: /gone}}, route: {{cluster: gone}}}}
              - {{match: {{prefix: /test.Service/}}, route: {{cluster: calls, timeout: 60s}}}}
              - {{match: {{prefix: /}}, route: {{cluster: plain, timeout: 60s}}}}
  clusters:
  - name: plain
    load_assignment: {{cluster_name: plain, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{
      socket_address: {{address: 127.0.0.1, port_value: {plain}}}}}}}}}]}}]}}
  - name: calls
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment: {{cluster_name: calls, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{
      socket_address: {{address: 127.0.0.1, port_value: {calls}}}}}}}}}]}}]}}
  - name: gone
    load_assignment: {{cluster_name: gone, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{
      socket_address: {{address: 127.0.0.1, port_value: 1}}}}}}}}]}}]}}
"""


ENVOY_TLS = """transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_certificates: [{{certificate_chain: {{filename: {}}}, private_key: {{filename: {}}}}}]"""


class Logged(NamedTuple):
    """A request by a proxy's log."""

    port: int  # the client's
    status: int
    ns: float | None  # from the request to the response behind, or where that is written, by its clock; None: not known


class Proxy(Process):
    """In front `port` for HTTP/2 in clear, behind the ports `plain` and `calls`. /missing is 404, and /gone is 503."""

    def log(self, count):
        """Return what it logs, once there are so many requests."""
        wait_until(lambda: len(self._logged()) >= count)
        return self._logged()

    def _logged(self):
        return [Logged(int(port), int(status), int(span) * 1000 if span != "-" else None) for port, status, span in
                re.findall(r"^request (\d+) ([1-9]\d\d) (\d+|-)$", self.stdout, re.MULTILINE)]

    def close(self):
        super().close()
        self.files.cleanup()


class Haproxy(Proxy):
    """With a certificate and its key it has `tls_port`, too."""

    def __init__(self, plain, calls, identity=()):
        self.files = own_folder("haproxy")
        self.port, self.tls_port = free_port(), free_port()
        both, path = Path(self.files.name, "identity.pem"), Path(self.files.name, "haproxy.cfg")
        both.write_text("".join(Path(part).read_text() for part in identity))
        tls = f"bind 127.0.0.1:{self.tls_port} ssl crt {both} alpn h2" if identity else ""
        path.write_text(HAPROXY.format(port=self.port, plain=plain, calls=calls, tls=tls))
        super().__init__(["haproxy", "-V", "-db", "-f", path])
        with self.coming_up():
            wait_until(lambda: accepts(self.port))


class Envoy(Proxy):
    """With a certificate and its key `port` is for TLS, and for HTTP/1.1 too."""

    def __init__(self, plain, calls, identity=()):
        self.files, self.port = own_folder("envoy"), free_port()
        path = Path(self.files.name, "envoy.yaml")
        tls = ENVOY_TLS.format(*identity) if identity else "name: clear"
        path.write_text(ENVOY_CONFIGURATION.format(port=self.port, plain=plain, calls=calls, tls=tls))
        super().__init__([ENVOY, "--config-path", path, "--concurrency", 1, "--disable-hot-restart", "--log-level", "warning",
                          "--file-flush-interval-msec", 50])
        with self.coming_up():
            wait_until(lambda: accepts(self.port))
