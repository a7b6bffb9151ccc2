// SPDX-License-Identifier: MIT
// The page's sections, in the order in which they are read. A section adds nothing if no run has its data.
"use strict";

const runs = data.runs;

function section(title, note) {
	const node = element("section", {}, element("h2", {}, title), note ? element("p", {class: "dim"}, note) : null);
	document.querySelector("main").append(node);
	return node;
}

// Name the run if there are several.
function title(run, text) {
	return runs.length > 1 ? `${data.names[runs.indexOf(run)]}${text ? ` · ${text}` : ""}` : text || "";
}

function path(run, member) {
	return `${runs.indexOf(run)}:${member}`;
}

// Return the headline latency: from the intended start if there is a schedule.
function latencyOf(driver) {
	return driver.response_time && driver.response_time.count ? "response_time" : "round_trip";
}

function tile(label, text, member, value, kind) {
	return element("div", {class: "tile"},
		element("span", {class: "dim"}, label),
		element("b", {class: kind, "data-member": member, "data-value": value}, text));
}

function driverTiles(run) {
	const driver = run.driver;
	const latency = latencyOf(driver);
	const errors = Object.values(driver.errors).reduce((a, b) => a + b, 0);
	const tiles = [
		tile("requests", count(driver.requests), path(run, "driver.requests"), driver.requests),
		tile("per second, at the client", perSecond(rateOf(driver, driver))),
		...["p50", "p99", "p999"].map((p) => tile(`${nameOf(latency)} ${p === "p999" ? "p99.9" : p}`,
			time(driver[latency][`${p}_ns`]), path(run, `driver.${latency}.${p}_ns`), driver[latency][`${p}_ns`])),
		tile("errors", count(errors), null, null, errors ? "bad" : "good"),
	];
	return tiles;
}

// Return the seconds from the first to the last request of a service, or else those of the whole period.
function spanOf(run, service) {
	const span = (service.last_message_ns - service.first_message_ns) / 1e9;
	return service.first_message_ns && span > 0 ? span : run.duration_ns / 1e9;
}

function serviceTiles(run, service) {
	const index = run.services.indexOf(service);
	const {stages} = service;
	const span = (service.last_message_ns - service.first_message_ns) / 1e9;
	const tiles = [];
	if (service.first_message_ns && span > 0)
		tiles.push(tile("per second, at the server", perSecond(service.exchanges / span)));
	for (const stage of ["service", "socket_queue"]) {
		if (measured(stages[stage]))
			tiles.push(...["p50", "p99"].map((p) => tile(`${nameOf(stage)} ${p}`, time(stages[stage][`${p}_ns`]),
				path(run, `services.${index}.stages.${stage}.${p}_ns`), stages[stage][`${p}_ns`])));
	}
	return tiles;
}

// Return the verdict of lib/report/ on a run: a sentence on its time, and why a round trip is not divided.
function verdictOf(run) {
	return data.verdicts[runs.indexOf(run)];
}

// Return the mean parts if the round trip can be divided.
function dividedParts(run) {
	return verdictOf(run).undivided ? null : meanParts(run);
}

function putVerdicts(run, node) {
	const verdict = verdictOf(run);
	const several = (run.services || []).length > 1;
	if (verdict.text) node.append(element("p", {class: "answer sentence"}, verdict.text));
	verdict.services.forEach((text, i) => {
		if (text) node.append(element("p", {class: several ? "answer" : "answer sentence"},
			several ? element("span", {class: "dim"}, `${serviceName(run.services[i])}: `) : null, text));
	});
}

function putBar(run, node) {
	const mean = dividedParts(run);
	const total = ({parts}) => Object.values(parts).reduce((a, b) => a + b, 0);
	if (!mean) return;
	const most = Math.max(...runs.map(dividedParts).filter(Boolean).map(total));
	if (!run.driver && run.services.length > 1)
		node.append(element("p", {class: "dim"}, `Of ${serviceName(mainService(run))}, which has most exchanges:`));
	node.append(partBar(mean.parts, most), legend(PARTS.filter((part) => drawnParts(mean.parts)[part] > 0)
		.map((part) => ({name: part, label: `${nameOf(part)} ${time(mean.parts[part])}`}))));
}

