#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The SBOM names the linked components, and no others. They are compared with the shared libraries that the loader finds,
the linker's map of archives and objects, and names in the program itself. The licence notices of a static program
must cover all its components."""
import json
import re
import sys
import tempfile
from pathlib import Path

import tree
from tree import Example

PROGRAMS = ("observer/sojourn", "driver/sojourn-drive")
SOURCE = re.compile(r"pkg:deb/debian/([^@]+)@")
# Components that the linker does not know: name, a pattern in the program, relation.
# libcurl is loaded at run time: the program names its file.
INSIDE = (("Chart.js", rb"Chart\.js v(\d[\d.]*\d)", "CONTAINS"), ("@kurkle/color", rb"@kurkle/color v(\d[\d.]*\d)", "CONTAINS"),
          ("libcurl", rb"libcurl\.so\.4()", "OPTIONAL_DEPENDENCY_OF"))
LINKS = ("DYNAMIC_LINK", "STATIC_LINK")


class Sbom:
    """An SPDX document, queried by program."""

    def __init__(self, path):
        self.text = json.loads(path.read_text())
        self.packages = {entry["SPDXID"]: entry for entry in self.text["packages"]}

    def related(self, program, kind):
        """Return {name: package} of the libraries that have this relation to the program, in either direction."""
        mine = f"SPDXRef-{program}"
        ends = [(each["spdxElementId"], each["relatedSpdxElement"]) for each in self.text["relationships"]
                if each["relationshipType"] == kind]
        found = [other for one, two in ends for this, other in ((one, two), (two, one)) if this == mine]
        return {self.packages[each]["name"]: self.packages[each] for each in found
                if self.packages[each]["primaryPackagePurpose"] == "LIBRARY"}

    def sources(self, program, kind):
        """Return the Debian source packages of related()."""
        locators = [reference["referenceLocator"] for package in self.related(program, kind).values()
                    for reference in package.get("externalRefs", ())]
        return {SOURCE.match(locator)[1] for locator in locators}


def source_packages(paths):
    """Return {path: Debian source package} of files."""
    paths = sorted({str(Path(path).resolve()) for path in paths})
    if not paths:
        return {}
    # dpkg knows a file of /usr/lib by this name or by that in /lib.
    done = tree.run(["dpkg", "-S", *paths, *(path.removeprefix("/usr") for path in paths)])
    owners = dict(reversed(line.split(": ")) for line in done.stdout.splitlines())
    packages = sorted({owner.split(",")[0] for owner in owners.values()})
    done = tree.run(["dpkg-query", "-W", "-f", "${binary:Package} ${Package} ${source:Package}\n", *packages])
    names = {name: words[-1] for words in map(str.split, done.stdout.splitlines()) for name in words[:2]}
    found = {file.removeprefix("/usr"): names[owner.split(",")[0]] for file, owner in owners.items()}
    missing = [path for path in paths if path.removeprefix("/usr") not in found]
    if missing:
        raise tree.Skip(f"of no Debian package: {', '.join(missing)}")
    return {path: found[path.removeprefix("/usr")] for path in paths}


def shared_by(program):
    """Return the libraries that the program itself names, without the libraries' own ones."""
    dynamic = tree.run(["readelf", "--wide", "--dynamic", program]).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    paths = dict(re.findall(r"^\s+(\S+) => (\S+)", tree.run(["ldd", program]).stdout, re.MULTILINE)) if needed else {}
    return [paths[name] for name in needed]


def taken_by(root, build, name):
    """Link once more with a map. Return the sources, objects and archives from outside the tree that the linker used."""
    commands = tree.run(["ninja", "-C", build, "-t", "commands", name]).stdout.splitlines()
    if not commands:
        raise tree.Skip(f"{build} is not one of ninja's")
    with tempfile.TemporaryDirectory(prefix="sojourn-linked.") as folder:
        command = commands[-1].replace(f"-o {name} ", f"-o {folder}/program -Wl,-S,-Map={folder}/map ")
        done = tree.run(["sh", "-c", command], cwd=build)
        if done.returncode:
            raise tree.Skip(f"does not link again: {done.stderr.strip()}")
        text = Path(folder, "map").read_text(errors="replace")
    members = text.partition("Archive member included")[2].partition("\n\n\n")[0]
    taken = set(re.findall(r"^(/\S+\.a)\(", members, re.MULTILINE))
    taken |= set(re.findall(r"^LOAD (/\S+\.o)$", text, re.MULTILINE))
    taken |= {path for command in commands for path in re.findall(r" -c (/\S+\.c)\b", command)}
    return [path for path in taken if not tree.under(Path(path).resolve(), root.resolve(), build.resolve())]


