// SPDX-License-Identifier: MIT
// A sweep: its conclusions, throughput and latency over load, and a row for each step.
"use strict";

function isRated(sweep) {
	return sweep.over === "rate";
}

function loadUnit(sweep) {
	return isRated(sweep) ? "requests/s" : "connections";
}

// Return good responses per second, by the rule of include/sojourn/sweep.h. Late responses are omitted: the share of
// good ones is taken to be the same among them.
function goodPerSecond(counted, step) {
	const timely = counted.requests - (counted.drained || 0);
	const all = (counted.good ?? null) === null || counted.good >= counted.requests;
	const good = all ? timely : Math.round(counted.good * timely / counted.requests);
	return step.duration_ns ? good / (step.duration_ns / 1e9) : 0;
}

function stepRemarks(step) {
	const first = step.first_throughput ?? null;
	return [
		!step.steady && "not steady",
		first !== null && `measured again, ${count(first)}/s at first`,
		step.unsent && `${count(step.unsent)} never sent`,
		step.limited && `limited by the driver (${step.limited})`,
	].filter(Boolean).join(", ");
}

function sweepTitle(sweep) {
	const several = ((sweep.steps[0] || {}).targets || []).length;
	return [sweep.method, several ? `${several} targets in turn` : sweep.target].filter(Boolean).join(" ");
}

function sweepTiles(run) {
	const {sweep} = run;
	const three = sweep.three_quarters;
	const tiles = [
		tile("plateau, requests/s", count(sweep.plateau), path(run, "sweep.plateau"), sweep.plateau),
		tile(`from so many ${loadUnit(sweep)} on`, count(sweep.knee), path(run, "sweep.knee"), sweep.knee),
		tile("steps off the fit", percent(sweep.misfit_per_mille / 1000), path(run, "sweep.misfit_per_mille"),
			sweep.misfit_per_mille),
	];
	return !three ? tiles : [...tiles, ...["p50", "p99"].map((p) => tile(`${p} at 75 % of it`,
		time(three.latency[`${p}_ns`]), path(run, `sweep.three_quarters.latency.${p}_ns`), three.latency[`${p}_ns`]))];
}

function sweepSummary(run) {
	const {sweep} = run;
	const limited = sweep.steps.filter((step) => step.limited).length;
	const node = section(title(run, sweepTitle(sweep)),
		[`sweep over ${isRated(sweep) ? `rates, ${count(sweep.connections)} connections` : "numbers of connections"}`,
			run.tool, run.host && `host ${run.host}`, run.kernel && `kernel ${run.kernel}`, run.started_at,
			`over ${time(run.duration_ns)}`].filter(Boolean).join(" · "));
	if (limited)
		node.append(element("div", {class: "banner bad"},
			`Limited by the driver, not by the server alone, in ${limited} of ${sweep.steps.length} steps`));
	if ((sweep.plateau ?? null) === null)
		node.append(element("div", {class: "banner warn"}, `No plateau: ${sweep.unfitted || "not looked for"}`));
	else
		node.append(element("div", {class: "tiles"}, ...sweepTiles(run)));
	if (sweep.resumed) node.append(element("p", {class: "dim"}, `Resumed: ${sweep.resumed}`));
	if (sweep.stopped) node.append(element("p", {class: "dim"}, `Stopped: ${sweep.stopped}`));
}

// Return a vertical line at the knee, from `bottom` to `top`.
function kneeLine(sweep, bottom, top) {
	if ((sweep.knee ?? null) === null) return [];
	return [{name: "warn", label: `knee: ${count(sweep.knee)} ${loadUnit(sweep)}`, dash: [4, 3], mark: true,
		points: [{x: sweep.knee, y: bottom}, {x: sweep.knee, y: top}]}];
}

function plateauLine(sweep, last) {
	if ((sweep.plateau ?? null) === null || sweep.knee >= last) return [];
	return [{name: "good", label: `plateau: ${count(sweep.plateau)}/s`, dash: [4, 3], mark: true,
		points: [{x: sweep.knee, y: sweep.plateau}, {x: last, y: sweep.plateau}]}];
}