function summary(run) {
	const several = run.driver && (run.driver.targets || []).length;
	const node = section(title(run, several ? `${several} targets in turn`
		: run.driver ? run.driver.target || run.driver.scenario : "Services") || "Summary");
	if (run.driver && run.driver.limited)
		node.append(element("div", {class: "banner bad"},
			`Limited by the driver, not by the server (${run.driver.limited.by}): ${run.driver.limited.why}`));
	putVerdicts(run, node);
	putBar(run, node);
	const service = mainService(run);
	node.append(element("div", {class: "tiles"}, ...(run.driver ? driverTiles(run) : []),
		...(service ? serviceTiles(run, service) : [])));
	if (run.driver && run.driver.observer_error)
		node.append(element("div", {class: "banner bad"}, `The observer's part is missing: ${run.driver.observer_error}`));
	for (const text of data.notes[runs.indexOf(run)])
		node.append(element("div", {class: "banner bad"}, text));
	(run.services || []).forEach((one, i) => {
		for (const text of data.hints[runs.indexOf(run)][i])
			node.append(element("p", {class: "warn"}, `${serviceName(one)}: ${text}`));
	});
	node.append(element("p", {class: "dim"}, [run.tool, run.host && `host ${run.host}`,
		run.namespaces && `${count(run.namespaces.observed)} network namespaces`, run.kernel && `kernel ${run.kernel}`,
		run.started_at, `over ${time(run.duration_ns)}`].filter(Boolean).join(" · ")));
}

function breakdownTable(rows) {
	return table(["part", ...rows.flatMap(({run}) => [title(run, "mean"), "share"])],
		PARTS.filter((part) => rows.some(({mean}) => mean.parts[part] !== undefined)).map((part) => [
			element("td", {}, element("span", {class: "swatch", style: `--hue:var(--${part})`}), nameOf(part)),
			...rows.flatMap(({mean}) => {
				const total = Object.values(mean.parts).reduce((a, b) => a + b, 0);
				if (mean.parts[part] === undefined) return ["–", "–"];
				return [time(mean.parts[part]), mean.unknown ? "–" : percent(total ? mean.parts[part] / total : 0)];
			})]));
}

function breakdown() {
	const rows = runs.map((run) => ({run, mean: dividedParts(run)})).filter(({mean}) => mean);
	const undivided = runs.filter((run) => verdictOf(run).undivided);
	if (!rows.length && !undivided.length) return;
	const node = section("Where a request's time goes", rows.length ? "Means; the parts add up to the whole." : null);
	for (const run of undivided)
		node.append(element("p", {class: "warn"}, title(run, `not divided: ${verdictOf(run).undivided}`)));
	if (!rows.length) return;
	for (const {run, mean} of rows)
		node.append(element("p", {class: "dim"}, title(run, mean.of)));
	node.append(breakdownTable(rows));
	for (const {run, mean} of rows)
		if (mean.unknown)
			node.append(element("p", {class: "warn"}, title(run, `network + client: not known: ${mean.unknown}`)));
}

function linesOf(run, dash) {
	const lines = [];
	const add = (name, histogram) => {
		if (histogram && histogram.count && histogram.buckets && histogram.max_ns)
			lines.push({name, label: title(run, nameOf(name)), histogram, dash});
	};
	if (run.driver) {
		add("response_time", run.driver.response_time);
		add("round_trip", run.driver.round_trip);
	}
	add("network", run.joined && run.joined.network);
	const service = mainService(run);
	const stages = isOfJoined(run) ? run.joined.stages : service ? service.stages : {};
	for (const stage of STAGES) if (measured(stages[stage])) add(stage, stages[stage]);
	return lines;
}

function percentileSection() {
	const lines = runs.flatMap((run, i) => linesOf(run, i ? [6 - (i % 3) * 2, 3] : []));
	if (!lines.length) return;
	const node = section("Latency by percentile",
		"Of each stage by itself: the percentiles of the stages of one run do not add up, its means do.");
	percentiles(node, "latency by percentile", lines);
	node.append(element("details", {}, element("summary", {}, "as a table"),
		table(["", "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"], lines.map(({label, histogram}) => [
			label, count(histogram.count), ...["mean", "p50", "p90", "p99", "p999", "p9999", "max"].map(
				(p) => time(histogram[`${p}_ns`]))]))));
}

