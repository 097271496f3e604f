"""A small web site over TLS in a thread of the test, for a process that looks at it."""

import json
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Pages = dict[str, tuple[int, object]]
"""By path: the status and the JSON that is answered."""


@contextmanager
def hosted(tls: ssl.SSLContext) -> Generator[tuple[str, Pages]]:
    """Serve on 127.0.0.1 until the end of the block; yields the origin, and pages to fill in."""
    pages: Pages = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, value = pages.get(self.path, (404, {}))
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("location", "/client.json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, name="hosted")
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}", pages
        finally:
            server.shutdown()
            thread.join()