function sweepCharts(run, node) {
	const {sweep} = run;
	const loads = sweep.steps.map((step) => step.load);
	const hollow = sweep.steps.map((step) => !step.steady);
	const points = (value) => sweep.steps.map((step) => ({x: step.load, y: value(step)}));
	const rates = points((step) => goodPerSecond(step, step));
	const answered = sweep.steps.filter((step) => step.latency.count);
	if (!loads.length) return;
	overLoad(node, title(run, "good responses per second"), loadUnit(sweep), loads, [
		{name: "service", label: "good/s", points: rates, hollow},
		...plateauLine(sweep, loads[loads.length - 1]),
		...kneeLine(sweep, 0, Math.max(...rates.map((point) => point.y)))], {format: perSecond});
	if (!answered.length) return;
	overLoad(node, title(run, isRated(sweep) ? "response time" : "round trip"), loadUnit(sweep), loads, [
		...["p50", "p99"].map((p, i) => ({name: ["service", "ack"][i], label: p, hollow,
			points: points((step) => (step.latency.count ? step.latency[`${p}_ns`] : NaN))})),
		...kneeLine(sweep, Math.min(...answered.map((step) => step.latency.p50_ns)),
			Math.max(...answered.map((step) => step.latency.p99_ns)))], {format: time, log: true});
}

function hasServer(run) {
	return run.sweep.steps.some((step) => (step.server_exchanges ?? null) !== null);
}

// Return how many clients share the good responses; 0: not known, as for the run at 75 %.
function clientsOf(run, step) {
	if (isRated(run.sweep)) return run.sweep.connections;
	return step === run.sweep.three_quarters ? 0 : step.load;
}

// Make a row of a step, or of its part for one target; `at` is its path in the document.
function sweepRow(run, label, at, counted, step, remarks) {
	const clients = counted === step ? clientsOf(run, step) : 0;
	const rate = goodPerSecond(counted, step);
	const latency = (p) => (counted.latency.count
		? cell(time(counted.latency[`${p}_ns`]), path(run, `${at}.latency.${p}_ns`), counted.latency[`${p}_ns`]) : "–");
	const own = counted === step && (step.server_exchanges ?? null) !== null && step.server_duration_ns;
	const server = own ? cell(perSecond(step.server_exchanges / (step.server_duration_ns / 1e9)),
		path(run, `${at}.server_exchanges`), step.server_exchanges) : "–";
	return [label, perSecond(rate), ...(hasServer(run) ? [server] : []),
		clients ? perSecond(rate / clients) : "–", latency("p50"), latency("p99"),
		cell(count(counted.errors), path(run, `${at}.errors`), counted.errors),
		element("td", {class: "text"}, remarks)];
}

function sweepRows(run, at, step, label, remarks) {
	return [sweepRow(run, cell(label, path(run, `${at}.load`), step.load), at, step, step, remarks),
		...(step.targets || []).map((target, i) => sweepRow(run, element("td", {class: "text"}, target.name),
			`${at}.targets.${i}`, target, step, ""))];
}

function sweepTable(run) {
	const {sweep} = run;
	const knee = (sweep.knee ?? null) === null ? -1 : sweep.steps.findIndex((step) => step.load >= sweep.knee);
	const rows = sweep.steps.flatMap((step, i) => sweepRows(run, `sweep.steps.${i}`, step, count(step.load),
		[i === knee && "knee", stepRemarks(step)].filter(Boolean).join(", ")));
	const three = sweep.three_quarters;
	if (three)
		rows.push(...sweepRows(run, "sweep.three_quarters", three, `${count(three.load)}/s due`,
			["75 % of the plateau", stepRemarks(three)].filter(Boolean).join(", ")));
	return table([isRated(sweep) ? "due/s" : "connections", "good/s", ...(hasServer(run) ? ["server's/s"] : []), "each/s", "p50", "p99", "errors", ""], rows);
}

function sweepSection(run) {
	const unsteady = run.sweep.steps.some((step) => !step.steady);
	const node = section(title(run, "Over load"),
		`What failed is no throughput.${unsteady ? " Hollow points were not steady." : ""}`);
	sweepCharts(run, node);
	node.append(sweepTable(run));
}
