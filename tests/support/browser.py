# SPDX-License-Identifier: MIT
"""A page in a browser: its contents, its console, and the result of a script on it."""
import contextlib
import html.parser
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from .conditions import PYPI

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")

# axe-core checks those rules of accessibility that a program can check. None: it is not installed.
AXE = next(PYPI.glob("lib/python3*/site-packages/axe_playwright_python/axe.min.js"), None)

# The result goes into an element of the page, as chromium prints only the document.
PROBE = """
<script nonce="%s">
(async () => {
	const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
	// The page's clock runs ahead while nothing happens, and stands still while it waits for an answer (with_probe()).
	const pass = () => fetch("/pass");
	const isSerious = ({impact}) => ["serious", "critical"].includes(impact);
	// The serious findings of axe-core in both themes; null: it is not there.
	const impaired = async () => {
		const all = [];
		if (!window.axe) return null;
		for (const theme of ["light", "dark"]) {
			document.documentElement.dataset.theme = theme;
			const {violations} = await axe.run(document, {resultTypes: ["violations"]});
			all.push(...violations.filter(isSerious).map(({id, nodes}) => `${theme}: ${id}: ${nodes.map(({html}) => html).join(" ")}`));
		}
		return all;
	};
	let found;
	try { found = await (async () => { %s })(); }
	catch (error) { found = {error: String(error.stack)}; }
	const node = document.createElement("pre");
	node.id = "probe";
	node.textContent = JSON.stringify(found);
	document.body.append(node);
})();
</script>
"""


def probed(page, probe):
    """Return the page with axe-core, if installed, and the probe. Both have the nonce that its policy requires."""
    found = re.search(r'<script nonce="(\w+)"', page)
    nonce = found[1] if found else ""
    axe = f'<script nonce="{nonce}">{AXE.read_text()}</script>' if AXE else ""
    return page.replace("</body>", f"{axe}{PROBE % (nonce, probe)}</body>")


class Page(html.parser.HTMLParser):
    """A file or a URL, opened in chromium: .cells {member: [value]}, .text, .canvases, .console, .probe.

    `probe` is the body of a JavaScript function that runs on a file's page; its result is .probe.
    """

    def __init__(self, page, folder, width=1280, probe=None, milliseconds=5000):
        super().__init__()
        self.cells, self.text, self.canvases, self.hidden = {}, "", 0, 0
        if probe:
            page.write_text(probed(page.read_text(), probe))
        url = page if isinstance(page, str) else page.as_uri()
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
             f"--user-data-dir={folder}", f"--window-size={width},900", f"--virtual-time-budget={milliseconds}",
             "--dump-dom", url], capture_output=True, text=True, timeout=100, check=True)
        self.html = done.stdout
        # The browser's own pages sometimes log, too.
        self.console = [line for line in re.findall(r"CONSOLE.*", done.stderr)
                        if "source: chrome:" not in line]
        self.feed(done.stdout)

    @property
    def probe(self):
        found = re.search(r'<pre id="probe">(.*?)</pre>', self.html, re.DOTALL)
        assert found, "the script has not come to its end"
        result = json.loads(html.unescape(found[1]))
        assert "error" not in result, result["error"]
        return result

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.hidden += tag in ("script", "style")
        self.canvases += tag == "canvas"
        if attrs.get("data-member"):
            self.cells.setdefault(attrs["data-member"], []).append(attrs.get("data-value"))

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden:
            self.text += data


@contextlib.contextmanager
def with_probe(url, probe):
    """Yield the URL of a proxy of `url` that adds a script to its page."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/pass":
                time.sleep(0.1)
                self.send_response(204)
                self.end_headers()
                return
            request = urllib.request.Request(url + self.path, headers={"Accept": self.headers["Accept"]})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    status, headers, body = answer.status, answer.headers, answer.read()
            except urllib.error.HTTPError as error:
                status, headers, body = error.code, error.headers, error.read()
            kind = headers["Content-Type"]
            if kind.startswith("text/html"):
                body = probed(body.decode(), probe).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", headers["Content-Security-Policy"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
