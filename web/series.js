// SPDX-License-Identifier: MIT
// The observer's gauges and rates over time.
"use strict";

function hasSeries(service) {
	return Boolean(service.series && service.series.begin_ns && service.series.begin_ns.length > 1);
}

function serviceSeries() {}
