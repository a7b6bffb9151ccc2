// SPDX-License-Identifier: MIT
// The kinds of chart, over Chart.js: stacked bars of parts, percentiles, time series with one cursor.
"use strict";

const drawn = [];

function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(title, more = {}) {
	return {
		title: {display: Boolean(title), text: title, color: colour("dim")},
		ticks: {color: colour("dim"), maxRotation: 0, ...(more.ticks || {})},
		grid: {color: colour("line")},
		...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "ticks")),
	};
}

// Format a label: "10 ms" for "10.0 ms".
function onAxis(format) {
	return (value) => format(value).replace(/\.0+(?= |$)/, "");
}

// A log axis has a label at each decade. With at most two decades it also has labels at 2 and 5.
function decades(format) {
	return {
		afterBuildTicks: (scale) => {
			const from = Math.floor(Math.log10(scale.min) + 1e-9), to = Math.ceil(Math.log10(scale.max) - 1e-9);
			const steps = to - from > 2 ? [1] : [1, 2, 5];
			scale.ticks = [];
			for (let decade = from; decade <= to; decade++)
				for (const step of steps)
					if (step * 10 ** decade >= scale.min * 0.999 && step * 10 ** decade <= scale.max * 1.001)
						scale.ticks.push({value: step * 10 ** decade});
		},
		ticks: {autoSkip: false, callback: onAxis(format)},
	};
}

// Ticks at round numbers of seconds, at most six; the end of the axis need not be one.
function roundSeconds(scale) {
	const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];
	const step = steps.find((seconds) => (scale.max - scale.min) / seconds <= 6) || 10 ** Math.ceil(Math.log10((scale.max - scale.min) / 6));
	scale.ticks = [];
	for (let value = Math.ceil(scale.min / step) * step; value <= scale.max; value += step) scale.ticks.push({value});
}

// `make` is called again when the theme changes: colours are part of a chart's configuration.
function chart(parent, label, height, make) {
	const canvas = element("canvas", {role: "img", "aria-label": label});
	parent.append(element("div", {class: "chart", style: `height:${height}px`}, canvas));
	const entry = {canvas, make, chart: null};
	drawn.push(entry);
	redraw(entry);
	return entry;
}

function redraw(entry) {
	if (entry.chart) entry.chart.destroy();
	const made = entry.make();
	made.options = {
		responsive: true,
		maintainAspectRatio: false,
		animation: false,
		...made.options,
	};
	made.options.plugins = {
		legend: {labels: {color: colour("text"), boxWidth: 12}},
		...(made.options.plugins || {}),
	};
	entry.chart = new Chart(entry.canvas, made);
}

function redrawAll() {
	drawn.forEach(redraw);
}

// Omit parts without time, and an overhang that only comes from rounding.
function drawnParts(parts) {
	const total = Object.values(parts).reduce((a, b) => a + b, 0);
	return Object.fromEntries(Object.entries(parts).filter(
		([part, ns]) => ns && (part !== "overhang" || Math.abs(ns) > 0.01 * total)));
}

// Rows are [{label, parts: {part: ns}}]; share: each row is made 100 % long.
function stackedBars(parent, label, rows, {share = false} = {}) {
	const drawable = rows.map((row) => drawnParts(row.parts));
	const present = PARTS.filter((part) => drawable.some((parts) => parts[part]));
	const total = (row) => Object.values(row.parts).reduce((a, b) => a + b, 0) || 1;
	const beyond = present.includes("overhang");
	parent.append(legend(present.map((part) => ({name: part, label: nameOf(part)}))));
	chart(parent, label, 40 + 26 * rows.length, () => ({
		type: "bar",
		data: {
			labels: rows.map((row) => row.label),
			datasets: present.map((part) => ({
				label: nameOf(part),
				data: drawable.map((parts, i) => (parts[part] || 0) / (share ? total(rows[i]) : 1)),
				backgroundColor: colour(part),
			})),
		},
		options: {
			indexAxis: "y",
			layout: {padding: {right: 14}},
			scales: {
				x: axis("", {stacked: true, min: beyond ? undefined : 0, max: share && !beyond ? 1 : undefined,
					ticks: {maxTicksLimit: 6, callback: onAxis(share ? percent : time)}}),
				y: axis("", {stacked: true, ticks: {autoSkip: false}}),
			},
			plugins: {
				legend: {display: false},
				tooltip: {callbacks: {label: (item) => {
					const ns = rows[item.dataIndex].parts[present[item.datasetIndex]] || 0;
					return `${item.dataset.label}: ${time(ns)} (${percent(ns / total(rows[item.dataIndex]))})`;
				}}},
			},
		},
	}));
}

