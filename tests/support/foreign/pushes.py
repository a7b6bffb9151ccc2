#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers of messages and events that are not ours: pushes.py websockets|aiohttp [deflate]. They echo each message and send
one more that nobody asked for; by aiohttp /events?count=N sends N events. On SIGTERM they print what they have counted."""
import asyncio
import json
import signal
import sys
from collections import Counter

PUSH = "pushed"
PINGS = 3
LIMIT = 1 << 26

counted = Counter(connections=0, messages_in=0, messages_out=0, bytes_in=0, bytes_out=0, control_in=0, control_out=0,
                  responses=0, events=0, event_bytes=0)


def size(data):
    return len(data.encode() if isinstance(data, str) else data)


def heard(data):
    counted["messages_in"] += 1
    counted["bytes_in"] += size(data)


def says(data):
    counted["messages_out"] += 1
    counted["bytes_out"] += size(data)
    return data


async def by_websockets(deflate):
    import websockets  # pylint: disable=import-outside-toplevel

    async def handle(socket):
        counted["connections"] += 1
        counted["open"] += 1
        for _ in range(PINGS):
            await (await socket.ping())
            counted.update(control_out=1, control_in=1)
        async for data in socket:
            heard(data)
            # In three frames.
            await socket.send([data[:1], data[1:2], data[2:]])
            says(data)
            await socket.send(says(PUSH))
        counted.update(control_out=1, control_in=1, open=-1)  # the close of either side

    server = await websockets.serve(handle, "127.0.0.1", 0, compression="deflate" if deflate else None,
                                    ping_interval=None, max_size=LIMIT)
    return server.sockets[0].getsockname()[1]


async def by_aiohttp(deflate):
    from aiohttp import WSMsgType, web  # pylint: disable=import-outside-toplevel

    async def messages(request):
        socket = web.WebSocketResponse(compress=bool(deflate), max_msg_size=LIMIT)
        counted["connections"] += 1
        await socket.prepare(request)
        async for message in socket:
            heard(message.data)
            data = says(message.data)
            await (socket.send_str(data) if message.type == WSMsgType.TEXT else socket.send_bytes(data))
            await socket.send_str(says(PUSH))
        return socket

    async def events(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        counted["responses"] += 1
        await response.prepare(request)
        for number in range(int(request.query["count"])):
            data = f": a comment\n\nid: {number}\ndata: {'x' * number}\ndata: b\n\n".encode()
            await response.write(data)
            counted.update(events=1, event_bytes=len(data))
            await asyncio.sleep(float(request.query.get("pause", 0)))
        await response.write_eof()
        return response

    async def other(_):
        return web.json_response({"event-stream": "event"})

    app = web.Application()
    app.add_routes([web.get("/", messages), web.get("/events", events), web.get("/other", other)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return site._server.sockets[0].getsockname()[1]  # pylint: disable=protected-access


async def main(kind, deflate=""):
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    port = await {"websockets": by_websockets, "aiohttp": by_aiohttp}[kind](deflate)
    print(f"listening on {port}", flush=True)
    await over.wait()
    while counted["open"]:
        await asyncio.sleep(0.01)
    print("counted", json.dumps(counted), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
