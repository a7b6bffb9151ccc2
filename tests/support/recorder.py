# SPDX-License-Identifier: MIT
"""An HTTP server that keeps every request in order of arrival, with its connection: Recorder(answer).requests"""
import http.server
import threading
from typing import NamedTuple


class Request(NamedTuple):
    connection: tuple  # the client's address and port
    method: str
    path: str
    headers: object  # get("name") like a case-insensitive mapping
    body: bytes


class Recorder:
    """`answer(request)` returns a status, or (status, body, headers); default: 200."""

    def __init__(self, answer=lambda request: 200):
        self.requests = []
        self._lock = threading.Lock()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def take(self):
                length = int(self.headers.get("Content-Length", 0))
                request = Request(self.client_address, self.command, self.path, self.headers,
                                  self.rfile.read(length))
                with recorder._lock:
                    recorder.requests.append(request)
                    answered = answer(request)
                self.respond(*(answered if isinstance(answered, tuple) else (answered,)))

            def respond(self, status, body=b"", headers=()):
                self.wbuffer = [f"HTTP/1.1 {status} Any\r\nContent-Length: {len(body)}\r\n"]
                self.wbuffer += [f"{name}: {value}\r\n" for name, value in headers]
                self.wfile.write("".join(self.wbuffer).encode() + b"\r\n" + body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = take

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def by_connection(self):
        found = {}
        for request in self.requests:
            found.setdefault(request.connection, []).append(request)
        return list(found.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
