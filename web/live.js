// SPDX-License-Identifier: MIT
// The page of `sojourn serve`. The server keeps the past; the page fetches it repeatedly and draws it.
"use strict";

const POLL_MS = 2000;
// The shortest time that a rate covers: within a few milliseconds one request more or less would be hundreds per second.
const RATE_NS = 1e9;
// The time that "now" covers, where figures are not the difference of two readings.
const RECENT_NS = 10e9;
// In seconds: length of the window, a point of the sparklines, a point of the charts, and the time between requests.
const WINDOWS = [
	{label: "10 minutes", last: 600, step: 10, detail: 1, every: 2},
	{label: "1 hour", last: 3600, step: 60, detail: 10, every: 10},
	{label: "24 hours", last: 86400, step: 900, detail: 10, every: 60},
];
const NOW = "/v1/past?last=600&step=10";
const JUDGED_S = 10;

const CLIENTS_S = 10;
// Stages whose latencies are kept for each reading, and the number of readings kept.
const HEATED = ["socket_queue", "service"];
const HEAT_READINGS = 300;

const state = {span: WINDOWS[0], paused: false, sort: "requests", down: true, filter: "", now: null, before: null, earlier: [],
	past: null, judged: null, detail: null, clients: null, asked: {}, heat: new Map()};

// ---- asking ----

async function ask(path) {
	const token = sessionStorage.getItem("token");
	const answer = await fetch(path, {headers: token ? {Authorization: `Bearer ${token}`} : {}});
	if (answer.status === 401) {
		const given = prompt("Token of this endpoint");
		if (given === null) pause(true);
		sessionStorage.setItem("token", given || "");
		throw new Error("a token is needed");
	}
	if (answer.ok) return answer.json();
	const {error} = await answer.json().catch(() => ({}));
	throw new Error(error || `${path}: ${answer.status}`);
}

// Fetch data that change slowly: again only after `seconds`, or at once for another path.
async function askEvery(name, path, seconds) {
	const last = state.asked[name];
	const time = performance.now() / 1000;
	if (last && last.path === path && time - last.time < seconds - 0.5) return;
	state[name] = path ? await ask(path) : null;
	state.asked[name] = {path, time};
}

async function askAll() {
	const {span} = state;
	const opened = openService();
	const run = await ask(NOW);
	const earlier = [state.now, ...state.earlier].filter((one) => one && one.started_at === run.started_at && one.duration_ns < run.duration_ns);
	const at = earlier.findIndex((one) => run.duration_ns - one.duration_ns >= RATE_NS);
	keepHeat(earlier[0], run);
	state.earlier = at < 0 ? earlier : earlier.slice(0, at + 1);
	state.before = earlier[at] || null;
	state.now = run;
	await Promise.all([
		askEvery("judged", "/v1/findings", JUDGED_S),
		askEvery("past", span.last > 600 ? `/v1/past?last=${span.last}&step=${span.step}` : null, span.every),
		askEvery("detail", opened ? `/v1/past?last=${span.last}&step=${span.detail}&port=${opened.port}` : null, span.every),
		askEvery("clients", opened && opened.protocol === "tcp" ? `/v1/clients?port=${opened.port}` : null, CLIENTS_S)
			.catch((error) => { state.clients = {error: error.message}; }),
	]);
}

// ---- frequencies of latencies ----

// Return the difference of two readings, {row: count}, with two rows to an octave.
function heatBetween(before, now) {
	const rows = {};
	for (const [sign, histogram] of [[1, now], [-1, before]])
		for (const [index, n] of (histogram && histogram.buckets) || []) rows[index >> 5] = (rows[index >> 5] || 0) + sign * n;
	return rows;
}

// Keep a service's latencies between two readings. The server keeps none, so they begin when the page is opened.
function keepHeat(earlier, now) {
	if (!earlier) return;
	const began = Date.parse(now.started_at) / 1000;
	const [begin, end] = [earlier, now].map((run) => began + run.duration_ns / 1e9);
	for (const service of now.services || []) {
		const before = serviceLike(earlier, keyOf(service));
		const kept = state.heat.get(keyOf(service)) || [];
		if (!before) continue;
		kept.push({begin, end, ...Object.fromEntries(HEATED.map((stage) => [stage, heatBetween(before.stages[stage], service.stages[stage])]))});
		state.heat.set(keyOf(service), kept.slice(-HEAT_READINGS));
	}
}

