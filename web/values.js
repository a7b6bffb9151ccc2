// SPDX-License-Identifier: MIT
// What run documents mean: histograms, parts of a round trip, and figures as people read them.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// The stages of a residence in their order; behind them what follows the response on its way.
const RESIDENCE = ["accept_queue", "socket_queue", "receive", "service", "respond"];
const STAGES = [...RESIDENCE, "transmit_queue", "ack"];
// What a round trip consists of, as it is drawn.
const PARTS = ["wait", "network", ...RESIDENCE, "transmit_queue"];
const NAMES = {
	wait: "not yet sent",
	network: "network + client",
	round_trip: "round trip",
	response_time: "response time",
	transmit_queue: "transmit queue",
	accept_queue: "accept queue",
	socket_queue: "socket queue",
};

function nameOf(part) {
	return NAMES[part] || part.replaceAll("_", " ");
}

const UNITS = [
	["s", 1e9],
	["ms", 1e6],
	["µs", 1e3],
	["ns", 1],
];

// "124.4 µs" from ns; "–" for what is not known.
function time(ns) {
	if (ns === null || ns === undefined || Number.isNaN(ns)) return "–";
	if (ns === 0) return "0";
	const [unit, size] = UNITS.find(([, s]) => Math.abs(ns) >= s) || UNITS[3];
	const value = ns / size;
	return `${size === 1 ? Math.round(value) : value.toPrecision(value >= 100 ? 4 : 3)} ${unit}`;
}

function count(value) {
	return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	if (value === null || value === undefined) return "–";
	for (; value >= 1024 && i < units.length - 1; i++) value /= 1024;
	return `${i ? value.toPrecision(4) : value} ${units[i]}`;
}

function percent(share) {
	return `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
}

// The bounds of a bucket in ns (docs/run-document.md): below 64 one bucket for each value, above 64 to an octave.
function bucketUpper(index) {
	const octave = Math.floor(index / 64);
	const lower = octave ? (64 + (index % 64)) * 2 ** (octave - 1) : index;
	return lower + (octave ? 2 ** (octave - 1) : 1) - 1;
}

// Nearest rank, the bucket's upper edge, never above the maximum: as histogram_quantile() of lib/ does it.
function quantile(histogram, q) {
	const rank = Math.max(1, Math.ceil(q * histogram.count - q * histogram.count * 4 * Number.EPSILON));
	let seen = 0;
	for (const [index, n] of histogram.buckets) {
		seen += n;
		if (seen >= rank && index !== 2239) return Math.min(bucketUpper(index), histogram.max_ns);
	}
	return histogram.max_ns;
}

function measured(stage) {
	return Boolean(stage && stage.measured !== false && stage.count);
}

// The service that the driver loaded, which lib/ tells; without a driver, that with most exchanges.
function mainService(run) {
	const driven = data.driven[data.runs.indexOf(run)];
	if (run.driver) return driven === null ? null : run.services[driven];
	return [...(run.services || [])].sort((a, b) => b.exchanges - a.exchanges)[0] || null;
}

function serviceName(service) {
	const address = service.address.includes(":") ? `[${service.address}]` : service.address;
	const process = service.processes && service.processes[0];
	return `${service.protocol} ${address}:${service.port}${process ? ` · ${process.comm} ${process.pid}` : ""}`;
}

// A joined exchange, or the sum of several, as {part: ns}; `divide` gives means.
function partsOf(sum, divide) {
	const parts = {wait: sum.wait_ns / divide, network: sum.network_ns / divide};
	for (const stage of [...RESIDENCE, "transmit_queue"]) {
		if (sum.stages[stage] !== null && sum.stages[stage] !== undefined)
			parts[stage] = sum.stages[stage] / divide;
	}
	return parts;
}

/*
 * The mean round trip over all requests of the run: what the stages leave is network and client. Where
 * the observer counted other clients' exchanges too, only the joined ones can tell, and they are taken.
 */
function meanParts(run) {
	const service = mainService(run);
	const driver = run.driver;
	if (run.joined && run.joined.joined && run.joined.other_clients)
		return {parts: partsOf(run.joined.sum, run.joined.joined), of: "joined exchanges"};
	if (!service || !service.exchanges) return null;
	const parts = {};
	for (const name of RESIDENCE) {
		if (name === "accept_queue") parts[name] = (service.accept_delay_ns || 0) / service.exchanges;
		else if (measured(service.stages[name])) parts[name] = service.stages[name].mean_ns;
	}
	if (measured(service.stages.transmit_queue)) parts.transmit_queue = service.stages.transmit_queue.mean_ns;
	if (driver && driver.requests && driver.round_trip.count) {
		const inside = Object.values(parts).reduce((a, b) => a + b, 0);
		parts.network = driver.round_trip.mean_ns - inside;
		if (driver.response_time.count)
			parts.wait = driver.response_time.mean_ns - driver.round_trip.mean_ns;
		// Means of different sets of exchanges (a sampled transmit queue) may contradict each other by a little.
		if (parts.network < 0 && run.joined && run.joined.joined)
			return {parts: partsOf(run.joined.sum, run.joined.joined), of: "joined exchanges"};
	}
	return {parts, of: driver ? "all requests" : "all exchanges at the server"};
}

// Correct for text, never HTML: names of processes and reasons come from elsewhere.
function element(tag, attributes = {}, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name === "style") node.style.cssText = value;
		else if (value !== null && value !== undefined) node.setAttribute(name, value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

// A table cell that says which member of the document it shows, so that it can be compared.
function cell(text, path, value) {
	return element("td", path ? {"data-member": path, "data-value": value} : {}, text);
}

function table(head, rows) {
	return element("div", {class: "scroll"}, element("table", {},
		element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {}, text)))),
		element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(
			(value) => (value instanceof Node ? value : element("td", {}, value))))))));
}
