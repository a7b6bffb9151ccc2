# SPDX-License-Identifier: MIT
"""A NATS server of a test's own, and agents that wait at it."""
from pathlib import Path

from .net import free_port
from .process import Process, own_folder
from .programs import DRIVER

# A key of NATS's documentation on nkeys, and its public half.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


class NatsServer(Process):
    """Debian's nats-server in the foreground. `more` is configuration beside its address. With `stores` it has JetStream."""

    def __init__(self, more="", port=None, secure=False, stores=False, netns=None, address="127.0.0.1"):
        self.files = own_folder("nats")
        if stores:
            more += f'\njetstream {{ store_dir: "{self.files.name}/store" }}'
        self.port = port or free_port()
        self.url = f"{'tls' if secure else 'nats'}://{address}:{self.port}"
        config = Path(self.files.name, "nats.conf")
        config.write_text(f"listen: {address}:{self.port}\n{more}\n")
        super().__init__(["nats-server", "-c", config], netns=netns)
        with self.coming_up():
            self.wait_for("Server is ready", stream="stderr")

    def close(self):
        super().close()
        self.files.cleanup()


def credentials(folder, text):
    """Return the path of a file with this login."""
    path = Path(folder, "credentials")
    path.write_text(text + "\n")
    return path


class Agent(Process):
    """An agent that waits at a NATS server. SIGTERM ends it with its run."""

    def __init__(self, url, name, *options, netns=None):
        super().__init__([DRIVER, "agent", "--fleet", url, "--name", name, *options], netns=netns)
        with self.coming_up():
            self.wait_for("waiting for (plans|runs) at", stream="stderr")

    def waits(self):
        """Return how often it has begun to wait: at its start, and whenever its server is there again."""
        return self.stderr.count("waiting for plans at")

    def ended(self):
        """Return how many runs have ended."""
        return self.stderr.count("has ended\n")

    def child(self):
        """Return the pid of the process that drives; None: there is none."""
        pids = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()
        return int(pids[0]) if pids else None