// Return rows of requests by kind. A single status is omitted, as it would repeat the whole.
function rowsOf(run) {
	const latency = run.driver && latencyOf(run.driver);
	return !run.driver ? [] : [["steps", 1], ["targets", 1], ["statuses", 2]].flatMap(([kind, least]) => {
		const rows = run.driver[kind] || [];
		return rows.length < least ? [] : rows.map((row, i) => [
			element("td", {class: "text"}, title(run, kind)), element("td", {class: "text"}, row.name),
			cell(count(row.requests), path(run, `driver.${kind}.${i}.requests`), row.requests),
			perSecond(rateOf(row, run.driver)),
			count(Object.values(row.errors).reduce((a, b) => a + b, 0)),
			...["p50", "p99", "max"].map((p) => cell(time(row[latency][`${p}_ns`]),
				path(run, `driver.${kind}.${i}.${latency}.${p}_ns`), row[latency][`${p}_ns`]))]);
	});
}

function rowsSection() {
	const rows = runs.flatMap(rowsOf);
	if (rows.length)
		section("By step, target and status").append(
			table(["", "", "requests", "per second", "errors", "p50", "p99", "max"], rows));
}

// Return charts of a driver's intervals, in the form of those of a service's past.
function driverCharts(run) {
	// Omit the last one if it is too short for a rate.
	const intervals = run.driver.intervals.filter((i) => i.duration_ns * 10 > run.driver.interval_ns);
	const points = (value) => intervals.map((interval) => ({
		x: (interval.begin_ns + interval.duration_ns) / 1e9, y: value(interval)}));
	const per = (member) => points((i) => i[member] / (i.duration_ns / 1e9));
	const latency = latencyOf(run.driver);
	const ports = intervals.some((i) => (i.ports ?? null) !== null);
	return [
		["requests and errors per second", [
			{name: "service", label: "requests/s", points: per("requests")},
			{name: "bad", label: "errors/s", points: per("errors")}], {}],
		[nameOf(latency), ["p50", "p99", "max"].map((p, i) => ({
			name: ["service", "ack", "network"][i], label: p,
			points: points((interval) => (interval.latency.count ? interval.latency[`${p}_ns`] : NaN))})), {format: time, log: true}],
		[portsTitle(run.driver.ports), ports ? [{name: "network", label: "ephemeral ports in use",
			points: points((i) => i.ports ?? NaN)}] : [], {step: true, key: "none"}],
	];
}

// Return the time at which the charts end: that of the last point of any chart.
function lastPoint(groups) {
	return Math.max(1, ...groups.flatMap(({charts}) => charts.flatMap(([, lines]) => lines.flatMap(
		({points}) => points.map(({x}) => x)))));
}

// Number of services that are drawn at once; the user opens the others.
const DRAWN = 2;

function groupsOf(run) {
	const services = (run.services || []).filter(hasSeries).sort((a, b) => b.exchanges - a.exchanges);
	return [
		...(run.driver && run.driver.intervals && run.driver.intervals.length > 1
			? [{heading: title(run, "at the client"), charts: driverCharts(run)}] : []),
		...services.map((service, i) => ({heading: title(run, `at the server, ${serviceName(service)}`),
			charts: serviceCharts(service), idle: isIdle(service), closed: i >= DRAWN}))];
}

function timeSection() {
	const groups = runs.flatMap(groupsOf);
	const busy = groups.filter(({idle}) => !idle);
	if (!groups.length) return;
	const node = section("Over time", "Seconds from the start of the measured phase; the cursor is the same in all charts.");
	const end = lastPoint(busy);
	for (const {heading, charts, closed} of busy) {
		const place = closed ? element("details", {}, element("summary", {}, heading)) : node;
		if (closed) node.append(place);
		else node.append(element("h3", {}, heading));
		putCharts(place, charts, {end});
	}
	const idle = groups.length - busy.length;
	if (idle) node.append(element("p", {class: "dim"}, `${count(idle)} ${idle > 1 ? "services" : "service"} without a request or a connection ${idle > 1 ? "have" : "has"} no charts.`));
}