function cellsOf(key, stage, from) {
	return (state.heat.get(key) || []).filter(({end}) => end > from).flatMap(({begin, end, [stage]: rows}) => Object.entries(rows)
		.filter(([, n]) => n > 0).map(([row, n]) => ({begin, end, n, from: row > 0 ? bucketUpper(32 * row - 1) + 1 : 1, to: bucketUpper(32 * row + 31) + 1})));
}

// ---- figures of a service ----

function keyOf(service) {
	return `${service.protocol}:${service.port}:${service.netns}`;
}

function serviceLike(run, key) {
	return ((run && run.services) || []).find((service) => keyOf(service) === key);
}

// Return the service that the address names: "#tcp:8080".
function openService() {
	const wanted = location.hash.slice(1);
	return wanted && state.now ? (state.now.services || []).find((service) => `${keyOf(service)}:`.startsWith(`${wanted}:`)) : null;
}

// Return the newest points that make ten seconds together. An idle one may be longer, and then counts in part.
function recentOf(columns) {
	const points = [];
	let left = RECENT_NS;
	for (let i = columns.begin_ns.length - 1; i >= 0 && left > 0; i--) {
		points.push(i);
		left -= columns.duration_ns[i];
	}
	const oldest = points[points.length - 1];
	const spare = left < 0 && !columns.exchanges[oldest] ? -left : 0;
	return {points, ns: RECENT_NS - left - spare};
}

function sumOf(points, column) {
	return column ? points.reduce((sum, i) => sum + (column[i] || 0), 0) : 0;
}

function speaksHttp2(service) {
	const {connections, older} = service.http2 || {};
	return service.losses.multiplexed || connections || older;
}

// Return why the times of a service are not known; null: they are.
function whyNotKnown(service, recent) {
	const {series: columns, stages, losses} = service;
	const ambiguous = sumOf(recent.points, columns.losses && columns.losses.ambiguous_replies);
	if (stages.service.measured === false) return stages.service.reason || "no reason given";
	// By the rules of lib/run/doubt.c and lib/report/verdict.c.
	if (ambiguous > Math.floor(sumOf(recent.points, columns.exchanges) / 10)) return "replies cannot be matched to their requests";
	const {older, connections} = service.http2 || {};
	const late = older && !service.exchanges, unknown = losses.multiplexed;
	if (late || (unknown * 2 >= service.accepted && unknown > (connections || 0)))
		return "the service speaks HTTP/2, whose requests overlap on a connection";
	return null;
}

// Return a percentile of the last ten seconds: that of the point with most requests, because percentiles do not add.
function percentileOf(columns, stage, recent) {
	const kept = columns.stages && columns.stages[stage];
	const known = recent.points.filter((i) => kept && kept.p99_ns && (kept.p99_ns[i] ?? null) !== null);
	if (!known.length) return null;
	return kept.p99_ns[known.reduce((a, b) => (kept.count[b] > kept.count[a] ? b : a))];
}

const BAR = ["socket_queue", "receive", "service", "respond"];

function meansOf(columns, recent) {
	return Object.fromEntries(BAR.map((stage) => {
		const kept = columns.stages && columns.stages[stage];
		const times = kept ? sumOf(recent.points, kept.count) : 0;
		return [stage, times ? sumOf(recent.points, kept.sum_ns) / times : 0];
	}));
}

// Return a rate per second between two documents, by their own durations. If there are none, use the newest points.
function rateBetween(service, member, recent) {
	const before = serviceLike(state.before, keyOf(service));
	if (before && before[member] <= service[member]) return (service[member] - before[member]) / ((state.now.duration_ns - state.before.duration_ns) / 1e9);
	return recent.ns ? sumOf(recent.points, service.series[member]) / (recent.ns / 1e9) : NaN;
}

