# SPDX-License-Identifier: MIT
"""An HTTP/2 server whose answers the test decides, by python3-h2; a thread for each connection."""
import socket
import ssl
import threading

from .net import free_port, serve_each


class H2Server:
    """treat(exchanges) is called for every complete request, with its connection's Exchanges.

    `counts` has the numbers of connections and requests, and the most requests open at once on a connection.
    """

    def __init__(self, treat, identity=None, settings=None, alpn=("h2",)):
        self.treat, self.settings = treat, settings or {}
        self.context = None
        if identity:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*identity)
            self.context.set_alpn_protocols(list(alpn))
        self.listener = socket.create_server(("127.0.0.1", free_port()), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'h2' if identity else 'h2c'}://127.0.0.1:{self.port}/"
        self.lock = threading.Lock()
        self.counts = {"connections": 0, "requests": 0, "at once": 0}
        self.sockets = serve_each(self.listener, self._serve)

    def _serve(self, connection):
        from h2.exceptions import ProtocolError

        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
                self.sockets.append(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.counts["connections"] += 1
            Exchanges(self, connection).run()
        except (OSError, EOFError, ValueError, ProtocolError):
            pass
        finally:
            connection.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.sockets:
            connection.close()


class Exchanges:
    """One connection; `connection` is that of h2. `open` lists the streams with a complete request and no answer yet."""

    def __init__(self, server, sock):
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.server, self.socket, self.open, self.seen = server, sock, [], 0
        self.bodies = {}
        self.connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))

    def run(self):
        self.connection.initiate_connection()
        if self.server.settings:
            self.connection.update_settings(self.server.settings)
        self.flush()
        while True:
            data = self.socket.recv(65536)
            if not data:
                return
            for event in self.connection.receive_data(data):
                self.handle(event)
            self.flush()

    def handle(self, event):
        from h2 import events

        if isinstance(event, events.DataReceived):
            self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
            self.connection.acknowledge_received_data(event.flow_controlled_length,
                                                      event.stream_id)
        if isinstance(event, events.StreamEnded):
            self.open.append(event.stream_id)
            self.seen += 1
            with self.server.lock:
                counts = self.server.counts
                counts["requests"] += 1
                counts["at once"] = max(counts["at once"], len(self.open))
            self.server.treat(self)

    def answer(self, stream=None, body=b"hello", headers=(), end=True, status="200"):
        """Answer this stream; by default the oldest open one."""
        stream = self.open.pop(0) if stream is None else stream
        self.connection.send_headers(stream, [(":status", status), *headers])
        self.connection.send_data(stream, body, end_stream=end)
        return stream

    def reset(self, code):
        self.connection.reset_stream(self.open.pop(0), code)

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())
