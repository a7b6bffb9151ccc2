# SPDX-License-Identifier: MIT
"""A listener under observation and its clients, all within the test's own process."""
import contextlib
import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor

from support.documents import service
from support.programs import Observer
from .test_stages import samples_add_up


CLONE_NEWNET = 0x40000000


def enter_network(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def inside(netns):
    """Move this thread into @netns within `with`: sockets that it creates there belong to @netns."""
    own = f"/proc/self/fd/{os.open('/proc/thread-self/ns/net', os.O_RDONLY)}"
    try:
        enter_network(netns.path)
        yield
    finally:
        enter_network(own)
        os.close(int(own.rsplit("/", 1)[1]))


class Scene:
    """A listener, its observer and its connections, each of which connect() accepts at once."""

    def __init__(self, start, *options, observe=True, listener=None, netns=None):
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start = lambda: start(Observer(*options, ports=[self.port], netns=netns))
        self.observer = self.start() if observe else None
        self.ends = []

    def observe(self):
        self.observer = self.start()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port))
        connection, _ = self.listener.accept()
        self.ends += [client, connection]
        return client, connection

    def close(self):
        for end in (*self.ends, self.listener):
            end.close()

    def end(self, samples=True):
        """Close all and return the observer's entry. @samples: check them; only one thread at a time has used a connection."""
        self.close()
        self.observer.stop()
        entry = service(self.observer.summary(), self.port)
        if samples:
            samples_add_up(entry)
        return entry


def entries(start, cases, act, *options, before=lambda scene: None, samples=True, at_once=False):
    """Let act(scene, *case) run for each case, each with a listener of its own. Return [(case, entry)]. One observer sees them
    all: it takes longer to begin than most cases. before(scene): before it begins. at_once: in a thread for each, for cases
    that mostly wait."""
    scenes = [Scene(start, observe=False) for _ in cases]
    for scene in scenes:
        before(scene)
    observer = start(Observer(*options, ports=[scene.port for scene in scenes]))
    if at_once:
        with ThreadPoolExecutor(len(cases)) as threads:
            list(threads.map(lambda scene, case: act(scene, *case), scenes, cases))
    else:
        for scene, case in zip(scenes, cases):
            act(scene, *case)
    for scene in scenes:
        scene.close()
    observer.stop()
    document = observer.summary()
    told = [service(document, scene.port) for scene in scenes]
    for entry in told if samples else ():
        samples_add_up(entry)
    return list(zip(cases, told))
