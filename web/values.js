// SPDX-License-Identifier: MIT
// Interprets run documents: histograms, parts of a round trip, and figures for people.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// The stages of a residence in their order, then those of the response on its way.
const RESIDENCE = ["accept_queue", "socket_queue", "receive", "service", "respond"];
const STAGES = [...RESIDENCE, "transmit_queue", "ack"];
// The drawn parts of a round trip. The last one is negative: the time of stages after its end.
const PARTS = ["wait", "network", ...RESIDENCE, "transmit_queue", "overhang"];
const NAMES = {
	overhang: "after its end",
	wait: "not yet sent",
	network: "network + client",
	round_trip: "round trip",
	response_time: "response time",
	transmit_queue: "transmit queue",
	accept_queue: "accept queue",
	socket_queue: "socket queue",
};

// Return whether the accept queue's end was inferred from the first read. Then it may include the wait for that read.
function isInferred(stages) {
	const accept = stages && stages.accept_queue;
	return Boolean(accept && accept.measured !== false && accept.source === "inferred");
}

// The page has one name for a part in all of its runs.
const inferred = data.runs.flatMap((run) => run.services || []).filter((service) => isInferred(service.stages));
if (inferred.length) NAMES.accept_queue = "accept or socket queue";

function nameOf(part) {
	return NAMES[part] || part.replaceAll("_", " ");
}

// Format figures as lib/base/units.c and lib/report/page/print.c do: three significant digits, or a whole number.
function digits(value) {
	return value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0);
}

// Format ns as "124 µs", and unknown values as "–".
function time(ns) {
	if (ns === null || ns === undefined || Number.isNaN(ns)) return "–";
	const units = ["ns", "µs", "ms", "s"];
	let value = Math.abs(ns) <= 0.5 ? 0 : ns, i = 0;
	for (; Math.abs(value) >= 999.5 && i < units.length - 1; i++) value /= 1000;
	return `${i ? digits(value) : Math.round(value)} ${units[i]}`;
}

function count(value) {
	return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

// Format a rate per second, without the unit.
function perSecond(value) {
	if (value === null || value === undefined || Number.isNaN(value)) return "–";
	return value >= 99.95 || value <= 0 || Math.abs(value - Math.round(value)) < 0.005 ? count(value) : digits(value);
}

function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	if (value === null || value === undefined) return "–";
	for (; value >= 999.5 && i < units.length - 1; i++) value /= 1024;
	return `${i ? digits(value) : value} ${units[i]}`;
}

function percent(share) {
	const value = 100 * share;
	if (value > 0 && value < 0.05) return "<0.1 %";
	if (Math.abs(value) < 9.95) return `${(Math.abs(value) < 0.05 ? 0 : value).toFixed(1)} %`;
	return `${value >= 99.5 && value < 100 ? Math.min(value, 99.9).toFixed(1) : value.toFixed(0)} %`;
}

// Format a relative difference in percent, with its sign.
function change(share) {
	const value = 100 * share;
	return `${value > 0 ? "+" : ""}${value.toFixed(Math.abs(value) < 99.95 ? 1 : 0)} %`;
}

// Return the upper bound of a bucket in ns (docs/run-document.md): each value below 64 has one, each octave above 64.
function bucketUpper(index) {
	const octave = Math.floor(index / 64);
	const lower = octave ? (64 + (index % 64)) * 2 ** (octave - 1) : index;
	return lower + (octave ? 2 ** (octave - 1) : 1) - 1;
}

// Return a quantile by nearest rank: the bucket's upper edge, never above the maximum. As histogram_quantile() of lib/.
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

// Why connections cannot be cut into calls, as run_uncut_help of lib/run/names.c.
const UNCUT = {
	http2: "speak HTTP/2, whose requests overlap",
	perhaps_http2: "may speak HTTP/2 in TLS",
	overlapped: "carried a request before the previous response was complete, or may have done so",
	tunnels: "became tunnels (CONNECT, status 101)",
	unseen: "carry bytes that cannot be read (io_uring, sendfile, TLS in the kernel, MPTCP)",
};

// Return why the times of calls to a place are not known; "": they are. By the rules of lib/report/observed/calls.c.
function whyCallsUnknown({calls, connects, older, handshakes, untimed, uncut}) {
	const [[why, largest]] = Object.entries(uncut).sort(([, a], [, b]) => b - a);
	const all = Object.values(uncut).reduce((a, b) => a + b, 0);
	if (all > 0.01 * (connects + older)) return `${count(largest)} of its ${count(Math.max(all, connects + older))} connections ${UNCUT[why]}`;
	if (!calls && handshakes) return `${count(handshakes)} calls were the first of their connections, which TLS's handshake hides`;
	return !calls && untimed ? `${count(untimed)} responses were read before the write of their call had returned` : "";
}

// Return the service that the driver loaded, as determined by lib/; without a driver that with most exchanges.
function mainService(run) {
	const driven = data.driven[data.runs.indexOf(run)];
	if (run.driver) return driven === null ? null : run.services[driven];
	return [...(run.services || [])].sort((a, b) => b.exchanges - a.exchanges)[0] || null;
}

// Return "pod shop/web-1" or "container web"; "" if the service runs in neither.
function placeName(service) {
	if (service.pod) return `pod ${service.pod_namespace}/${service.pod}`;
	if (service.pod_uid) return `pod ${service.pod_uid}`;
	const container = service.container || (service.container_id || "").slice(0, 12);
	return container && `container ${container}`;
}

