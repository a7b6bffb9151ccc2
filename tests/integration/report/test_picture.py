# SPDX-License-Identifier: MIT
"""The README's pictures: bars are to scale, and figures those of a report; a screen is that of the program."""
import re
import xml.etree.ElementTree as xml

from support import BUILD, ROOT
from support.conditions import needs_program
from support.net import Netns
from support.process import run

SVG = "{http://www.w3.org/2000/svg}"


def in_ms(said):
    value, unit = re.search(r"([\d.]+) (ns|µs|ms|s)\b", said).groups()
    return float(value) * {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1000}[unit]


def drawn(path):
    """Return the round trip in ms, each part's in the legend, and the widths of all parts and of the whole."""
    picture = xml.parse(path).getroot()
    bars = [(each.get("class"), float(each.get("width")))
            for each in picture.iter(f"{SVG}rect") if each.get("height") == "34"]
    names = [each.get("class") for each in picture.iter(f"{SVG}rect") if each.get("height") == "12"]
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    legend = dict(zip(names, (in_ms(said) for said in texts if re.match(r"[\d.]+ [nµm]?s  ", said))))
    return in_ms(texts[0]), legend, dict(bars[1:]), bars[0][1]


def check(path):
    whole, legend, widths, full = drawn(path)
    assert abs(sum(widths.values()) - full) < 0.1, "the parts add up"
    for name, ms in legend.items():
        assert abs(widths[name] / full - ms / whole) < 0.01, name
    assert legend["socket_queue"] > 5 * legend["service"] > 0, "one request after the other"


def test_it_is_drawn_to_scale(tmp_path):
    with Netns("picture") as netns:
        run([ROOT / "tools/picture", "--build", BUILD, "--output", tmp_path / "a.svg", "--seconds", "0.5"], netns=netns)
    check(tmp_path / "a.svg")
    check(ROOT / "docs/round-trip.svg")


def screen(path):
    """The lines of words, and the colours of the blocks."""
    picture, lines = xml.parse(path).getroot(), {}
    for each in picture.iter(f"{SVG}text"):
        lines.setdefault(float(each.get("y")), []).append(each.text)
    return [" ".join(words) for _, words in sorted(lines.items())], {each.get("fill") for each in picture.iter(f"{SVG}rect")}


def check_live(path):
    """A row for each service, of which shop's requests wait for longer than they are worked on; bars of several stages."""
    lines, colours = screen(path)
    assert lines[0].startswith("sojourn live · web · every 250 ms") and "lost 0" in lines[0]
    rows = {line.lstrip("> ").split()[1]: line for line in lines if re.match(r"(> ?)?80\d\d ", line)}
    assert set(rows) == {"shop", "search", "static", "login"}
    waiting, working = [in_ms(said) for said in re.findall(r"[\d.]+ [nµm]?s\b", rows["shop"])[0:4:2]]
    assert waiting > 3 * working > 3, rows["shop"]
    assert len(colours) >= 4


@needs_program("tmux")
def test_the_live_view_is_drawn(tmp_path):
    run([ROOT / "tools/picture", "live", "--build", BUILD, "--output", tmp_path / "a.svg", "--seconds", "1"])
    check_live(tmp_path / "a.svg")
    check_live(ROOT / "docs/live.svg")


def test_what_cannot_be_drawn_is_said(tmp_path):
    ended = run([ROOT / "tools/picture", "--build", tmp_path, "--output", tmp_path / "a.svg"], check=False)
    assert ended.status == 1 and ended.stderr.startswith("picture: ") and not (tmp_path / "a.svg").exists()
