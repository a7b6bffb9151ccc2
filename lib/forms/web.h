/* SPDX-License-Identifier: MIT */
/* The files of web/, embedded by web.S; each ends in a NUL. */
#ifndef LIB_FORMS_WEB_H
#define LIB_FORMS_WEB_H

extern const char web_style_css[];
extern const char web_values_js[];
extern const char web_charts_js[];
extern const char web_series_js[];
extern const char web_compare_js[];
extern const char web_sweep_js[];
extern const char web_report_js[];
extern const char web_live_js[];
extern const char web_chart_library_js[]; /* Chart.js, MIT licence, its notice included */

#endif
