#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the components that are linked into the programs, with versions and licences: as SPDX 2.3, and as notices.

Usage: sbom.py VERSION ARCHITECTURE package SBOM
           both programs, as in the Debian package
       sbom.py VERSION ARCHITECTURE static SBOM NOTICES
           the static driver; NOTICES gets the texts that its licences require to be passed on: the copyright files of
           Debian's packages, and the licences that these only name

COMPONENTS is the table; tests/check/linked.py compares the SBOM with the linker's inputs. Versions are those of
Debian's packages, or pkg-config's without dpkg. The documents' date is SOURCE_DATE_EPOCH.
"""
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OBSERVER, DRIVER = "sojourn", "sojourn-drive"
BOTH = (OBSERVER, DRIVER)
# How a program has a component, as SPDX's RELATION between the two.
SHARED, COMPILED, EMBEDDED, LOADED = "DYNAMIC_LINK", "STATIC_LINK", "CONTAINS", "OPTIONAL_DEPENDENCY_OF"


class Component(NamedTuple):
    """One row: `package` is the Debian package used to build, `module` pkg-config's name."""

    name: str
    package: str
    module: str
    licence: str
    how: str
    programs: tuple
    machines: tuple = ()  # of which alone it is a part; none: of all


COMPONENTS = (
    Component("glibc", "libc6-dev", "", "LGPL-2.1-or-later", SHARED, BOTH),
    Component("GCC runtime", "libgcc-{gcc}-dev", "", "GPL-3.0-or-later WITH GCC-exception-3.1", COMPILED, BOTH),
    Component("zlib", "zlib1g-dev", "zlib", "Zlib", SHARED, BOTH),
    Component("Jansson", "libjansson-dev", "jansson", "MIT", SHARED, BOTH),
    Component("ncurses", "libncurses-dev", "ncursesw", "X11-distribute-modifications-variant", SHARED, BOTH),
    Component("Chart.js", "libjs-chart.js", "", "MIT", EMBEDDED, (OBSERVER,)),
    Component("@kurkle/color", "libjs-chart.js", "", "MIT", EMBEDDED, (OBSERVER,)),  # within Chart.js
    Component("libcurl", "libcurl4-openssl-dev", "libcurl", "curl", LOADED, BOTH),
    Component("libbpf", "libbpf-dev", "libbpf", "LGPL-2.1-only OR BSD-2-Clause", SHARED, (OBSERVER,)),
    Component("libcap-ng", "libcap-ng-dev", "libcap-ng", "LGPL-2.1-or-later", SHARED, (OBSERVER,)),
    Component("libseccomp", "libseccomp-dev", "libseccomp", "LGPL-2.1-only", SHARED, (OBSERVER,)),
    Component("GnuTLS", "libgnutls28-dev", "gnutls", "LGPL-2.1-or-later", SHARED, (OBSERVER,)),
    Component("GNU libmicrohttpd", "libmicrohttpd-dev", "libmicrohttpd", "LGPL-2.1-or-later", SHARED, (OBSERVER,)),
    Component("Zydis", "libzydis-dev", "", "MIT", SHARED, (OBSERVER,), ("amd64", "x86_64")),
    Component("llhttp", "node-llhttp", "", "MIT", COMPILED, (DRIVER,)),
    Component("libuv", "libuv1-dev", "libuv", "MIT", SHARED, (DRIVER,)),
    Component("OpenSSL", "libssl-dev", "openssl", "Apache-2.0", SHARED, (DRIVER,)),
    Component("nghttp2", "libnghttp2-dev", "libnghttp2", "MIT", SHARED, (DRIVER,)),
    Component("libyaml", "libyaml-dev", "yaml-0.1", "MIT", SHARED, (DRIVER,)),
)


def output_of(*words):
    """Return the output of a command; empty if it fails or does not exist."""
    done = subprocess.run(words, capture_output=True, text=True, check=False) if shutil.which(words[0]) else None
    return done.stdout.strip() if done and not done.returncode else ""


def package_of(component):
    return component.package.format(gcc=output_of("cc", "-dumpversion").split(".")[0])


