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

// Rows are [{label, parts: {part: ns}}]; share: each row is made 100 % long.
function stackedBars(parent, label, rows, {share = false} = {}) {
	const present = PARTS.filter((part) => rows.some((row) => row.parts[part]));
	const total = (row) => Object.values(row.parts).reduce((a, b) => a + b, 0) || 1;
	const most = share && !present.includes("overhang") ? 1 : undefined;
	chart(parent, label, 70 + 34 * rows.length, () => ({
		type: "bar",
		data: {
			labels: rows.map((row) => row.label),
			datasets: present.map((part) => ({
				label: nameOf(part),
				data: rows.map((row) => (row.parts[part] || 0) / (share ? total(row) : 1)),
				backgroundColor: colour(part),
			})),
		},
		options: {
			indexAxis: "y",
			scales: {
				x: axis("", {stacked: true, max: most,
					ticks: {callback: (value) => (share ? percent(value) : time(value))}}),
				y: axis("", {stacked: true}),
			},
			plugins: {
				legend: {labels: {color: colour("text"), boxWidth: 12}},
				tooltip: {callbacks: {label: (item) => {
					const ns = rows[item.dataIndex].parts[present[item.datasetIndex]] || 0;
					return `${item.dataset.label}: ${time(ns)} (${percent(ns / total(rows[item.dataIndex]))})`;
				}}},
			},
		},
	}));
}

// Up to where a histogram of `count` values can tell percentiles: its last value is one in `count`.
function percentilePoints(histogram) {
	const points = [];
	const last = Math.log10(Math.max(2, histogram.count));
	for (let x = 0; x <= last; x += 0.02) points.push(x);
	points.push(last);
	return points.map((x) => ({x, y: Math.max(quantile(histogram, 1 - 10 ** -x), 1)}));
}

// Where the time axis begins: what takes next to nothing (a 0 of the stage) has no place on a log axis.
function lowest(lines) {
	const values = lines.map(({histogram}) => quantile(histogram, 0.01)).filter((value) => value >= 1);
	return values.length ? 10 ** Math.floor(Math.log10(Math.min(...values))) : 1;
}

// Lines are [{name, label, histogram, dash}]; x is one of how many requests is slower, log; y is time, log.
function percentiles(parent, label, lines) {
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
				x: axis("percentile", {type: "linear", min: 0,
					max: Math.max(...lines.map(({histogram}) => Math.log10(Math.max(2, histogram.count)))), ticks: {stepSize: 1,
					callback: (x) => (!Number.isInteger(x) ? "" : x ? `p${(100 * (1 - 10 ** -x)).toFixed(Math.max(0, x - 2))}` : "min")}}),
				y: axis("time (log)", {type: "logarithmic", min: lowest(lines), ticks: {maxTicksLimit: 12,
					callback: (value) => (/^[125]0*$/.test(String(value)) ? time(value) : "")}}),
			},
			plugins: {tooltip: {callbacks: {
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
				y: axis("", {type: log ? "logarithmic" : "linear", beginAtZero: !log, grace: log ? 0 : "5%",
					afterFit: (scale) => {
						scale.width = 86; // the charts' areas lie exactly above each other
					},
					ticks: {maxTicksLimit: 8,
						callback: (value) => (log && !/^[125]0*$/.test(String(value)) ? "" : format(value))}}),
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

// A vertical line at the same time in every series, wherever the pointer is.
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

// Lines are [{name, label, points: [{x: s, y}]}]; all series of a page share the range of x.
function series(parent, label, lines, {format = count, log = false, end, fill = false, step = false} = {}) {
	let shown = lines;
	const entry = chart(parent, label, 190, () => ({
		type: "line",
		data: {datasets: shown.map((line) => ({
			label: line.label,
			data: line.points,
			borderColor: colour(line.name),
			backgroundColor: colour(line.name),
			borderWidth: 1.5,
			borderDash: line.dash || [],
			pointRadius: line.points.length < 40 ? 2 : 0,
			stepped: step,
			spanGaps: false,
			fill,
			parsing: false,
		}))},
		plugins: [cursor],
		options: {
			cursor: true,
			interaction: {mode: "index", intersect: false},
			layout: {padding: {right: 8}},
			scales: {
				x: axis("seconds", {type: "linear", min: 0, max: end}),
				y: axis("", {type: log ? "logarithmic" : "linear", beginAtZero: !log, stacked: fill,
					afterFit: (scale) => {
						scale.width = 86; // the charts' areas lie exactly above each other
					},
					ticks: {maxTicksLimit: 6, precision: format === count ? 0 : undefined,
						callback: (value) => (log && !/^[125]0*$/.test(String(value)) ? "" : format(value))}}),
			},
			plugins: {
				title: {display: true, text: label, align: "start", color: colour("text")},
				tooltip: {callbacks: {
					title: (items) => (items.length ? `${items[0].parsed.x.toFixed(1)} s` : ""),
					label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
				}},
			},
		},
	}));
	// For pages whose lines come and go.
	entry.remake = (now) => {
		shown = now;
		redraw(entry);
	};
	return entry;
}