function isIdle(service) {
	return !service.exchanges && !service.accepted && !service.connections;
}

function tailSection(run) {
	const {tail} = run.joined;
	if (!tail || !tail.some((row) => row.count)) return;
	const node = section(title(run, "What makes slow requests slow"),
		`Joined exchanges slower than a percentile of the client's ${nameOf(latencyOf(run.driver))}, by part.`);
	const rows = tail.filter((row) => row.count);
	stackedBars(node, "share of each part in slow requests", rows.map((row) => ({
		label: `above p${row.per_mille / 10} (${time(row.above_ns)}), ${count(row.count)}`,
		parts: partsOf(row.sum, row.count)})), {share: true});
	node.append(table(["part, mean", ...rows.map((row) => `above p${row.per_mille / 10}`)],
		PARTS.filter((part) => rows.some((row) => partsOf(row.sum, 1)[part] !== undefined)).map((part) => [
			nameOf(part), ...rows.map((row) => {
				const [member, sum] = memberOf(row.sum, part);
				return cell(time(partsOf(row.sum, row.count)[part]),
					(sum ?? null) === null ? null : path(run, `joined.tail.${tail.indexOf(row)}.sum.${member}`), sum);
			})])));
}

// Compare the hosts of one service, the slowest first. A host without times says why.
function hostSection(run) {
	const hosts = data.hosts[runs.indexOf(run)];
	if (!hosts.length) return;
	const times = [["round_trip_ns", "mean round trip"], ["at_server_ns", "mean at the server"], ["service_p99_ns", "p99 service"]]
		.filter(([member]) => hosts.some((host) => member in host));
	const joined = times.some(([member]) => member === "round_trip_ns");
	const node = section(title(run, hosts[0].kind.replace(/^./, (first) => first.toUpperCase()) + "s"), `The slowest first.${joined ? " Round trips are those of joined exchanges." : ""}`);
	node.append(table([hosts[0].kind, "requests", ...times.map(([, name]) => name), "most of the mean"], hosts.map((host) => [
		element("td", {class: "text"}, host.name), count(host.requests),
		...times.map(([member]) => (member in host ? time(host[member]) : "–")),
		element("td", {class: "text"}, host.text)])));
}

function stepSection(run) {
	const steps = run.joined.steps || [];
	const rows = steps.filter((step) => step.count);
	if (!rows.length) return;
	const shown = PARTS.filter((part) => rows.some((step) => partsOf(step.sum, 1)[part]));
	const node = section(title(run, "Where each step's time goes"),
		"Joined exchanges by step of the scenario, mean; the parts of a bar add up to it.");
	stackedBars(node, "mean time of each part, by step", rows.map((step) => ({
		label: `${step.name}, ${count(step.count)}`, parts: partsOf(step.sum, step.count)})));
	node.append(table(["step", "joined", "round trip", ...shown.map(nameOf)], rows.map((step) => {
		const parts = partsOf(step.sum, step.count);
		const at = `joined.steps.${steps.indexOf(step)}`;
		return [element("td", {class: "text"}, step.name),
			cell(count(step.count), path(run, `${at}.count`), step.count),
			cell(time(step.sum.round_trip_ns / step.count), path(run, `${at}.sum.round_trip_ns`), step.sum.round_trip_ns),
			...shown.map((part) => {
				const [member, sum] = memberOf(step.sum, part);
				return cell(time(parts[part]), (sum ?? null) === null ? null : path(run, `${at}.sum.${member}`), sum);
			})];
	})));
}

function slowestSection(run) {
	const {slowest} = run.joined;
	if (!slowest || !slowest.length) return;
	const {joined, threshold} = run.joined;
	const all = run.driver.requests;
	const chosen = joined < all ? ` of those ${threshold < 2 ** 32 ? "sampled" : "joined"}` : "";
	const node = section(title(run, `The slowest exchanges${chosen}`),
		`Each from when it was due to the last byte read by the client.${
			chosen && ` They are of ${count(joined)} of ${count(all)} requests: slower ones may not be among them.`}`);
	const shown = PARTS.filter((part) => slowest.some((exchange) => partsOf(exchange.parts, 1)[part]));
	stackedBars(node, "timelines of the slowest exchanges", slowest.map((exchange) => ({
		label: `${exchange.client} #${exchange.index}`, parts: partsOf(exchange.parts, 1)})));
	node.append(element("details", {}, element("summary", {}, "as a table"),
		table(["client", "exchange", "at", "process", "round trip", ...shown.map(nameOf)], slowest.map((exchange, i) => [
			exchange.client, `#${exchange.index}`, `${((exchange.start_ns - run.joined.begin_ns) / 1e9).toFixed(3)} s`,
			exchange.pid === null ? "–" : String(exchange.pid),
			cell(time(exchange.parts.round_trip_ns), path(run, `joined.slowest.${i}.parts.round_trip_ns`),
				exchange.parts.round_trip_ns),
			...shown.map((part) => time(partsOf(exchange.parts, 1)[part]))]))));
}

