// SPDX-License-Identifier: MIT
// The observer's gauges and rates over time.
"use strict";

const RESIDENCE_HUES = {socket_queue: [], receive: [4, 2], service: [], respond: [4, 2]};

function hasSeries(service) {
	return Boolean(service.series && service.series.begin_ns && service.series.begin_ns.length > 1);
}

// A column as points at the ends of their times; `value` is called with the index.
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

// Of what should not be, that which was; a kind that never occurred has no column.
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

// Of how many, and towards whom in the end: the destination may have changed in between.
function portsTitle(ports) {
	const of = ports && ports.capacity !== null && ports.capacity !== undefined ? `ephemeral ports, of ${count(ports.capacity)}` : "ephemeral ports";
	return ports && ports.towards ? `${of}, at the end towards ${ports.towards}` : of;
}

// `series` of the document, in charts that share the driver's seconds as far as the two began together.
function serviceSeries(run, service, node, end) {
	const columns = service.series;
	const per = (member) => pointsOf(columns, (i) => columns[member][i] / (columns.duration_ns[i] / 1e9));
	const named = (text) => title(run, `${text}, at ${service.protocol} port ${service.port}`);
	series(node, named("requests and accepts per second"), [
		{name: "service", label: "requests/s", points: per("exchanges")},
		{name: "accept_queue", label: "accepts/s", points: per("accepted")}], {end});
	series(node, named("mean of each stage"), stageLines(columns, "mean"), {end, format: time, fill: true});
	series(node, named("p99 of each stage"), stageLines(columns, "p99_ns"), {end, format: time});
	for (const [text, names] of [
		["connections", [["connections", "established", "service"], ["time_wait", "TIME_WAIT", "ack"]]],
		["accept queue", [["depth", "waiting for accept()", "accept_queue"], ["depth_max", "at most so far", "ack"]]],
		["descriptors", [["fds", "open", "transmit_queue"]]],
		[portsTitle(service.ports), [["ports", "in use, towards one destination", "network"]]],
	]) {
		const lines = gauges(columns, names);
		if (lines.length) series(node, named(text), lines, {end, step: true});
	}
	const trips = gauges(columns, [["srtt_ns", "smoothed, mean", "network"], ["min_rtt_ns", "lowest", "ack"]]);
	if (trips.length) series(node, named("round-trip times as TCP measures them"), trips, {end, format: time, step: true});
	const wrong = troubles(columns);
	if (wrong.length) series(node, named("what went wrong, per second"), wrong, {end});
}