def origin_of(component):
    """Return (version, "source package@its version") by dpkg, (version, None) by pkg-config, or (None, None)."""
    lines = output_of("dpkg-query", "-W", "-f", "${Version} ${source:Package}@${source:Version}\n", package_of(component))
    if lines:
        return tuple(lines.splitlines()[0].split())
    return output_of("pkg-config", "--modversion", component.module) or None, None


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", name)


def described(name, version, licence, purpose, **more):
    entry = {"SPDXID": identifier(name), "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
             "primaryPackagePurpose": purpose, **more}
    return entry | ({"versionInfo": version} if version else {})


def described_component(component):
    version, source = origin_of(component)
    known = {} if not source else {"externalRefs": [{
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": f"pkg:deb/debian/{source.replace(':', '%3A').replace('+', '%2B')}?arch=source"}]}
    return described(component.name, version, component.licence, "LIBRARY", **known)


def relation(program, component, how):
    ends = (identifier(program), identifier(component.name))
    first, second = ends[::-1] if how == LOADED else ends
    return {"spdxElementId": first, "relationshipType": how, "relatedSpdxElement": second}


def linked(program, static, architecture):
    """Return [(component, how)] of this program."""
    found = [(component, component.how) for component in COMPONENTS
             if program in component.programs and (not component.machines or architecture in component.machines)]
    if not static:
        return found
    return [(component, COMPILED if how == SHARED else how) for component, how in found if how != LOADED]


def document(version, architecture, programs, static):
    """Return the SPDX document, which depends only on programs, libraries and date."""
    product = f"sojourn-drive-{version}-linux-{architecture}" if static else f"sojourn_{version}_{architecture}"
    ours = {"copyrightText": "2026 The Sojourn authors"}
    packages = [described(product, version, "MIT", "ARCHIVE" if static else "INSTALL", **ours)]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": identifier(product)}]
    for program in programs:
        # The observer holds bpf/, which is also licensed as GPL-2.0-only.
        packages.append(described(program, version, "MIT", "APPLICATION", **ours))
        relations.append({"spdxElementId": identifier(product), "relationshipType": "CONTAINS",
                          "relatedSpdxElement": identifier(program)})
        relations += [relation(program, component, how) for component, how in linked(program, static, architecture)]
    used = {component: None for program in programs for component, _ in linked(program, static, architecture)}
    packages += map(described_component, used)
    digest = hashlib.sha256(json.dumps([packages, relations]).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": product,
            "documentNamespace": f"https://sojourn.invalid/spdx/{product}-{digest[:32]}",
            "creationInfo": {"created": f"{created:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: sojourn-sbom"]},
            "packages": packages, "relationships": relations}


COMMON = re.compile(r"/usr/share/common-licenses/[\w.-]*\w")


def notices(components):
    """Return the copyright file of each component, then the licences that these only refer to."""
    parts, common = [], set()
    for component in {package_of(each): each for each in components}.values():
        path = Path("/usr/share/doc", package_of(component), "copyright")
        if not path.exists():
            sys.exit(f"sbom.py: {component.name}: no {path}: its licence wants its notice to be passed on")
        text = path.read_text(encoding="utf-8")
        # This may name GPL-2, too, for a package's files that are not linked (its tests, its tools).
        common |= set(COMMON.findall(text))
        parts.append((f"{component.name}, {component.licence}", text))
    parts += [(path, Path(path).read_text(encoding="utf-8")) for path in sorted(common) if Path(path).exists()]
    line = "=" * 78
    return "".join(f"{line}\n{title}\n{line}\n\n{text.strip()}\n\n" for title, text in parts)


def main():
    version, architecture, kind, path, *rest = sys.argv[1:]
    static = kind == "static"
    programs = (DRIVER,) if static else BOTH
    text = json.dumps(document(version, architecture, programs, static), indent=2)
    Path(path).write_text(text + "\n", encoding="utf-8")
    for other in rest:
        Path(other).write_text(notices(component for component, _ in linked(DRIVER, True, architecture)), encoding="utf-8")


if __name__ == "__main__":
    main()
