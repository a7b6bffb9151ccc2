# SPDX-License-Identifier: MIT
"""An emulated machine with Debian 12, its own kernel and systemd, which runs a script of this folder."""
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from support import ROOT

SKIPPED = 77
LIMIT_SECONDS = 1800  # 2 minutes on an idle machine
LIMIT = pytest.mark.timeout(LIMIT_SECONDS + 60)
HERE = Path(__file__).parent
PACKAGES = sorted((ROOT / "build-package").glob("sojourn_*.deb"))


class Machine:
    """The output of a script in the machine: said("start") is (status, stdout, stderr)"""

    def __init__(self, text):
        pieces = re.split(r"^=== (\S+)\r?\n", text, flags=re.MULTILINE)
        self.parts = {name: body.strip() for name, body in zip(pieces[1::2], pieces[2::2])}

    def said(self, name):
        return (int(self.parts[f"{name}.status"]), self.parts[f"{name}.stdout"],
                self.parts[f"{name}.stderr"])

    def output(self, name):
        status, out, err = self.said(name)
        assert status == 0, f"{name}: {status}: {out} {err}"
        return out

    def programs(self, name):
        """Return the tags of the kernel's programs, except those that systemd loaded for its units' cgroups."""
        return sorted(program["tag"] for program in json.loads(self.output(f"{name}.programs"))
                      if not program["type"].startswith("cgroup_"))


def emulate(debian, script, folder):
    """Boot the machine with the script and the package on its second disk; return its output."""
    disk = folder / "try.tar"
    with tarfile.open(disk, "w") as tar:
        tar.add(HERE / script, "try.sh")
        tar.add(HERE / "said.sh", "said.sh")
        tar.add(PACKAGES[-1], "sojourn.deb")
    os.truncate(disk, -(-disk.stat().st_size // 512) * 512)
    output, kernel = folder / "output", folder / "kernel"
    # One host thread for both CPUs, as in tools/vm.
    subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "q35", "-cpu", "max",
         "-smp", "2", "-m", "1024", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
         "-kernel", debian / "vmlinuz", "-initrd", debian / "initrd",
         "-append", "root=/dev/vda rw console=ttyS0 panic=-1 quiet mitigations=off nokaslr",
         "-drive", f"file={debian / 'disk'},if=virtio,format=raw,snapshot=on",
         "-drive", f"file={disk},if=virtio,format=raw,readonly=on",
         "-chardev", f"file,id=kernel,path={kernel}", "-chardev", f"file,id=output,path={output}",
         "-serial", "chardev:kernel", "-serial", "chardev:output"],
        stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=True)
    text = output.read_text(errors="replace")
    assert "=== end" in text, text[-4000:] + kernel.read_text(errors="replace")[-4000:]
    return text


def boot(script, folder):
    """Return the Machine in which the script has run, or skip the test with a reason."""
    if not PACKAGES:
        pytest.skip("no package: tools/package makes it")
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("no qemu-system-x86_64: tools/setup vm")
    done = subprocess.run([ROOT / "tools/package-debian", "machine", PACKAGES[-1]], check=False, text=True,
                          capture_output=True)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return Machine(emulate(Path(done.stdout.strip()), script, folder))