function lostOf(service) {
	return (service.losses.storage_failed || 0) + ((service.samples && service.samples.lost) || 0);
}

// Return the process that is nearest to its limit of descriptors.
function fullestOf(service) {
	return [...(service.processes || [])].filter((p) => p.open_fds !== null && p.fd_limit)
		.sort((a, b) => b.open_fds / b.fd_limit - a.open_fds / a.fd_limit)[0];
}

function figuresOf(service) {
	const {series: columns} = service;
	const recent = recentOf(columns);
	const unknown = whyNotKnown(service, recent);
	const waits = ["socket_queue", "accept_queue"].map((stage) => ({stage, ns: percentileOf(columns, stage, recent)}))
		.filter(({ns}) => ns !== null).sort((a, b) => b.ns - a.ns);
	const means = meansOf(columns, recent);
	return {
		service, unknown, waits, means, name: serviceName(service), requests: rateBetween(service, "exchanges", recent),
		stages: Object.values(means).reduce((a, b) => a + b, 0), waiting: waits.length ? waits[0].ns : null,
		service99: unknown ? null : percentileOf(columns, "service", recent),
		open: service.open && (service.open.read ?? null) !== null ? service.open.read + (service.open.unread || 0) : null,
		oldest: service.open && service.open.oldest_ns,
		queue: service.accept_queue || {}, process: fullestOf(service), lost: lostOf(service),
		untimed: (service.losses.untimed || 0) + (service.losses.cut_off || 0),
	};
}

// ---- the past of a service, for charts ----

// Return the points of the window, as {i: index, begin, end} in ns. A long quiet time also has a point at its start.
function pointsWithin(columns, from, step) {
	const points = [];
	columns.begin_ns.forEach((begin, i) => {
		const end = begin + columns.duration_ns[i];
		const quiet = !columns.exchanges[i];
		if (end <= from || (begin < from - 1.5 * step && !quiet)) return;
		const first = Math.max(begin, from);
		if (quiet && end - first > 2 * step) points.push({i, begin: first, end: first + step}, {i, begin: first + step, end});
		else points.push({i, begin: first, end});
	});
	return points;
}

function picked(value, points) {
	if (Array.isArray(value)) return points.map(({i}) => value[i]);
	if (value === null || typeof value !== "object") return value;
	return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, picked(inner, points)]));
}

// Return the service with only the past of the window, in ns since 1970.
function within(service, run, last, step) {
	const started = Date.parse(run.started_at) * 1e6;
	const points = pointsWithin(service.series, beginOf(run, last), step * 1e9);
	return {...service, series: {...picked(service.series, points), begin_ns: points.map(({begin}) => started + begin),
		duration_ns: points.map(({begin, end}) => end - begin)}};
}

// Return the start of the window, in ns since the start of the observation.
function beginOf(run, last) {
	return Math.max(0, Math.min(run.duration_ns - last * 1e9, run.duration_ns - 60e9));
}

function svg(tag, attributes, ...children) {
	const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
	node.append(...children);
	return node;
}

function sparkline(service) {
	const {span} = state;
	const run = state.past && span.last > 600 ? state.past : state.now;
	const kept = serviceLike(run, keyOf(service)) || service;
	const from = beginOf(run, span.last);
	const points = kept.series ? pointsWithin(kept.series, from, span.step * 1e9) : [];
	const rates = points.map(({i, begin, end}) => ({at: end, rate: kept.series.exchanges[i] ? kept.series.exchanges[i] / ((end - begin) / 1e9) : 0}));
	const most = Math.max(1e-9, ...rates.map(({rate}) => rate));
	const place = ({at, rate}) => `${(100 * (at - from) / Math.max(1, run.duration_ns - from)).toFixed(1)},${(27 - 25 * rate / most).toFixed(1)}`;
	return svg("svg", {class: "spark", viewBox: "0 0 100 28", preserveAspectRatio: "none", role: "img",
		"aria-label": `requests per second in the last ${span.label}: at most ${count(most < 1e-6 ? 0 : most)}`},
	svg("polyline", {points: rates.map(place).join(" ")}));
}