def differences(name, kind, told, true):
    for each in sorted(true - told):
        yield f"{name}: {each} is {kind} and the SBOM does not say so"
    for each in sorted(told - true):
        yield f"{name}: the SBOM says {kind} of {each}, which is not"


def link_problems(root, options, name, sbom):
    program = Path(name).name
    shared = set(source_packages(shared_by(options.build / name)).values())
    yield from differences(name, LINKS[0], sbom.sources(program, LINKS[0]), shared)
    if (options.build / "build.ninja").exists():
        static = set(source_packages(taken_by(root, options.build, name)).values()) - shared
        yield from differences(name, LINKS[1], sbom.sources(program, LINKS[1]), static)


def inside_problems(options, name, sbom):
    data = (options.build / name).read_bytes()
    for component, pattern, kind in INSIDE:
        match = re.search(pattern, data)
        told = sbom.related(Path(name).name, kind).get(component)
        if bool(match) != bool(told):
            yield f"{name}: {component} is {'' if match else 'not '}in it, and the SBOM says otherwise"
        elif match and match[1].decode() not in told.get("versionInfo", ""):
            yield f"{name}: holds {component} {match[1].decode()}, and the SBOM says {told.get('versionInfo')}"


def notice_problems(options, sbom):
    text = (options.build / "NOTICES").read_text()
    for component in sbom.related("sojourn-drive", "STATIC_LINK"):
        if not re.search(rf"^{re.escape(component)}, ", text, re.MULTILINE):
            yield f"NOTICES: nothing of {component}, which is linked into the static driver"


def problems(root, options):
    paths = sorted(options.build.glob("*.spdx.json"))
    if not paths:
        raise tree.Skip(f"there is no SBOM in {options.build}: build its target sbom")
    cache = options.build / "CMakeCache.txt"
    if cache.exists() and "SOJOURN_SANITIZE:BOOL=ON" in cache.read_text():
        raise tree.Skip(f"{options.build} has the sanitizers' libraries, too")
    sbom = Sbom(paths[0])
    for name in PROGRAMS:
        if (options.build / name).exists():
            yield from link_problems(root, options, name, sbom)
            yield from inside_problems(options, name, sbom)
    if (options.build / "NOTICES").exists():
        yield from notice_problems(options, sbom)


def built(root, options):
    tree.compile_examples(root, options.build)
    yield from problems(root, options)


def example_sbom(**libraries):
    """Return an SBOM of the driver, from {source package: (name, relation, version)}."""
    packages, relations = [], []
    for source, (name, kind, version) in libraries.items():
        packages.append({"SPDXID": f"SPDXRef-{source}", "name": name, "primaryPackagePurpose": "LIBRARY", "versionInfo": version,
                         "externalRefs": [{"referenceLocator": f"pkg:deb/debian/{source}@{version}"}]})
        relations.append({"spdxElementId": "SPDXRef-sojourn-drive", "relationshipType": kind,
                          "relatedSpdxElement": f"SPDXRef-{source}"})
    return json.dumps({"packages": packages, "relationships": relations})


BODY = "// -Wl,--no-as-needed -lz\n#include <zlib.h>\nconst char chart[] = \"Chart.js v3.9.1\";\n" \
    "int main(void)\n{\n\treturn zlibVersion()[0] == chart[0];\n}\n"
GLIBC = {"glibc": ("glibc", "DYNAMIC_LINK", "1")}
ZLIB = {"zlib": ("zlib", "DYNAMIC_LINK", "1")}
CHART = {"chart": ("Chart.js", "CONTAINS", "3.9.1-2")}
EXAMPLES = [
    Example("true", {"driver/sojourn-drive.c": BODY, "build/a.spdx.json": example_sbom(**GLIBC, **ZLIB, **CHART)}, []),
    Example("forgotten", {"driver/sojourn-drive.c": BODY, "build/a.spdx.json": example_sbom(**GLIBC)},
            ["zlib is DYNAMIC_LINK and the SBOM does not say so", "Chart.js is in it"]),
    Example("invented", {"driver/sojourn-drive.c": BODY, "build/a.spdx.json": example_sbom(
        **GLIBC, **ZLIB, openssl=("OpenSSL", "DYNAMIC_LINK", "3"), chart=("Chart.js", "CONTAINS", "4.0.0"))},
            ["the SBOM says DYNAMIC_LINK of openssl, which is not", "holds Chart.js 3.9.1, and the SBOM says 4.0.0"]),
    Example("no notice", {"driver/sojourn-drive.c": BODY, "build/NOTICES": "zlib, Zlib\n", "build/a.spdx.json": example_sbom(
        **GLIBC, **ZLIB, **CHART, libuv1=("libuv", "STATIC_LINK", "1"))}, ["NOTICES: nothing of libuv"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(built if "--self-test" in sys.argv else problems, EXAMPLES))