function findingSection(run) {
	const failures = (run.driver && run.driver.failures) || [];
	if (!(run.findings || []).length && !failures.length && !run.not_seen) return;
	const node = section(title(run, "What was running out, what failed"));
	(run.findings || []).forEach((item) => node.append(finding(item)));
	if (!(run.findings || []).length && run.not_seen)
		node.append(element("p", {class: "good"}, `Nothing was running out on ${run.host || "the observer's host"}.`));
	for (const failure of failures)
		node.append(element("div", {class: "finding critical"},
			`${count(failure.count)} × ${nameOf(failure.kind)}, from ${time(failure.first_ns)} to ${time(failure.last_ns)}, ${perSecond(failure.count / (run.driver.duration_ns / 1e9))}/s. ${failure.explanation || ""}`));
	for (const text of run.not_seen || []) node.append(element("p", {class: "dim"}, `Not seen: ${text}`));
}

function serviceRow(run, service, i) {
	const queue = service.accept_queue || {};
	const at = (member, value, text) => cell(text, path(run, `services.${i}.${member}`), value);
	return [element("td", {class: "text"}, title(run, serviceName(service))),
		at("exchanges", service.exchanges, count(service.exchanges)), at("accepted", service.accepted, count(service.accepted)),
		at("bytes_in", service.bytes_in, bytes(service.bytes_in)), at("bytes_out", service.bytes_out, bytes(service.bytes_out)),
		count(service.connections), count(service.time_wait), `${count(queue.depth_max)} / ${count(queue.limit)}`,
		count(service.retransmits), service.processes && service.processes.length
			? service.processes.map((p) => `${count(p.open_fds)}/${count(p.fd_limit)}`).join(" ") : "–"];
}

// List each listener: a sum would hide the one that is full.
function listenerTable(run, service, i) {
	return table(["listener", "PID", "accept queue", "max", "limit", "overflows"], service.listeners.map((listener, j) => {
		const at = (member) => cell(count(listener[member]), path(run, `services.${i}.listeners.${j}.${member}`), listener[member]);
		return [element("td", {class: "text"}, title(run, `${serviceName(service)} · ${listener.comm || `inode ${listener.inode}`}`)),
			listener.pid ?? "–", ...["depth", "depth_max", "limit", "overflows"].map(at)];
	}));
}

// Figures of HTTP/2's streams if they are exchanges, as in the text report's line.
const STREAMS = {streams: "streams", connections: "connections", reset_by_client: "reset by client", reset_by_server: "reset by server",
	refused: "refused", lost: "lost", goaways: "GOAWAY", given_up: "connections given up",
	older: "older connections", picked_up: "of these picked up", earlier: "begun before the observation",
	perhaps_grpc: "perhaps of gRPC", two_way: "under way while their request was", ended: "ended connections", ended_streams: "streams on these",
	streams_highest: "at most on one", open_highest: "open at once at most"};

function streamsTable(run, service, i) {
	const {http2} = service;
	const resets = ["client", "server"].flatMap((by) => Object.entries(http2[`${by}_resets`] || {}).filter(([, n]) => n)
		.map(([error, n]) => [`${by}_resets.${error}`, `reset by ${by}: ${error.replaceAll("_", " ")}`, n]));
	const shown = [...Object.keys(STREAMS).filter((member, at) => at < 2 || http2[member])
		.map((member) => [member, STREAMS[member], http2[member]]), ...resets];
	return table(["HTTP/2", ...shown.map(([, name]) => name)], [[element("td", {class: "text"}, title(run, serviceName(service))),
		...shown.map(([member, , n]) => cell(count(n), path(run, `services.${i}.http2.${member}`), n))]]);
}