// ---- the table ----

function meter(label, value, limit) {
	if ((value ?? null) === null || !limit) return element("span", {class: "dim"}, "–");
	const share = Math.min(1, value / limit);
	return element("span", {class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": limit,
		"aria-valuenow": Math.min(value, limit), "aria-valuetext": `${count(value)} of ${count(limit)}`},
	element("span", {class: "track"}, element("i", {class: share > 0.8 ? "full" : null, style: `width:${(100 * share).toFixed(1)}%`})),
	`${count(value)} / ${count(limit)}`);
}

function barCell(now) {
	if (now.unknown) return [element("span", {class: "dim", title: now.unknown}, "not known")];
	if (!now.stages) return [element("span", {class: "dim"}, "–")];
	return [partBar(now.means), element("span", {class: "dim"}, time(now.stages))];
}

function waitingCell(now) {
	if (!now.waits.length) return ["–"];
	const [{stage, ns}] = now.waits;
	const slow = ns > 5e6 && ns > (now.service99 || 0);
	return [element("span", {class: slow ? "warn" : null, title: `p99 of the last ten seconds, ${nameOf(stage)}`}, time(ns)),
		stage === "accept_queue" ? element("small", {class: "dim"}, " accept") : ""];
}

function openCell(now) {
	return [count(now.open), now.oldest ? element("small", {class: "dim"}, ` oldest ${time(now.oldest)}`) : ""];
}

// `of`: the sort key of the column; without one it cannot be sorted.
const COLUMNS = [
	{id: "name", label: "service", of: (now) => now.name},
	{id: "requests", label: "requests/s", of: (now) => now.requests, cell: (now) => [perSecond(now.requests)]},
	{id: "past", label: "", cell: (now) => [sparkline(now.service)]},
	{id: "stages", label: "mean time at the server", of: (now) => now.stages, cell: barCell},
	{id: "waiting", label: "p99 waiting", of: (now) => now.waiting, cell: waitingCell},
	{id: "service99", label: "p99 service", of: (now) => now.service99, cell: (now) => [now.unknown
		? element("span", {class: "dim", title: now.unknown}, "not known") : time(now.service99)]},
	{id: "open", label: "open requests", of: (now) => now.open, cell: openCell},
	{id: "queue", label: "accept queue", of: (now) => (now.queue.limit ? now.queue.depth / now.queue.limit : null),
		cell: (now) => [meter("accept queue", now.queue.depth, now.queue.limit)]},
	{id: "fds", label: "descriptors", of: (now) => (now.process ? now.process.open_fds / now.process.fd_limit : null),
		cell: (now) => [meter("descriptors", now.process && now.process.open_fds, now.process && now.process.fd_limit)]},
];

const rows = new Map();

function makeRow(now) {
	const key = keyOf(now.service);
	const button = element("button", {type: "button", class: "which", "aria-controls": "detail"});
	const lost = element("small", {class: "bad"});
	const cells = COLUMNS.slice(1).map(({id, label}) => element("td", {role: "cell", "data-label": label, class: id}));
	const node = element("tr", {role: "row"}, element("th", {scope: "row", role: "rowheader"}, button, lost), ...cells);
	button.addEventListener("click", () => {
		location.hash = key === openKey() ? "" : key;
	});
	return {node, button, lost, cells};
}

function openKey() {
	const service = openService();
	return service ? keyOf(service) : null;
}

function updateRow(row, now) {
	row.button.replaceChildren(...now.name.split(" · ").map((text, i) => element(i ? "small" : "span", {}, i ? ` ${text}` : text)));
	row.button.setAttribute("aria-expanded", keyOf(now.service) === openKey());
	row.lost.textContent = now.lost ? ` lost ${count(now.lost)}` : "";
	row.cells.forEach((cell, i) => cell.replaceChildren(element("span", {}, ...COLUMNS[i + 1].cell(now))));
	row.cells[0].setAttribute("data-member", `exchanges ${now.service.port}`);
	row.cells[0].setAttribute("data-value", now.service.exchanges);
}

