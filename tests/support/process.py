# SPDX-License-Identifier: MIT
"""One process of a test: started, waited for until it is ready, stopped by its pid, always ended.

Output goes to files, so that no full pipe can block a measured program. A process has its own process group,
and dies with the test runner even if that is killed.
"""
import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.02
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
LEAST_NICE = 19


def pauses(poll_seconds=None):
    """Yield after longer and longer pauses: what takes long is asked less often. Or after equal ones."""
    seconds = poll_seconds or FIRST_PAUSE_SECONDS
    while True:
        time.sleep(seconds)
        yield
        seconds = poll_seconds or min(1.3 * seconds, LONGEST_PAUSE_SECONDS)


def wait_until(condition, seconds=20, poll_seconds=None):
    deadline = time.monotonic() + seconds
    pause = pauses(poll_seconds)
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to that in {seconds} s"
        next(pause)


def stat_fields(folder):
    """Return the fields of /proc/PID/stat behind the name, the state first (proc_pid_stat(5)). A name may have blanks and ")"
    in it."""
    return Path(folder, "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()


def alive(pid):
    try:
        return stat_fields(f"/proc/{pid}")[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_seconds(pid):
    """Return user and system time of the process alone, also when it is a zombie."""
    return sum(map(int, stat_fields(f"/proc/{pid}")[11:13])) / os.sysconf("SC_CLK_TCK")


def at_rest(pid):
    """Return whether each thread of the process sleeps. A client may have its answer before the thread that wrote it has left
    the kernel, where a busy machine may preempt it. Its exchange is then not counted yet."""
    try:
        return all(stat_fields(thread)[0] == "S" for thread in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:  # a thread has just ended
        return False


class ProcessError(AssertionError):
    """A process did not do what the test needs; the text has its output."""


@contextlib.contextmanager
def uninterrupted():
    """Delay signals until a new process or folder is also recorded. The handlers are delayed: Python calls them in
    the main thread, whichever thread the kernel gives the signal to. Blocked signals would stay blocked in the new
    process."""
    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS if main}
    came = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def own_folder(what):
    with uninterrupted():
        return tempfile.TemporaryDirectory(prefix=f"sojourn-{what}.")


def set_autogroup(pid, nice):
    """Set the priority of a process's session over others, -20 to 19 (autogroup in sched(7)); above 0 needs no
    privilege. A kernel without autogroups has nothing to set."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
        file.write(str(nice))


def stay_aside():
    """Give a new session the lowest priority if it runs under SCHED_IDLE. With autogroups that policy counts only
    within a session, so the session has to yield, too."""
    if os.sched_getscheduler(0) == os.SCHED_IDLE:
        set_autogroup("self", LEAST_NICE)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# Each new process begins with this command. The same in `preexec_fn` would copy the tables and pages of a large
# Python: 9 ms of CPU time instead of 2 ms.
SETPRIV = os.path.realpath(shutil.which("setpriv") or "/usr/bin/setpriv")
DIE_WITH_PARENT = [SETPRIV, "--pdeathsig", "KILL", "--"]
STAY_ASIDE = ["sh", "-c", f'echo {LEAST_NICE} >/proc/self/autogroup; exec "$@"', "aside"]


def beginning(argv):
    """Return the command that sets up a new process and then becomes argv."""
    if not shutil.which(argv[0]):
        raise FileNotFoundError(f"no program '{argv[0]}'")
    aside = os.sched_getscheduler(0) == os.SCHED_IDLE and os.path.exists("/proc/self/autogroup")
    return [*DIE_WITH_PARENT, *(STAY_ASIDE if aside else ()), *argv]


def wait_for_exec(pid):
    """Wait until a new process has become its program."""
    with contextlib.suppress(OSError):  # it has ended, or changed its user
        while os.readlink(f"/proc/{pid}/exe") == SETPRIV:
            time.sleep(0.0005)


def held_maps(pid):
    """Return {id: bytes that the kernel charges for it} of the BPF maps that a process holds."""
    held = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            fields = dict(re.findall(r"^(\w+):\s+(\S+)", path.read_text(encoding="ascii"), re.MULTILINE))
            if {"map_id", "memlock"} <= fields.keys():
                held[int(fields["map_id"])] = int(fields["memlock"])
    return held


class Process:
    """Runs argv until stop(); use it in `with`, or create it with the fixture `start`."""

    def __init__(self, argv, netns=None, env=None, cwd=None):
        self.argv = [str(word) for word in argv]
        self.folder = own_folder("process")
        self.killed = False  # whether stop() had to use SIGKILL
        self.paths = {name: os.path.join(self.folder.name, name) for name in ("stdout", "stderr")}
        self.popen = None
        try:
            with uninterrupted():
                self.popen = self._begin((netns.prefix() if netns else []) + self.argv, env, cwd)
            wait_for_exec(self.pid)
        except BaseException:
            if self.popen:
                self.close()
            raise

    @contextlib.contextmanager
    def coming_up(self):
        """Close the process if the block fails: without it the process is of no use."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _begin(self, argv, env, cwd):
        with open(self.paths["stdout"], "wb") as out, open(self.paths["stderr"], "wb") as err:
            return subprocess.Popen(beginning(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                                    env={**os.environ, **(env or {})}, start_new_session=True)

    @property
    def pid(self):
        return self.popen.pid

    @property
    def stdout(self):
        return self.output("stdout")

    @property
    def stderr(self):
        return self.output("stderr")

    def output(self, stream):
        """Return its output so far, also after its end."""
        if not os.path.exists(self.paths[stream]):
            return getattr(self, f"_{stream}", "")
        with open(self.paths[stream], encoding="utf-8", errors="replace") as file:
            return file.read()

    def running(self):
        """Whether it is still running; does not reap it."""
        if self.popen.returncode is not None:
            return False
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is None

    def wait_for(self, pattern, stream="stdout", seconds=10):
        """Return the match of the pattern in its output; fail if it ends or takes longer."""
        deadline = time.monotonic() + seconds
        pause = pauses()
        while True:
            alive = self.running()
            match = re.search(pattern, self.output(stream), re.MULTILINE)
            if match:
                return match
            if not alive:
                raise self.error(f"ended before it wrote '{pattern}'")
            if time.monotonic() > deadline:
                raise self.error(f"did not write '{pattern}' in {seconds} s")
            next(pause)

    def ends(self, seconds):
        """Whether it ends within this time; does not reap it."""
        if self.popen.returncode is not None:
            return True
        handle = os.pidfd_open(self.pid)
        try:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            return bool(ended.poll(1000 * seconds))
        finally:
            os.close(handle)

    def wait(self, seconds=60):
        """Return its exit status (negative: the fatal signal); fail if it takes longer."""
        if not self.ends(seconds):
            raise self.error(f"did not end in {seconds} s")
        return self._reap()

    def send(self, number):
        if self.running():
            os.kill(self.pid, number)

    def stop(self, seconds=10, number=signal.SIGTERM):
        """End it and the rest of its group, first politely, then with SIGKILL; return its exit status."""
        self.send(number)
        self.killed = not self.ends(seconds)
        return self._reap()

    def kill(self):
        return self.stop(number=signal.SIGKILL)

    def close(self):
        """End it and remove its files; its output stays readable."""
        self.stop()
        for stream in self.paths:
            setattr(self, f"_{stream}", self.output(stream))
        self.folder.cleanup()

    def _reap(self):
        # The leader is not reaped yet, so the group's number cannot belong to another.
        if self.popen.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return self.popen.wait()

    def error(self, what):
        return ProcessError(f"{' '.join(self.argv)}: {what}\n--- stdout\n{self.stdout[-4000:]}"
                            f"\n--- stderr\n{self.stderr[-4000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def run(argv, seconds=60, netns=None, env=None, check=True, cwd=None):
    """Run a command to its end; return the ended Process with `.status`. Fail if check and it failed."""
    with Process(argv, netns=netns, env=env, cwd=cwd) as process:
        process.status = process.wait(seconds)
        if check and process.status != 0:
            raise process.error(f"ended with status {process.status}")
    return process