// Return points {x, y}: one value in 10^x is slower than y ns. The last point leaves one value.
function percentilePoints(histogram) {
	const points = [];
	const last = Math.log10(Math.max(2, histogram.count));
	for (let x = 0; x <= last; x += 0.02) points.push(x);
	points.push(last);
	return points.map((x) => ({x, y: Math.max(quantile(histogram, 1 - 10 ** -x), 1)}));
}

// Return the start of the time axis. Stages that are zero are left out: a log axis has no zero.
function lowest(lines) {
	const values = lines.map(({histogram}) => quantile(histogram, 0.01)).filter((value) => value >= 1);
	return values.length ? 10 ** Math.floor(Math.log10(Math.min(...values))) : 1;
}

function highest(lines) {
	return 10 ** Math.ceil(Math.log10(Math.max(2, ...lines.map(({histogram}) => histogram.max_ns))));
}

// Lines are [{name, label, histogram, dash}]; one request in 10^x is slower than y, which has a log axis.
function percentiles(parent, label, lines) {
	parent.append(legend(lines));
	chart(parent, label, 360, () => ({
		type: "line",
		data: {datasets: lines.map((line) => ({
			label: line.label,
			data: percentilePoints(line.histogram),
			borderColor: colour(line.name),
			backgroundColor: colour(line.name),
			borderDash: line.dash || [],
			borderWidth: 2,
			pointRadius: 0,
			parsing: false,
		}))},
		options: {
			interaction: {mode: "index", intersect: false},
			scales: {
				x: axis("percentile", {type: "linear", min: 0, max: Math.max(...lines.map(({histogram}) => Math.log10(Math.max(2, histogram.count)))),
					afterBuildTicks: (scale) => {
						scale.ticks = Array.from({length: Math.floor(scale.max) + 1}, (_, value) => ({value}));
					},
					ticks: {autoSkip: false, callback: (x) => (x ? `p${(100 * (1 - 10 ** -x)).toFixed(Math.max(0, x - 2))}` : "min")}}),
				y: axis("", {type: "logarithmic", min: lowest(lines), max: highest(lines), ...decades(time)}),
			},
			plugins: {legend: {display: false}, tooltip: {callbacks: {
				title: (items) => (items.length
					? `p${(100 * (1 - 10 ** -items[0].parsed.x)).toFixed(Math.max(1, items[0].parsed.x - 1))}` : ""),
				label: (item) => `${item.dataset.label}: ${time(item.parsed.y)}`,
			}}},
		},
	}));
}

// Lines are [{name, label, points: [{x: load, y}], dash, hollow: [whether a point is], mark: it has no points}]; x is log.
function overLoad(parent, label, unit, loads, lines, {format = count, log = false} = {}) {
	chart(parent, label, 260, () => ({
		type: "line",
		data: {datasets: lines.map((line) => ({
			label: line.label,
			data: line.points,
			borderColor: colour(line.name),
			backgroundColor: colour(line.name),
			borderDash: line.dash || [],
			borderWidth: line.mark ? 1.5 : 2,
			pointRadius: line.mark ? 0 : 4,
			pointStyle: line.mark ? "line" : "circle",
			clip: 6,
			pointBackgroundColor: (line.hollow || []).map((hollow) => colour(hollow ? "back" : line.name)),
			parsing: false,
		}))},
		options: {
			interaction: {mode: "nearest", axis: "x", intersect: false},
			layout: {padding: {right: 12}},
			scales: {
				x: axis(`${unit} (log)`, {type: "logarithmic", min: loads[0], max: loads[loads.length - 1],
					afterBuildTicks: (scale) => {
						scale.ticks = loads.map((value) => ({value}));
					},
					ticks: {callback: (value) => count(value)}}),
				y: axis("", {afterFit: keepWidth, ...(log ? {type: "logarithmic", ...decades(format)}
					: {type: "linear", beginAtZero: true, grace: "5%",
						ticks: {maxTicksLimit: 8, callback: onAxis(format)}})}),
			},
			plugins: {
				title: {display: true, text: label, align: "start", color: colour("text")},
				legend: {labels: {color: colour("text"), usePointStyle: true, boxWidth: 16, boxHeight: 6}},
				tooltip: {filter: (item) => !lines[item.datasetIndex].mark, callbacks: {
					title: (items) => (items.length ? `${count(items[0].parsed.x)} ${unit}` : ""),
					label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
				}},
			},
		},
	}));
}

