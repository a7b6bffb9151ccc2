// SPDX-License-Identifier: MIT
// Compares runs with the first one, by the results of lib/forms/compare.c. The answer comes first.
"use strict";

function compared(row, value) {
	if (value === null || value === undefined) return "–";
	return row.unit === "ns" ? time(value) : perSecond(value);
}

function answerOf(side, node) {
	const [answer, ...more] = side.answer.split("\n").filter(Boolean);
	node.append(element("p", {class: "answer"}, answer),
		...more.map((line) => element("p", {class: {"worse: ": "bad", "better:": "good"}[line.slice(0, 7)]}, line)));
	if (side.settings)
		node.append(element("p", {class: "warn"}, `settings differ: ${side.settings}`));
}

function compareSection({names, sides, rows}) {
	const node = section("Compared with the first run");
	sides.forEach((side) => answerOf(side, node));
	const others = names.slice(1);
	node.append(table(["", names[0], ...others.flatMap((name) => [name, "change", "how surely"])],
		rows.map((row) => [row.label, compared(row, row.before), ...row.after.flatMap((side) => [
			compared(row, side.value),
			element("td", {class: side.better === null ? null : side.better ? "good" : "bad"},
				side.change === null ? "–" : change(side.change)),
			element("td", {class: "text"}, side.surety)])])),
	element("p", {class: "dim"},
		"The rank-sum test (Mann and Whitney 1947): over the runs of both folders, whose medians are shown; of two "
		+ "single runs, over their intervals, whose scatter says nothing of how equal runs differ."));
}