function serviceName(service) {
	const address = service.address.includes(":") ? `[${service.address}]` : service.address;
	const process = service.processes && service.processes[0];
	const place = placeName(service);
	const host = service.host ? ` · host ${service.host}` : "";
	return `${service.protocol} ${address}:${service.port}${host}${place && ` · ${place}`}${process ? ` · ${process.comm} ${process.pid}` : ""}`;
}

// Return a joined exchange, or the sum of several, as {part: ns}; `divide` gives means.
function partsOf(sum, divide) {
	const parts = {wait: sum.wait_ns / divide, network: sum.network_ns / divide};
	for (const stage of [...RESIDENCE, "transmit_queue"]) {
		if (sum.stages[stage] !== null && sum.stages[stage] !== undefined)
			parts[stage] = sum.stages[stage] / divide;
	}
	if (sum.overhang_ns) parts.overhang = -sum.overhang_ns / divide;
	return parts;
}

// Return the responses per second in the measured phase, of a driver or of one of its rows.
function rateOf(counted, driver) {
	return (counted.requests - (counted.drained || 0)) / (driver.duration_ns / 1e9);
}

// Return the member of a sum that has this part, and its value.
function memberOf(sum, part) {
	const plain = ["wait", "network", "overhang"].includes(part);
	return plain ? [`${part}_ns`, sum[`${part}_ns`]] : [`stages.${part}`, sum.stages[part]];
}

// Return whether joined exchanges are better than the service's means: all were joined, or it also served others.
function isOfJoined(run) {
	const {driver, joined} = run;
	return Boolean(driver && joined && joined.joined &&
		(joined.joined === driver.requests || joined.other_clients));
}

function joinedParts(run) {
	const {joined, sum} = run.joined;
	return {parts: partsOf(sum, joined), of: joined === run.driver.requests
		? `the driver's ${count(joined)} requests, all joined`
		: `the ${count(joined)} joined of the driver's ${count(run.driver.requests)} requests`};
}

// Return why the service's means cannot be subtracted from the driver's.
function whyUnknown(run, service) {
	return service.exchanges > run.driver.requests
		? "the service's means are also of requests by others or given up, and no exchange was joined"
		: "the stages hold more than the driver's round trips, and no exchange was joined";
}

/*
 * Return the mean round trip and its parts, by the rules of lib/report/observed/means.c. They are of the driver's own exchanges if
 * all were joined, or if the service also served others. Otherwise network and client is the driver's mean without the
 * service's. It is never negative: `unknown` says why it is missing.
 */
function meanParts(run) {
	const service = mainService(run);
	const driver = run.driver;
	const joined = driver && run.joined && run.joined.joined;
	if (isOfJoined(run)) return joinedParts(run);
	if (!service || !service.exchanges) return null;
	const parts = {}, timed = service.stages.service.count;
	for (const name of RESIDENCE) {
		if (name === "accept_queue") parts[name] = timed ? (service.accept_delay_ns || 0) / timed : 0;
		else if (measured(service.stages[name])) parts[name] = service.stages[name].mean_ns;
	}
	if (measured(service.stages.transmit_queue)) parts.transmit_queue = service.stages.transmit_queue.mean_ns;
	if (!driver || !driver.requests || !driver.round_trip.count)
		return {parts, of: driver ? "all requests" : "all exchanges at the server"};
	const network = driver.round_trip.mean_ns - Object.values(parts).reduce((a, b) => a + b, 0);
	if (network < -0.5)
		return joined ? joinedParts(run)
			: {parts, of: "all exchanges at the server", unknown: whyUnknown(run, service)};
	parts.network = Math.max(0, network);
	if (driver.response_time.count)
		parts.wait = driver.response_time.mean_ns - driver.round_trip.mean_ns;
	return {parts, of: "all requests"};
}

// Make an element. Its text is never parsed as HTML, because names of processes and reasons come from elsewhere.
function element(tag, attributes = {}, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name === "style") node.style.cssText = value;
		else if (value !== null && value !== undefined) node.setAttribute(name, value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

// Make a table cell that says which member of the document it shows, so that it can be compared.
function cell(text, path, value) {
	return element("td", path ? {"data-member": path, "data-value": value} : {}, text);
}

function table(head, rows) {
	// The heading of a column of text stands above the text.
	const kind = (column) => (rows[0]?.[column] instanceof Node && rows[0][column].classList.contains("text") ? {class: "text"} : {});
	// Scrollable parts can be scrolled by keys, too.
	return element("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": `table: ${head.filter(Boolean).join(", ")}`}, element("table", {},
		element("thead", {}, element("tr", {}, ...head.map((text, column) => element(text ? "th" : "td", kind(column), text)))),
		element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(
			(value) => (value instanceof Node ? value : element("td", {}, value))))))));
}

// Show a finding and its remedy.
function finding(item) {
	const node = element("div", {class: `finding ${item.severity}`},
		element("b", {class: {critical: "bad", notice: ""}[item.severity] ?? "warn"}, `${item.severity}: `),
		`${item.what || item.id} (${item.object})`);
	for (const text of [item.outlook, item.change, item.risk && `Risk: ${item.risk}`])
		if (text) node.append(element("p", {}, text));
	if (item.command) node.append(element("pre", {}, item.command));
	if (item.evidence && item.evidence.length)
		node.append(element("details", {}, element("summary", {}, "evidence"), ...item.evidence.map((text) => element("p", {}, text))));
	return node;
}