function compareRows(a, b) {
	const {of} = COLUMNS.find(({id}) => id === state.sort);
	const [x, y] = [of(a), of(b)].map((value) => value ?? -1);
	const order = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y;
	return (state.down ? -order : order) || a.name.localeCompare(b.name, "en", {numeric: true});
}

function drawTable() {
	const all = (state.now.services || []).filter((service) => service.series).map(figuresOf);
	const shown = all.filter(({name}) => name.toLowerCase().includes(state.filter.toLowerCase())).sort(compareRows);
	const keys = new Set(shown.map(({service}) => keyOf(service)));
	for (const [key, row] of rows)
		if (!keys.has(key)) {
			row.node.remove();
			rows.delete(key);
		}
	const focused = document.activeElement;
	shown.forEach((now, i) => {
		const key = keyOf(now.service);
		if (!rows.has(key)) rows.set(key, makeRow(now));
		const row = rows.get(key);
		updateRow(row, now);
		if (body.children[i] !== row.node) body.insertBefore(row.node, body.children[i] || null);
	});
	if (focused && focused !== document.activeElement && body.contains(focused)) focused.focus();
	none.textContent = shown.length ? "" : all.length ? "No service has this in its name." : "No service is there yet.";
	COLUMNS.forEach(({id, of}, i) => {
		if (of) heads[i].setAttribute("aria-sort", state.sort === id ? (state.down ? "descending" : "ascending") : "none");
	});
}

function makeHead({id, label, of}) {
	if (!of) return element("td", {role: "cell"});
	const button = element("button", {type: "button"}, label);
	button.addEventListener("click", () => {
		state.down = state.sort === id ? !state.down : id !== "name";
		state.sort = id;
		if (state.now) drawTable();
	});
	return element("th", {scope: "col", role: "columnheader", class: id}, button);
}

// ---- one service ----

const detail = {key: null, shape: "", entries: new Map(), heated: new Map()};

// Return the command that loads the service. A wildcard address becomes that by which the page was reached.
function commandOf(service) {
	const any = ["0.0.0.0", "::", "*"].includes(service.address);
	const address = any ? location.hostname : service.address.includes(":") ? `[${service.address}]` : service.address;
	const scheme = service.protocol === "udp" ? "udp" : service.tls ? "https" : speaksHttp2(service) ? "h2c" : "http";
	return `sojourn-drive ${scheme}://${address}:${service.port}/ -c 8 -d 10s --observer ${location.origin}`;
}

// Without a secure context there is no clipboard: then the text is selected.
async function copy(button, code) {
	try {
		await navigator.clipboard.writeText(code.textContent);
		button.textContent = "copied";
	} catch {
		getSelection().selectAllChildren(code);
		button.textContent = "selected: press Ctrl+C";
	}
}

function closeDetail() {
	removeCharts([...detail.entries.values(), ...detail.heated.values()]);
	Object.assign(detail, {key: null, shape: "", entries: new Map(), heated: new Map()});
	detailAt.replaceChildren();
}

function openDetail(service) {
	const heading = element("h2", {tabindex: -1}, serviceName(service));
	const close = element("button", {type: "button"}, "close");
	const code = element("code", {}, commandOf(service));
	const button = element("button", {type: "button"}, "copy the sojourn-drive command");
	closeDetail();
	close.addEventListener("click", () => {
		const row = rows.get(keyOf(service));
		location.hash = "";
		if (row) row.button.focus();
	});
	button.addEventListener("click", () => copy(button, code));
	detail.key = keyOf(service);
	detail.facts = element("p", {class: "dim"});
	detail.charts = element("div");
	detail.heat = element("div", {class: "charts"});
	detail.clients = element("div");
	detail.statuses = element("div");
	detailAt.append(element("div", {class: "heading"}, heading, close), detail.facts,
		element("p", {class: "command"}, code, button), detail.charts, detail.heat, detail.statuses, detail.clients);
	heading.focus();
}