// List the HTTP responses by status, the most frequent first, and the service time of failed ones.
function statusTable(run, service, i) {
	const {count: all, status, statuses} = service.responses;
	const rows = statuses.map(([name, n], k) => [name, n, `statuses.${k}.1`]).sort((a, b) => b[1] - a[1]);
	if (status.other) rows.push(["not known", status.other, "status.other"]);
	const node = element("div", {}, table(["status", "responses", "share"], rows.map(([name, n, member]) => [
		element("td", {class: "text"}, title(run, `${serviceName(service)} · ${name}`)),
		cell(count(n), path(run, `services.${i}.responses.${member}`), n), percent(n / all)])));
	for (const of of ["4xx", "5xx"])
		addFailed(node, run, service, of, service.responses[`service_${of}`]);
	return node;
}

function addFailed(node, run, service, of, failed) {
	if (failed.count)
		node.append(element("p", {}, title(run, `${serviceName(service)}: service of ${of}: ${count(failed.count)}, mean ${time(failed.mean_ns)}, p50 ${time(failed.p50_ns)}, p99 ${time(failed.p99_ns)}, max ${time(failed.max_ns)}`)));
}

// The same for gRPC.
function grpcTable(run, service, i) {
	const {count: all, status, kinds, service_failed: failed} = service.grpc;
	const names = Object.keys(status).filter((name) => status[name]).sort((a, b) => status[b] - status[a]);
	const node = element("div", {}, table(["status of gRPC", "responses", "share"], names.map((name) => [
		element("td", {class: "text"}, title(run, `${serviceName(service)} · ${name.replaceAll("_", " ")}`)),
		cell(count(status[name]), path(run, `services.${i}.grpc.status.${name}`), status[name]), percent(status[name] / all)])));
	node.append(table(["calls of gRPC", "number", "share"], Object.keys(kinds).filter((name) => kinds[name]).map((name) => [
		element("td", {class: "text"}, title(run, `${serviceName(service)} · ${name.replaceAll("_", " ")}`)),
		cell(count(kinds[name]), path(run, `services.${i}.grpc.kinds.${name}`), kinds[name]), percent(kinds[name] / all)])));
	node.append(table(["messages of gRPC", "in", "out"], [[element("td", {class: "text"}, title(run, serviceName(service))),
		...["in", "out"].map((way) => cell(count(service.grpc[`messages_${way}`]), path(run, `services.${i}.grpc.messages_${way}`), service.grpc[`messages_${way}`]))]]));
	addFailed(node, run, service, "failed gRPC", failed);
	return node;
}

// List the routes that have requests, those with most time in service first, with the parts of their mean time (--route), or commands (--protocol).
const ROUTE_STAGES = ["socket_queue", "receive", "service", "respond"];

function routeTable(run, service, i) {
	const {protocol, list, not_known: unknown} = service.routes;
	const seconds = spanOf(run, service);
	const byTime = ([a], [b]) => b.service.sum_ns - a.service.sum_ns || b.count - a.count;
	const node = element("div", {}, table([protocol ? "command" : "route", "responses", "per second", ...(protocol ? ["errors"] : ["4xx", "5xx"]), "service p50", "service p99", ...ROUTE_STAGES.map((stage) => `${nameOf(stage)} mean`)],
		list.map((route, k) => [route, k]).filter(([route]) => route.count).sort(byTime).map(([route, k]) => {
			const at = (member, value, shown) => cell(shown, path(run, `services.${i}.routes.list.${k}.${member}`), value);
			const timed = (member, value) => (route.service.count ? at(member, value, time(value)) : "–");
			return [element("td", {class: "text"}, title(run, `${serviceName(service)} · ${route.route}`)), at("count", route.count, count(route.count)),
				seconds > 0 ? perSecond(route.count / seconds) : "–",
				...(protocol ? [at("errors", route.errors, count(route.errors))]
					: ["4xx", "5xx"].map((name) => at(`status.${name}`, route.status[name], count(route.status[name])))),
				...["p50", "p99"].map((p) => timed(`service.${p}_ns`, route.service[`${p}_ns`])),
				...ROUTE_STAGES.map((stage) => timed(`${stage}.mean_ns`, route[stage].mean_ns))];
		})));
	const reasons = Object.entries(unknown).filter(([, n]) => n).map(([reason, n]) => `${reason}: ${count(n)}`);
	if (reasons.length)
		node.append(element("p", {}, title(run, `${serviceName(service)}: requests whose ${protocol ? "command" : "route"} is not known, by reason: ${reasons.join(", ")}`)));
	return node;
}

