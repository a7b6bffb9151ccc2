// SPDX-License-Identifier: MIT
// The page of `sojourn serve`: asks for the services again and again, and shows what changed in between.
"use strict";

const PERIOD_MS = 2000;
const KEPT = 150; // readings: five minutes
const history = [];
let previous = null;

async function ask(path) {
	const token = sessionStorage.getItem("token");
	const answer = await fetch(path, {headers: token ? {Authorization: `Bearer ${token}`} : {}});
	if (answer.status === 401) {
		sessionStorage.setItem("token", prompt("Token of this endpoint") || "");
		throw new Error("a token is needed");
	}
	if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
	return answer.json();
}

function keyOf(service) {
	return `${service.netns} ${service.protocol} ${service.port}`;
}

// So many replies without a request that the times of the others do not stand for them: lib/run/doubt.c.
function isDoubtful(service, before) {
	const came = (value, old) => Math.max(0, (value || 0) - (old || 0));
	return came(service.losses.ambiguous_replies, before.losses.ambiguous_replies) >
		Math.floor(came(service.exchanges, before.exchanges) / 10);
}

// Why the service's own time since `before` is not known; null: it is.
function whyNotKnown(service, before) {
	const [now, old] = [service.stages.service, before.stages.service];
	if (now.measured === false) return now.reason || "no reason given";
	if (old.measured === false) return "not known before";
	return isDoubtful(service, before) ? "replies cannot be matched to their requests" : null;
}

// What of a stage's histogram came since `before`.
function since(stage, before) {
	if (!measured(stage) || (before && before.measured === false)) return null;
	const old = new Map(before && before.buckets ? before.buckets : []);
	const buckets = stage.buckets.map(([index, n]) => [index, Math.max(0, n - (old.get(index) || 0))]).filter(([, n]) => n);
	const total = buckets.reduce((sum, [, n]) => sum + n, 0);
	return {count: total, buckets, max_ns: stage.max_ns};
}

// A reading's figures, per second and since the one before.
function reading(service, before, seconds, missed) {
	const unknown = whyNotKnown(service, before);
	const stage = (name) => (name === "service" && unknown ? null : since(service.stages[name], before.stages[name]));
	const rate = (member) => (service[member] - before[member]) / seconds;
	const at = (histogram, q) => (histogram && histogram.count ? quantile(histogram, q) : NaN);
	const queue = service.accept_queue || {};
	const fullest = [...(service.processes || [])].sort((a, b) => b.open_fds / b.fd_limit - a.open_fds / a.fd_limit)[0];
	return {
		unknown, requests: rate("exchanges"), accepts: rate("accepted"),
		service50: at(stage("service"), 0.5), service99: at(stage("service"), 0.99),
		queue50: at(stage("socket_queue"), 0.5), queue99: at(stage("socket_queue"), 0.99),
		depth: queue.depth, limit: queue.limit, time_wait: service.time_wait,
		fds: fullest && fullest.open_fds, fd_limit: fullest && fullest.fd_limit,
		lost: (service.losses.storage_failed || 0) + missed,
		open: service.open && service.open.read + service.open.unread, oldest: service.open && service.open.oldest_ns,
		untimed: (service.losses.untimed || 0) + (service.losses.cut_off || 0),
	};
}

function remember(run) {
	const now = performance.now() / 1000;
	const services = new Map();
	const missed = ((run.cost && run.cost.programs) || []).reduce((sum, p) => sum + p.recursion_misses, run.services_dropped || 0);
	for (const service of run.services || []) {
		const before = previous && previous.services.get(keyOf(service));
		if (before) services.set(keyOf(service), reading(service, before, now - previous.at, missed));
	}
	previous = {at: now, services: new Map((run.services || []).map((s) => [keyOf(s), s]))};
	if (!services.size) return;
	history.push({at: now, services});
	if (history.length > KEPT) history.shift();
}

function ownTime(now, ns) {
	return now.unknown ? element("td", {class: "dim", title: now.unknown}, "not known") : time(ns);
}