// Give all y axes the same width, so that the charts' areas lie exactly above each other.
function keepWidth(scale) {
	scale.width = 72;
}

// Draw a vertical line at the same time in every series, at the time under the pointer.
const cursor = {
	id: "cursor",
	afterEvent(source, {event}) {
		const out = event.type === "mouseout";
		const x = out ? null : source.scales.x.getValueForPixel(event.x);
		for (const {chart: other} of drawn) {
			if (!other || !other.options.cursor || (other.cursorAt ?? null) === x) continue;
			other.cursorAt = x;
			other.draw();
		}
	},
	afterDraw(target) {
		const x = target.cursorAt;
		if (!target.options.cursor || x === null || x === undefined) return;
		const at = target.scales.x.getPixelForValue(x);
		const {top, bottom, left, right} = target.chartArea;
		if (at < left || at > right) return;
		target.ctx.save();
		target.ctx.strokeStyle = colour("dim");
		target.ctx.beginPath();
		target.ctx.moveTo(at, top);
		target.ctx.lineTo(at, bottom);
		target.ctx.stroke();
		target.ctx.restore();
	},
};

function themeButton() {
	const root = document.documentElement;
	const button = element("button", {type: "button"}, "light / dark");
	button.addEventListener("click", () => {
		const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
		root.dataset.theme = dark ? "light" : "dark";
		redrawAll();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
	return button;
}

// Make a legend outside of a chart, for its lines [{name, label, dash}].
function legend(lines) {
	return element("p", {class: "legend"}, ...lines.map(({name, label, dash}) => element("span", {},
		element("i", {class: dash && dash.length ? "swatch dashed" : "swatch", style: `--hue:var(--${name})`}), label)));
}

function isZero(line) {
	return line.points.every(({y}) => !y);
}

function formatX(seconds, absolute) {
	return absolute ? new Date(seconds * 1000).toLocaleTimeString([], {hour12: false}) : `${seconds.toFixed(1)} s`;
}

function seriesOptions(format, log, fill, step, end, begin, absolute) {
	return {
		cursor: true,
		interaction: {mode: "index", intersect: false},
		layout: {padding: {right: 10, top: 4}},
		scales: {
			x: axis("", {type: "linear", min: begin, max: end, afterBuildTicks: roundSeconds, ticks: {autoSkip: false,
				callback: (value) => (absolute ? new Date(value * 1000).toLocaleTimeString([], {hour12: false, hour: "2-digit", minute: "2-digit",
					second: end - begin > 300 ? undefined : "2-digit"}) : `${value} s`)}}),
			y: axis("", {stacked: fill, afterFit: keepWidth, ...(log ? {type: "logarithmic", ...decades(format)}
				: {type: "linear", min: 0, ticks: {maxTicksLimit: 5, precision: format === count ? 0 : undefined,
					callback: onAxis(format)}})}),
		},
		plugins: {
			legend: {display: false},
			tooltip: {callbacks: {
				title: (items) => (items.length ? formatX(items[0].parsed.x, absolute) : ""),
				label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
			}},
		},
	};
}

/*
 * Draw a chart of lines [{name, label, points: [{x: s, y}], dash}] in a figure of its own. All series of a page share
 * the range of x. Lines that are always zero are not drawn but returned in `zero`. If only marks are left there is no
 * chart. `key`: "stages" if the page has a legend for these lines already, "none" if the title suffices.
 */
function series(parent, label, lines, {format = count, log = false, begin = 0, end, fill = false, step = false,
	absolute = false, key = "own"} = {}) {
	const zero = lines.filter(isZero);
	const held = {shown: lines.filter((line) => !isZero(line)), begin, end};
	if (held.shown.every((line) => line.mark)) return {zero, entry: null};
	const node = element("figure", {}, element("figcaption", {}, label,
		key === "own" ? legend(held.shown) : null));
	parent.append(node);
	const values = (line) => line.points.map(({x, y}) => ({x, y: log && !y ? NaN : y}));
	const entry = chart(node, label, 150, () => ({
		type: "line",
		data: {datasets: held.shown.map((line) => ({
			label: line.label,
			data: values(line),
			borderColor: colour(line.name),
			backgroundColor: colour(line.name),
			borderWidth: 1.5,
			borderDash: line.dash || [],
			pointRadius: line.points.length < 40 && !line.mark ? 2 : 0,
			stepped: step,
			spanGaps: false,
			fill,
			parsing: false,
		}))},
		plugins: [cursor],
		options: seriesOptions(format, log, fill, step, held.end, held.begin, absolute),
	}));
	// Draw the same lines at a later time.
	entry.update = (later, range) => {
		Object.assign(held, range, {shown: later.filter((line) => !isZero(line))});
		entry.chart.data.datasets.forEach((set, at) => {
			set.data = values(held.shown[at]);
		});
		Object.assign(entry.chart.options.scales.x, {min: held.begin, max: held.end});
		entry.chart.update("none");
	};
	return {zero, entry};
}

// Darker is more frequent; rare values must still be visible.
function paintCells(target, cells, hue) {
	const {ctx, scales: {x, y}, chartArea: {left, right, top, bottom}} = target;
	const most = Math.max(1, ...cells.map(({n, begin, end}) => n / (end - begin)));
	ctx.save();
	ctx.beginPath();
	ctx.rect(left, top, right - left, bottom - top);
	ctx.clip();
	ctx.fillStyle = hue;
	for (const {begin, end, from, to, n} of cells) {
		const [at, foot] = [x.getPixelForValue(begin), y.getPixelForValue(from)];
		ctx.globalAlpha = 0.15 + 0.85 * Math.sqrt(n / (end - begin) / most);
		ctx.fillRect(at, y.getPixelForValue(to), Math.max(1, x.getPixelForValue(end) - at), Math.max(1, foot - y.getPixelForValue(to)));
	}
	ctx.restore();
}

/*
 * Draw how frequent each time was, over time: cells [{begin, end (s), from, to (ns), n}]. Return an entry like that of
 * series(), whose update() takes other cells.
 */
function heatmap(parent, label, name, cells, range) {
	const held = {cells, ...range};
	const bounds = () => ({min: 10 ** Math.floor(Math.log10(Math.min(...held.cells.map(({from}) => Math.max(from, 1))))),
		max: 10 ** Math.ceil(Math.log10(Math.max(...held.cells.map(({to}) => to))))});
	const node = element("figure", {}, element("figcaption", {}, label));
	parent.append(node);
	const entry = chart(node, label, 150, () => {
		const options = seriesOptions(time, true, false, false, held.end, held.begin, true);
		Object.assign(options.scales.y, bounds());
		options.plugins.tooltip = {enabled: false};
		return {type: "line", data: {datasets: []}, options,
			plugins: [cursor, {id: "cells", beforeDatasetsDraw: (target) => paintCells(target, held.cells, colour(name))}]};
	});
	entry.update = (later, next) => {
		Object.assign(held, next, {cells: later});
		Object.assign(entry.chart.options.scales.x, {min: held.begin, max: held.end});
		Object.assign(entry.chart.options.scales.y, bounds());
		entry.chart.update("none");
	};
	return entry;
}

function removeCharts(entries) {
	for (const entry of entries) {
		entry.chart.destroy();
		drawn.splice(drawn.indexOf(entry), 1);
	}
}

// Name the lines that are always zero, which have no chart.
function zeroNote(node, lines) {
	const labels = [...new Set(lines.map((line) => line.label))];
	if (labels.length) node.append(element("p", {class: "dim"}, `Zero all the time: ${labels.join(", ")}.`));
}

// Make a bar of HTML from {part: ns}, as long as its share of `most`, with a description.
function partBar(parts, most) {
	const drawable = drawnParts(parts);
	const total = Object.values(drawable).reduce((a, b) => a + Math.max(0, b), 0);
	const present = PARTS.filter((part) => drawable[part] > 0);
	const said = present.map((part) => `${nameOf(part)} ${time(drawable[part])}, ${percent(drawable[part] / total)}`);
	return element("div", {class: "bar", role: "img", "aria-label": said.join("; ") || "nothing"},
		element("div", {style: `width:${(100 * total / (most || total || 1)).toFixed(2)}%`}, ...present.map((part) => element("span", {
			"data-part": part, "data-value": drawable[part], title: said[present.indexOf(part)],
			style: `flex:${drawable[part] / total};background:var(--${part})`}))));
}