// List the calls to upstreams (--calls).
function callTable(run, service, i) {
	const node = element("div", {}, table(["calls to", "calls", "failed", "open", "not timed", "wait mean", "wait p50", "wait p99", "wait max"],
		service.timed_calls.map((call, k) => {
			const why = whyCallsUnknown(call);
			const at = (member, value, shown) => cell(shown, path(run, `services.${i}.timed_calls.${k}.${member}`), value);
			return [element("td", {class: "text"}, title(run, `${serviceName(service)} · ${call.towards}${why && `: times not known: ${why}`}`)),
				why ? "–" : at("calls", call.calls, count(call.calls)), ...["failed", "open"].map((name) => at(name, call[name], count(call[name]))),
				count(call.untimed + call.handshakes),
				...["mean", "p50", "p99", "max"].map((p) => (!why && call.wait.count ? at(`wait.${p}_ns`, call.wait[`${p}_ns`], time(call.wait[`${p}_ns`])) : "–"))];
		})));
	if (service.calls_lost)
		node.append(element("p", {class: "warn"}, title(run, `${serviceName(service)}: ${count(service.calls_lost)} connections went to places without room: their calls are not known`)));
	return node;
}

// List the proposed routes (--propose-routes).
function proposalTable(run, service, i) {
	const {requests, paths, list, not_known: unknown} = service.proposed;
	const of = `a sample of ${count(paths)} of ${count(requests)} requests that match no route` +
		(unknown ? `; paths of ${count(unknown)} more are not known` : "");
	if (!list.length) return element("p", {}, title(run, `${serviceName(service)}: no route is proposed, by ${of}`));
	return element("div", {}, element("p", {}, title(run, `${serviceName(service)}: proposed routes, by ${of}`)),
		table(["--route", "paths", "about"], list.map((proposal, k) => [element("td", {class: "text"}, proposal.route),
			cell(count(proposal.paths), path(run, `services.${i}.proposed.list.${k}.paths`), proposal.paths), percent(proposal.paths / paths)])));
}

function serviceSection() {
	const rows = runs.flatMap((run) => (run.services || []).map((service, i) => serviceRow(run, service, i)));
	if (!rows.length) return;
	const node = section("Services");
	node.append(table(["service", "exchanges", "accepted", "in", "out", "open", "TIME_WAIT",
		"accept queue max", "retransmits", "fds"], rows));
	for (const run of runs)
		(run.services || []).forEach((service, i) => {
			if (service.responses) node.append(statusTable(run, service, i));
			if (service.grpc) node.append(grpcTable(run, service, i));
			if (service.routes) node.append(routeTable(run, service, i));
			if ((service.timed_calls || []).length) node.append(callTable(run, service, i));
			if (service.proposed) node.append(proposalTable(run, service, i));
			if ((service.listeners || []).length) node.append(listenerTable(run, service, i));
			if (service.http2 && (service.http2.streams || service.http2.older)) node.append(streamsTable(run, service, i));
		});
}

// Return a row for each kind of loss that occurred.
function lossRows(run) {
	const rows = [];
	const add = (where, what, value) => value && rows.push([element("td", {class: "text"}, title(run, where)),
		element("td", {class: "text"}, what), count(value)]);
	for (const service of run.services || []) {
		for (const [name, value] of Object.entries(service.losses)) add(serviceName(service), nameOf(name), value);
		if (!service.samples) continue;
		add(serviceName(service), "samples lost: single exchanges that found the ring full", service.samples.lost);
		add(serviceName(service), "samples inconsistent", service.samples.inconsistent);
	}
	add("", "services dropped: they found no slot", run.services_dropped);
	add("", "connections of services without a slot", run.connections_dropped);
	if (run.reclaimed)
		add("", "exchanges of services, ended or idle, that gave their slots to others", run.reclaimed.exchanges);
	if (run.namespaces) {
		add("", "network namespaces that were not entered", run.namespaces.not_entered);
		add("", "network namespaces beyond the most that are followed", run.namespaces.left_out);
	}
	for (const program of (run.cost && run.cost.programs) || []) add(program.name, "recursion misses", program.recursion_misses);
	for (const name of ["driver_only", "observer_only", "ambiguous", "implausible"])
		if (run.joined) add("joining", nameOf(name), run.joined[name]);
	return rows;
}