function servicesTable(run) {
	const last = history[history.length - 1];
	if (!last) return element("p", {class: "dim"}, "Waiting for the second reading…");
	const rows = (run.services || []).filter((service) => last.services.has(keyOf(service)))
		.sort((a, b) => last.services.get(keyOf(b)).requests - last.services.get(keyOf(a)).requests);
	return table(["service", "requests/s", "accepts/s", "service p50", "p99", "socket queue p50", "p99", "accept queue",
		"TIME_WAIT", "fds", "open requests", "not timed", "lost"], rows.map((service) => {
		const now = last.services.get(keyOf(service));
		return [element("td", {class: "text"}, serviceName(service)), count(now.requests), count(now.accepts),
			ownTime(now, now.service50), ownTime(now, now.service99), time(now.queue50), time(now.queue99),
			`${count(now.depth)}/${count(now.limit)}`, count(now.time_wait), `${count(now.fds)}/${count(now.fd_limit)}`,
			now.open ? `${count(now.open)}${now.oldest ? ` (${time(now.oldest)})` : ""}` : "",
			element("td", {class: now.untimed ? "dim" : null}, count(now.untimed)),
			element("td", {class: now.lost ? "bad" : null, "data-member": `exchanges ${service.port}`,
				"data-value": service.exchanges}, count(now.lost))];
	}));
}

function busiest() {
	const sums = new Map();
	for (const {services} of history)
		for (const [key, now] of services) sums.set(key, (sums.get(key) || 0) + now.requests);
	return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 5).map(([key]) => key);
}

const HUES = ["service", "socket_queue", "accept_queue", "transmit_queue", "ack"];

function lines(member) {
	const end = history[history.length - 1].at;
	return busiest().map((key, i) => ({
		name: HUES[i], label: key.split(" ").slice(1).join(" "),
		points: history.filter(({services}) => services.has(key)).map(({at, services}) => ({
			x: at - end + KEPT * PERIOD_MS / 1000, y: services.get(key)[member] ?? NaN})),
	}));
}

const CHARTS = [
	["requests", "requests per second", count],
	["service99", "service, p99", time],
	["queue99", "socket queue, p99", time],
	["depth", "accept queue", count],
	["time_wait", "TIME_WAIT", count],
	["fds", "descriptors", count],
];

const main = document.querySelector("main");
const status = element("p", {class: "dim"});
const tableAt = element("section");
const findingsAt = element("section");
const chartsAt = element("section");
main.append(status, tableAt, findingsAt, chartsAt);

function drawCharts() {
	if (history.length < 2) return;
	if (!drawn.length)
		for (const [member, label, format] of CHARTS)
			series(chartsAt, label, lines(member), {format, end: KEPT * PERIOD_MS / 1000}).member = member;
	for (const entry of drawn) {
		const now = lines(entry.member);
		if (entry.chart.data.datasets.length !== now.length) {
			entry.remake(now);
			continue;
		}
		now.forEach((line, i) => Object.assign(entry.chart.data.datasets[i], {label: line.label, data: line.points}));
		entry.chart.update("none");
	}
}

function drawFindings(run) {
	const found = run.findings || [];
	const nodes = found.map((item) => element("div", {class: `finding ${item.severity}`},
		element("b", {class: {critical: "bad", notice: ""}[item.severity] ?? "warn"}, `${item.severity}: `),
		`${item.what || item.id} (${item.object})`, item.command ? element("pre", {}, item.command) : null));
	if (!found.length && run.not_seen) nodes.push(element("p", {class: "good"}, "Nothing is running out on this host."));
	findingsAt.replaceChildren(...nodes);
}

async function step() {
	try {
		const [run, judged] = await Promise.all([ask("/api/v1/services"), ask("/api/v1/findings")]);
		remember(run);
		status.textContent = `${run.tool} · host ${run.host} · kernel ${run.kernel} · since ${run.started_at}`;
		status.className = "dim";
		tableAt.replaceChildren(servicesTable(run));
		drawFindings(judged);
		drawCharts();
	} catch (error) {
		status.textContent = `no answer: ${error.message}`;
		status.className = "bad";
	}
	setTimeout(step, PERIOD_MS);
}

step();
