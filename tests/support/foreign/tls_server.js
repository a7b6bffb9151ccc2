// SPDX-License-Identifier: MIT
// HTTPS by Node: node tls_server.js CERTIFICATE KEY
"use strict";
const fs = require("fs");
const http = require("http");
const https = require("https");

let requests = 0;
const [cert, key] = process.argv.slice(2, 4).map((path) => fs.readFileSync(path));
const server = https.createServer({ cert, key }, (request, response) => {
	requests++;
	request.resume().on("end", () => response.end("ok"));
});
const counts = http.createServer((request, response) => response.end(String(requests)));
server.listen(0, "127.0.0.1", () => counts.listen(0, "127.0.0.1", () => {
	console.log(`listening on ${server.address().port} counting on ${counts.address().port}`);
}));