function factsOf(now) {
	const {service} = now;
	return [`${count(service.exchanges)} exchanges`, `${count(service.accepted)} accepted`,
		`${count(service.connections)} connections`, `${count(service.time_wait)} TIME_WAIT`,
		`${count(service.retransmits)} retransmits`, `not timed ${count(now.untimed)}`, `lost ${count(now.lost)}`,
		now.unknown && `times not known: ${now.unknown}`].filter(Boolean).join(" · ");
}

// Draw the heat maps in the window of the other charts. The page has seen only the end of the window.
function drawHeat(range) {
	for (const stage of HEATED) {
		const cells = cellsOf(detail.key, stage, range.begin);
		const entry = detail.heated.get(stage);
		if (entry && cells.length) entry.update(cells, range);
		else if (cells.length) detail.heated.set(stage, heatmap(detail.heat, `${nameOf(stage)}: how often which latency, since this page was opened`, stage, cells, range));
	}
}

// List the responses since the observation began by status, the most frequent first (--http).
function drawStatuses(service) {
	const {responses, grpc} = service;
	if (!responses || !responses.count) {
		detail.statuses.replaceChildren();
		return;
	}
	const shown = [...responses.statuses].sort((a, b) => b[1] - a[1]);
	if (responses.status.other) shown.push(["not known", responses.status.other]);
	detail.statuses.replaceChildren(element("h3", {}, "Responses by status, since the observation began"),
		table(["status", "responses", "share"], shown.map(([name, n]) => [String(name), count(n), percent(n / responses.count)])));
	if (!grpc) return;
	const named = Object.entries(grpc.status).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
	detail.statuses.append(table(["status of gRPC", "responses", "share"],
		named.map(([name, n]) => [name.replaceAll("_", " "), count(n), percent(n / grpc.count)])));
	const kinds = Object.entries(grpc.kinds).filter(([, n]) => n);
	detail.statuses.append(table(["calls of gRPC", "number", "share"],
		kinds.map(([name, n]) => [name.replaceAll("_", " "), count(n), percent(n / grpc.count)])),
		element("p", {}, `Messages of gRPC: in ${count(grpc.messages_in)}, out ${count(grpc.messages_out)}`));
}

// List the routes in the same way (--route), or the commands (--protocol).
function drawRoutes(service) {
	const {routes} = service;
	if (!routes) return;
	const shown = routes.list.filter((route) => route.count).sort((a, b) => b.service.sum_ns - a.service.sum_ns || b.count - a.count);
	const unknown = Object.entries(routes.not_known).filter(([, n]) => n);
	detail.statuses.append(element("h3", {}, `Responses by ${routes.protocol ? "command" : "route"}, since the observation began`),
		table([routes.protocol ? "command" : "route", "responses", ...(routes.protocol ? ["errors"] : ["4xx", "5xx"]), "service mean", "service p50", "service p99"], [
			...shown.map(({route, count: n, errors, status, service: stage}) => [route, count(n),
				...(routes.protocol ? [errors] : [status["4xx"], status["5xx"]]).map(count),
				...[stage.mean_ns, stage.p50_ns, stage.p99_ns].map((ns) => stage.count ? time(ns) : "–")]),
			...unknown.map(([reason, n]) => [`not known: ${reason}`, count(n), ...Array(routes.protocol ? 4 : 5).fill("–")])]));
}

// Return answered calls per second between the last two documents.
function callRate(service, call) {
	const before = serviceLike(state.before, keyOf(service));
	if (!before) return NaN;
	const {calls} = (before.timed_calls || []).find(({towards}) => towards === call.towards) || {calls: 0};
	return Math.max(0, call.calls - calls) / ((state.now.duration_ns - state.before.duration_ns) / 1e9);
}

