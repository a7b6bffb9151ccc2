// SPDX-License-Identifier: MIT
// WebSocket by ws: node websocket_server.js [deflate]. It echoes each message, and sends one more that nobody asked for. On
// SIGTERM it prints what it has counted.
"use strict";
const { WebSocketServer } = require("ws");

const counted = { connections: 0, messages_in: 0, messages_out: 0, bytes_in: 0, bytes_out: 0 };
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, maxPayload: 1 << 26,
	perMessageDeflate: process.argv[2] === "deflate" && { threshold: 0 } });

server.on("connection", (socket) => {
	const send = (data, binary) => {
		counted.messages_out++;
		counted.bytes_out += data.length;
		socket.send(data, { binary });
	};
	counted.connections++;
	socket.on("message", (data, binary) => {
		counted.messages_in++;
		counted.bytes_in += data.length;
		send(data, binary);
		send(Buffer.from("pushed"), false);
	});
});
server.on("listening", () => console.log(`listening on ${server.address().port}`));
process.on("SIGTERM", () => {
	console.log(`counted ${JSON.stringify(counted)}`);
	process.exit(0);
});