function missingStages(run) {
	const service = mainService(run);
	if (!service) return [];
	return STAGES.filter((stage) => service.stages[stage] && !service.stages[stage].measured && service.stages[stage].reason)
		.map((stage) => `${nameOf(stage)}: not measured: ${service.stages[stage].reason}`);
}

// Name the sources of stages that have several, and means that are only of some exchanges.
function sourceNotes(run) {
	const notes = [];
	for (const service of run.services || []) {
		for (const stage of ["accept_queue", "transmit_queue"])
			if (measured(service.stages[stage]) && service.stages[stage].source)
				notes.push(`${serviceName(service)}: ${nameOf(stage)} by ${service.stages[stage].source}`);
		const unseen = service.losses.transmit_unseen || 0;
		if (unseen > 0.03 * (service.transmit_followed || 0))
			notes.push(`${serviceName(service)}: ${count(unseen)} of ${count(service.transmit_followed)} responses followed were not seen to leave: transmit queue and ack are of the others${
				service.stages.transmit_queue.source === "sockops" ? ", mostly smaller ones; --prefer transmit_start sees all" : ""}`);
	}
	return notes;
}

function trustSection() {
	if (!runs.some((run) => run.driver || run.cost || (run.services || []).length)) return;
	const node = section("Losses, and what measuring cost");
	const rows = runs.flatMap(lossRows);
	node.append(rows.length ? table(["where", "what", "count"], rows)
		: element("p", {class: "good"}, "Nothing was lost: every request and event is accounted for."));
	for (const run of runs) {
		for (const text of [...sourceNotes(run), ...missingStages(run)]) node.append(element("p", {class: "dim"}, title(run, text)));
		if (run.cost)
			node.append(element("p", {}, title(run, `observer: CPU ${time(run.cost.cpu_ns)} (${percent(run.cost.cpu_ns / run.duration_ns)} of a core), memory ${bytes(run.cost.resident_bytes)}, BPF maps ${bytes(run.cost.map_bytes)}`)));
		if (run.driver)
			node.append(element("p", {}, title(run, `driver: CPU ${time(run.driver.cpu_user_ns)} user, ${time(run.driver.cpu_system_ns)} system`)));
	}
}

function commandSection() {
	const node = section("Commands");
	for (const run of runs.filter((r) => r.command))
		node.append(element("pre", {}, run.command.map(quoted).join(" ")));
	if (!runs.some((run) => run.command)) node.remove();
}

function quoted(word) {
	return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// Print in the light theme with all details open: paper is white, and nothing on it can be opened.
function onPaper() {
	const root = document.documentElement;
	let theme;
	addEventListener("beforeprint", () => {
		({theme} = root.dataset);
		root.dataset.theme = "light";
		for (const details of document.querySelectorAll("details")) details.open = true;
		redrawAll();
	});
	addEventListener("afterprint", () => {
		if (theme) root.dataset.theme = theme;
		else delete root.dataset.theme;
		redrawAll();
	});
}

document.querySelector("header").append(themeButton());
onPaper();
if (data.compare) compareSection(data.compare);
runs.forEach((run) => (run.sweep ? sweepSummary : summary)(run));
runs.forEach(hostSection);
runs.filter((run) => run.sweep).forEach(sweepSection);
if (runs.some((run) => !run.sweep)) breakdown();
percentileSection();
rowsSection();
timeSection();
runs.filter((run) => run.joined).forEach((run) => {
	stepSection(run);
	tailSection(run);
	slowestSection(run);
});
runs.forEach(findingSection);
serviceSection();
trustSection();
commandSection();
