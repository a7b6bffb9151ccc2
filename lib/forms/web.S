/* SPDX-License-Identifier: MIT */
/* The files of web/ and the chart library, as text in the program: pages need nothing from elsewhere. */
.macro embed symbol, path
	.global \symbol
\symbol:
	.incbin "\path"
	.byte 0
.endm

.section .rodata
embed web_style_css, "style.css"
embed web_values_js, "values.js"
embed web_charts_js, "charts.js"
embed web_series_js, "series.js"
embed web_compare_js, "compare.js"
embed web_sweep_js, "sweep.js"
embed web_report_js, "report.js"
embed web_live_js, "live.js"
embed web_chart_library_js, "chart.min.js"

.section .note.GNU-stack, "", %progbits
