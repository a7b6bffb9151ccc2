// SPDX-License-Identifier: MIT
// Runs against the first of them, as lib/compare.c found it.
"use strict";

function compared(row, value) {
	if (value === null || value === undefined) return "–";
	return row.unit === "ns" ? time(value) : count(value);
}

function verdict(side) {
	if (side.p_value === null) return side.reason;
	return side.p_value < 0.01 ? `significant (p = ${side.p_value.toPrecision(1)})` : `within noise (p = ${side.p_value.toPrecision(2)})`;
}

function compareSection(compare) {
	const node = section("Compared with the first run",
		"Significance: rank-sum test over the runs' intervals (Mann and Whitney 1947), where there are enough of them.");
	const others = data.names.slice(1);
	node.append(table(["", data.names[0], ...others.flatMap((name) => [name, "difference", "significance"])],
		compare.map((row) => [row.label, compared(row, row.before), ...row.after.flatMap((side) => [
			compared(row, side.value),
			element("td", {class: side.better === null ? null : side.better ? "good" : "bad"},
				side.change === null ? "–" : `${side.change > 0 ? "+" : ""}${percent(side.change)}`),
			verdict(side)])])));
}