// List the calls to upstreams (--calls).
function drawCalls(service) {
	const calls = service.timed_calls || [];
	if (!calls.length) return;
	detail.statuses.append(element("h3", {}, "Calls to upstreams, since the observation began"),
		table(["upstream", "calls/s", "calls", "failed", "open", "not timed", "wait mean", "wait p50", "wait p99"], calls.map((call) => {
			const why = whyCallsUnknown(call), {wait} = call;
			return [why ? `${call.towards}: not known: ${why}` : call.towards,
				why ? "–" : perSecond(callRate(service, call)), why ? "–" : count(call.calls), count(call.failed), count(call.open),
				count(call.untimed + call.handshakes),
				...[wait.mean_ns, wait.p50_ns, wait.p99_ns].map((ns) => (!why && wait.count ? time(ns) : "–"))];
		})));
	if (service.calls_lost)
		detail.statuses.append(element("p", {class: "warn"}, `${count(service.calls_lost)} connections went to places without room: their calls are not known.`));
}

function many(number, one, more) {
	return `${count(number)} ${number === 1 ? one : more}`;
}

function drawClients() {
	const {clients} = state;
	const shown = clients && clients.clients;
	detail.clients.replaceChildren(...!clients ? [] : !shown ? [element("p", {class: "dim"}, `Clients: ${clients.error}`)]
		: [element("h3", {}, `Clients now: ${many(clients.addresses, "address", "addresses")}, ${many(clients.connections, "connection", "connections")}${clients.partial ? ", some left out" : ""}`),
			shown.length ? table(["address", "connections", "share"], shown.map(({address, connections}) => [
				address, count(connections), percent(connections / clients.connections)])) : ""]);
}

function drawDetail() {
	const service = openService();
	if (!service) {
		closeDetail();
		return;
	}
	if (detail.key !== keyOf(service)) openDetail(service);
	detail.facts.textContent = factsOf(figuresOf(service));
	drawStatuses(service);
	drawRoutes(service);
	drawCalls(service);
	const kept = serviceLike(state.detail, detail.key);
	if (!kept || !kept.series) return;
	const {span} = state;
	const charts = serviceCharts(within(kept, state.detail, span.last, span.detail), true);
	const end = Date.parse(state.detail.started_at) / 1000 + state.detail.duration_ns / 1e9;
	const begin = end - (state.detail.duration_ns - beginOf(state.detail, span.last)) / 1e9;
	const range = {begin, end, absolute: true};
	drawHeat(range);
	drawClients();
	const shape = JSON.stringify(charts.map(([label, lines]) => [label, lines.filter((line) => !isZero(line)).map((line) => line.label)]));
	if (shape === detail.shape) {
		for (const [label, lines] of charts)
			if (detail.entries.has(label)) detail.entries.get(label).update(lines, range);
		return;
	}
	removeCharts(detail.entries.values());
	detail.charts.replaceChildren();
	detail.entries = putCharts(detail.charts, charts, range);
	detail.shape = shape;
}

// ---- the head ----

function healthOf(judged) {
	if (!judged) return ["asking…", "dim"];
	const found = judged.findings || [];
	const worst = ["critical", "warning"].find((severity) => found.some((item) => item.severity === severity));
	if (!judged.not_seen && !found.length) return ["not looked for", "dim"];
	return worst ? [`${worst}: ${count(found.filter((item) => item.severity === worst).length)}`, worst === "critical" ? "bad" : "warn"]
		: ["healthy", "good"];
}

function costOf(run) {
	if (!run.cost) return "";
	const before = state.before && state.before.cost;
	const cpu = before ? (run.cost.cpu_ns - before.cpu_ns) / (run.duration_ns - state.before.duration_ns) : run.cost.cpu_ns / run.duration_ns;
	return `observer: ${percent(cpu)} of a core, ${bytes(run.cost.resident_bytes + run.cost.map_bytes)}`;
}

function setText(node, text, kind) {
	if (node.textContent !== text) node.textContent = text;
	node.className = kind;
}

