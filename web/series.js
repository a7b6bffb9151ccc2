// SPDX-License-Identifier: MIT
// The observer's gauges and rates over time.
"use strict";

const RESIDENCE_HUES = {socket_queue: [], receive: [4, 2], service: [], respond: [4, 2]};

function hasSeries(service) {
	return Boolean(service.series && service.series.begin_ns && service.series.begin_ns.length > 1);
}

// Return a column as points at the ends of their times; `value` is called with the index.
function pointsOf(columns, value) {
	return columns.begin_ns.map((begin, i) => ({x: (begin + columns.duration_ns[i]) / 1e9, y: value(i) ?? NaN}));
}

function gauges(columns, names) {
	return names.filter(([member]) => (columns[member] || []).some((value) => value !== null))
		.map(([member, label, name]) => ({name, label, points: pointsOf(columns, (i) => columns[member][i])}));
}

function stageLines(columns, member) {
	return Object.keys(RESIDENCE_HUES).filter((stage) => columns.stages && columns.stages[stage]).map((stage) => ({
		name: stage, label: nameOf(stage), dash: RESIDENCE_HUES[stage],
		points: pointsOf(columns, (i) => {
			const {[stage]: kept} = columns.stages;
			if (member === "mean") return kept.count[i] ? kept.sum_ns[i] / kept.count[i] : NaN;
			return kept[member] && kept[member][i] !== null ? kept[member][i] : NaN;
		}),
	}));
}

// Return lines of unwanted events. A kind that never occurred has no column.
function troubles(columns) {
	const hues = ["bad", "ack", "warn", "service", "network", "accept_queue", "respond"];
	return [
		["overflows", "accept queue overflows", columns.overflows],
		...[["closes", ["reset_by_server", "reset_by_client", "timed_out"]],
			["losses", ["unanswered", "dropped", "unmatched", "untimed"]]].flatMap(([group, kinds]) =>
			kinds.map((kind) => [kind, nameOf(kind), columns[group] && columns[group][kind]])),
		["retransmits", "retransmits", columns.retransmits],
	].filter(([, , counts]) => counts && counts.some(Boolean)).map(([, label, counts], i) => ({
		name: hues[i % hues.length], label: `${label}/s`,
		points: pointsOf(columns, (point) => counts[point] / (columns.duration_ns[point] / 1e9))}));
}

// Return the title with the capacity, and the destination at the end, which may have changed.
function portsTitle(ports) {
	const of = ports && ports.capacity !== null && ports.capacity !== undefined ? `ephemeral ports, of ${count(ports.capacity)}` : "ephemeral ports";
	return ports && ports.towards ? `${of}, at the end towards ${ports.towards}` : of;
}

// Return the charts of a service's past: [label, lines, options of series()]. `limits`: lines that values must not reach.
function serviceCharts(service, limits = false) {
	const columns = service.series;
	const per = (member) => pointsOf(columns, (i) => columns[member][i] / (columns.duration_ns[i] / 1e9));
	const queue = service.accept_queue || {};
	const most = (lines, label, value) => (limits && lines.length && (value ?? null) !== null
		? [...lines, {name: "bad", mark: true, label: `${label} (${count(value)})`, dash: [4, 3],
			points: lines[0].points.map(({x}) => ({x, y: value}))}] : lines);
	const gauge = (names) => gauges(columns, names);
	const processes = service.processes || [];
	const fdLimit = processes.length === 1 ? processes[0].fd_limit : null; // of several each has its own
	return [
		["requests and accepts per second", [
			{name: "service", label: "requests/s", points: per("exchanges")},
			{name: "accept_queue", label: "accepts/s", points: per("accepted")}], {}],
		["mean of each stage", stageLines(columns, "mean"), {format: time, fill: true, key: "stages"}],
		["p99 of each stage", stageLines(columns, "p99_ns"), {format: time, key: "stages"}],
		["open requests", gauge([["open", "open requests", "socket_queue"]]), {step: true, key: "none"}],
		["connections", gauge([["connections", "open", "service"], ["time_wait", "TIME_WAIT", "ack"]]), {step: true}],
		["connections closed per second", closeLines(columns), {}],
		["accept queue", most(gauge([["depth", "waiting for accept()", "accept_queue"], ["depth_max", "at most so far", "ack"]]),
			"its limit", queue.limit), {step: true}],
		["descriptors", most(gauge([["fds", "open descriptors", "transmit_queue"]]), "their limit", fdLimit), {step: true}],
		[portsTitle(service.ports), most(gauge([["ports", "ephemeral ports in use", "network"]]), "all there are",
			service.ports && service.ports.capacity), {step: true}],
		["round-trip times as TCP measures them", gauge([["srtt_ns", "smoothed, mean", "network"], ["min_rtt_ns", "lowest", "ack"]]),
			{format: time, step: true}],
		["what went wrong, per second", troubles(columns), {}],
	];
}

function closeLines(columns) {
	const hues = {closed_by_server: "service", closed_by_client: "accept_queue"};
	return Object.keys(hues).filter((kind) => columns.closes && columns.closes[kind]).map((kind) => ({
		name: hues[kind], label: nameOf(kind),
		points: pointsOf(columns, (i) => columns.closes[kind][i] / (columns.duration_ns[i] / 1e9))}));
}

// Return a legend for charts without their own, of lines that are not zero in all of them; null: none.
function stageLegend(charts) {
	const there = charts.filter(([, , {key}]) => key === "stages").flatMap(([, lines]) => lines)
		.filter((line) => !isZero(line)).map(({name}) => name);
	const shown = Object.keys(RESIDENCE_HUES).filter((stage) => there.includes(stage));
	return shown.length ? legend(shown.map((stage) => ({name: stage, label: nameOf(stage), dash: RESIDENCE_HUES[stage]}))) : null;
}

// Draw all charts, in two columns if there is room. Return the drawn ones by their labels.
function putCharts(node, charts, range) {
	const grid = element("div", {class: "charts"});
	const zero = [], entries = new Map();
	node.append(...[stageLegend(charts), grid].filter(Boolean));
	for (const [label, lines, options] of charts) {
		const put = lines.length ? series(grid, label, lines, {...options, ...range}) : {zero: [], entry: null};
		zero.push(...put.zero);
		if (put.entry) entries.set(label, put.entry);
	}
	if (!entries.size) grid.remove();
	zeroNote(node, zero);
	return entries;
}
