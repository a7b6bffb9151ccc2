# SPDX-License-Identifier: MIT
"""`sojourn doctor` against limits of the host, which only an emulated machine may change, and with the fexit
programs, which not every kernel allows. Remedies are applied as printed."""
import json

import pytest

from support.findings import evidence
from machine import fleet_fixture, vm  # pylint: disable=unused-import

KERNELS = ("6.1", "6.12")

pytestmark = pytest.mark.timeout(1200)  # a kernel's first test waits for its machine.
# The second kernel adds only the fexit programs to this suite.
on_each = pytest.mark.parametrize("vm", [pytest.param((kernel, "", "all", "doctor.sh"), marks=marks)
                                         for kernel, marks in zip(KERNELS, ((), pytest.mark.long))],
                                  ids=KERNELS, indirect=True)


def looks(vm):
    return [json.loads(line) for line in vm.parts["watch"].splitlines()]


def failures(vm, name):
    """Return the failures counted in all samples, by process."""
    counts = {}
    for look in looks(vm):
        for finding in look["findings"]:
            failed = evidence(finding, "failed in the sample")
            if finding["resource"] == name and failed:
                owner = finding["owners"][0]
                key = owner["pid"], owner["comm"]
                counts[key] = counts.get(key, 0) + int(failed)
    return counts


def found(vm, name, finding):
    """Return the finding of one reading; None if it has none."""
    try:
        look = json.loads(vm.parts[name])
    except ValueError as error:
        raise AssertionError(f"{error}:\n{vm.parts[name]}") from error
    entries = [f for f in look["findings"] if f["id"] == finding]
    assert len(entries) <= 1, entries
    return entries[0] if entries else None


@on_each
def test_nothing_is_unseen(vm):
    """fexit programs load, so nothing needs --syscalls."""
    assert not [note for look in looks(vm) for note in look["not_seen"] if "fexit" in note]


@on_each
@pytest.mark.parametrize("resource, text, count, comm", [
    ("descriptor_failures", "emfile", 25, "sh"), ("file_failures", "enfile", 15, "sh")])
def test_failed_calls_are_counted_where_they_fail(vm, resource, text, count, comm):
    """The doctor counts the failures that the process itself met, under its name although it has exited."""
    told = vm.parts[text].count("oo many open files")
    assert told == count, vm.parts[text]
    counts = failures(vm, resource)
    assert list(counts.values()) == [told], counts
    assert {name for _, name in counts} == {comm}


@on_each
def test_addresses_in_use_are_counted(vm):
    told = vm.parts["inuse"].count("in use")
    found_ = [f for look in looks(vm) for f in look["findings"] if f["id"] == "address-in-use"]
    counted = sum(evidence(f, "failed in the sample") for f in found_)
    assert told == counted == 3, (vm.parts["inuse"], found_)
    assert {f["object"] for f in found_} == {"127.0.0.1:9001"}
    assert {f["owners"][0]["comm"] for f in found_} == {"sojourn-lab"}


@on_each
def test_a_full_table_of_files_does_not_stop_us(vm):
    """file-max is ten and hundreds are open: the observer and the doctor still start, read and write."""
    finding = found(vm, "file_max_reached", "file-max")
    assert finding["severity"] == "critical"
    assert finding["capacity"] == 10 < finding["used"]
    assert vm.parts["observe.status"].strip() == "0"
    document = json.loads(vm.parts["observe.run"])
    assert "file-max" in {f["id"] for f in document["findings"]}


@on_each
@pytest.mark.parametrize("name, finding", [
    ("file_max", "file-max"), ("tcp_memory", "tcp-memory"), ("orphans", "orphans"),
    ("conntrack", "conntrack")])
def test_a_limit_of_the_host_and_its_remedy(vm, name, finding):
    if name == "conntrack" and name not in vm.parts:
        pytest.skip(f"kernel {vm.kernel}: no module nf_conntrack was unpacked with it: remove the "
                    "kernel from the build folder's vm/kernels to fetch it again")
    entry = found(vm, name, finding)
    words = vm.parts[f"{name}.truth"].split()
    used = {"file_max": lambda: int(words[0]), "tcp_memory": lambda: int(words[10]),
            "orphans": lambda: int(words[4]), "conntrack": lambda: int(words[0])}[name]()
    limit = {"file_max": lambda: int(words[2]), "orphans": lambda: 16,
             "conntrack": lambda: 40}.get(name, lambda: entry["capacity"])()
    assert entry, vm.parts[name]
    assert entry["capacity"] == limit
    assert entry["used"] == pytest.approx(used, rel=0.15)
    assert vm.parts[f"{finding}.command"].strip() == entry["command"]
    assert found(vm, f"{name}_after", finding) is None, vm.parts[f"{name}_after"]
