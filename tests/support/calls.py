# SPDX-License-Identifier: MIT
"""System calls that Python does not offer, with the C library's own structures, and io_uring."""
import ctypes
import mmap
import os
import socket
import struct

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32),
                ("iov", ctypes.POINTER(Iovec)), ("iov_length", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Ring:
    """Sends and receives by io_uring, one message at a time (include/uapi/linux/io_uring.h)."""

    SETUP, ENTER = 425, 426
    SEND_MESSAGE, RECEIVE_MESSAGE, GET_EVENTS = 9, 10, 1

    def __init__(self):
        params = ctypes.create_string_buffer(120)
        self.descriptor = LIBC.syscall(self.SETUP, 4, params)
        if self.descriptor < 0:
            pytest.skip(f"no io_uring: {os.strerror(ctypes.get_errno())}")
        _, self.tail, _, _, _, _, array = struct.unpack_from("7I", params, 40)
        self.head_done, *_ = struct.unpack_from("6I", params, 80)
        self.done = struct.unpack_from("6I", params, 80)[5]
        self.rings = mmap.mmap(self.descriptor, max(array + 4 * 4, self.done + 8 * 16), mmap.MAP_SHARED)
        self.entries = mmap.mmap(self.descriptor, 4 * 64, mmap.MAP_SHARED, offset=0x10000000)
        struct.pack_into("4I", self.rings, array, 0, 1, 2, 3)

    def submit(self, operation, end, message):
        tail, = struct.unpack_from("I", self.rings, self.tail)
        struct.pack_into("=BBHiQQI36x", self.entries, tail % 4 * 64, operation, 0, 0, end.fileno(), 0,
                         ctypes.addressof(message), 1)
        struct.pack_into("I", self.rings, self.tail, tail + 1)
        assert LIBC.syscall(self.ENTER, self.descriptor, 1, 1, self.GET_EVENTS, None, 0) == 1
        done, = struct.unpack_from("I", self.rings, self.head_done)
        result, = struct.unpack_from("i", self.rings, self.done + done % 8 * 16 + 8)
        struct.pack_into("I", self.rings, self.head_done, done + 1)
        return result

    def send(self, sender, data, peer):
        name = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(peer[1]), socket.inet_aton(peer[0]))
        text, address = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(name, 16)
        vector = Iovec(ctypes.addressof(text), len(data))
        message = Msghdr(ctypes.addressof(address), 16, ctypes.pointer(vector), 1, None, 0, 0)
        assert self.submit(self.SEND_MESSAGE, sender, message) == len(data)

    def receive(self, end, size):
        text = ctypes.create_string_buffer(size)
        vector = Iovec(ctypes.addressof(text), size)
        message = Msghdr(None, 0, ctypes.pointer(vector), 1, None, 0, 0)
        count = self.submit(self.RECEIVE_MESSAGE, end, message)
        return text.raw[:max(0, count)]

    def close(self):
        self.rings.close()
        self.entries.close()
        os.close(self.descriptor)