function drawHead() {
	const run = state.now;
	const begun = new Date(run.started_at);
	const here = new Date(begun.getTime() + run.duration_ns / 1e6);
	setText(facts.host, [run.host && `host ${run.host}`,
		run.namespaces && `${count(run.namespaces.observed)} network namespaces`].filter(Boolean).join(" · "), "");
	setText(facts.clock, here.toLocaleTimeString([], {hour12: false}), "clock");
	setText(facts.since, `since ${begun.toLocaleString([], {hour12: false})}`, "");
	setText(facts.cost, costOf(run), "");
	setText(health, ...((text, kind) => [text, `pill ${kind}`])(...healthOf(state.judged)));
}

function drawFindings() {
	const judged = state.judged;
	const found = (judged && judged.findings) || [];
	const text = JSON.stringify(found);
	if (!judged || text === findingsAt.dataset.shown) return;
	findingsAt.dataset.shown = text;
	findingsAt.replaceChildren(...found.length ? found.map(finding)
		: [judged.not_seen ? element("p", {class: "healthy good"}, "Nothing is running out on this host.")
			: element("p", {class: "dim"}, "Findings are off (--no-doctor).")]);
}

function drawLosses() {
	const {cost, services_dropped: dropped, namespaces} = state.now;
	const closed = namespaces && namespaces.not_entered + namespaces.left_out;
	const missed = ((cost && cost.programs) || []).reduce((sum, program) => sum + program.recursion_misses, 0);
	setText(losses, [dropped && `${count(dropped)} services are not observed: there is no room for them`,
		closed && `${count(closed)} network namespaces were not entered: connections and queues there are not known`,
		missed && `${count(missed)} events were missed`].filter(Boolean).join(" · "), "bad");
}

function draw() {
	if (!state.now) return;
	drawHead();
	drawFindings();
	drawLosses();
	drawTable();
	drawDetail();
}

// ---- the page ----

function pause(paused) {
	state.paused = paused;
	pauseButton.setAttribute("aria-pressed", paused);
	pauseButton.textContent = paused ? "go on" : "pause";
}

const header = document.querySelector("header");
const main = document.querySelector("main");
const health = element("span", {role: "status", class: "pill dim"}, "asking…");
const facts = Object.fromEntries(["host", "clock", "since", "cost"].map((name) => [name, element("span")]));
const pauseButton = element("button", {type: "button", "aria-pressed": "false"}, "pause");
const span = element("select", {"aria-label": "window"}, ...WINDOWS.map(({label}, i) => element("option", {value: i}, label)));
const filter = element("input", {type: "search", placeholder: "filter services", "aria-label": "filter services"});
const findingsAt = element("section", {"aria-label": "findings"});
const losses = element("p", {class: "bad"});
const heads = COLUMNS.map(makeHead);
const body = element("tbody", {role: "rowgroup"});
const none = element("p", {class: "dim"}, "Asking…");
const detailAt = element("section", {id: "detail", "aria-label": "one service"});

header.append(element("div", {class: "facts dim"}, ...Object.values(facts)), health,
	element("div", {class: "controls"}, span, pauseButton, themeButton()));
main.append(findingsAt, losses, element("section", {"aria-label": "services"},
	element("div", {class: "above"}, filter, legend(BAR.map((stage) => ({name: stage, label: nameOf(stage)}))),
		element("span", {class: "dim"}, "Times are of the last ten seconds.")),
	element("div", {class: "scroll"}, element("table", {class: "services", role: "table"},
		element("thead", {role: "rowgroup"}, element("tr", {role: "row"}, ...heads)), body)), none), detailAt);

pauseButton.addEventListener("click", () => pause(!state.paused));
span.addEventListener("change", () => {
	state.span = WINDOWS[span.value];
	closeDetail();
	step();
});
filter.addEventListener("input", () => {
	state.filter = filter.value;
	if (state.now) drawTable();
});
addEventListener("hashchange", step);

let asking = false, again = false;

// Ask and draw. If called meanwhile, do so once more afterwards.
async function step() {
	again = asking;
	if (asking) return;
	asking = true;
	try {
		await askAll();
		draw();
	} catch (error) {
		setText(health, `no answer: ${error.message}`, "pill bad");
	}
	asking = false;
	if (again) step();
}

setInterval(() => {
	if (!state.paused && !asking) step();
}, POLL_MS);
step();
