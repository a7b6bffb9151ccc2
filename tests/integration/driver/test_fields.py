# SPDX-License-Identifier: MIT
"""HTTP requests with fields that differ: the server reports what arrived."""
import re

from support.programs import Driver
from support.recorder import Recorder


def test_every_request_differs():
    with Recorder() as server:
        driver = Driver(server.url + "items/{{counter}}?r={{random:5-7}}", "-H", "X-Id: {{uuid}}",
                        "--body", "{\"n\": {{counter}}}", connections=4, threads=2, count=1200)
        assert driver.result["requests"] == 1200
        assert sum(driver.result["errors"].values()) == 0
        requests = server.requests
    assert len(requests) == 1200
    numbers = set()
    for request in requests:
        number, drawn = re.fullmatch(r"/items/(\d+)\?r=([567])", request.path).groups()
        numbers.add(int(number))
        assert request.method == "POST"
        assert request.body == b'{"n": %s}' % number.encode(), "its length is its own"
    assert numbers == set(range(1, 1201))
    assert len({request.headers.get("X-Id") for request in requests}) == 1200


def test_rows_in_a_path_are_encoded(tmp_path):
    rows = tmp_path / "rows"
    rows.write_text("a b,1\n100%/x,2\n")
    with Recorder() as server:
        Driver(server.url + "{{row:1}}?n={{row:2}}", "--rows", rows, count=4)
        paths = [request.path for request in server.requests]
    assert paths == ["/a%20b?n=1", "/100%25%2Fx?n=2"] * 2


def test_no_template():
    with Recorder() as server:
        Driver(server.url, "--no-template", "--body", "{{mustache}}", count=1)
        assert server.requests[0].body == b"{{mustache}}"


def test_wrong_fields_are_bad_usage():
    for words in (["http://127.0.0.1:1/{{nothing}}"],
                  ["http://127.0.0.1:1/", "-H", "X: {{random-bytes:4}}"],
                  ["http://127.0.0.1:1/", "--body", "{{row}}"]):
        driver = Driver(*words, count=1, check=False)
        assert driver.status == 2
        assert re.search(words[-1].replace("X: ", "").split("/")[-1].replace("{", r"\{"),
                         driver.process.stderr)
