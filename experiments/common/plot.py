# SPDX-License-Identifier: MIT
"""Plots as small SVG files: text stays text, and a background keeps them readable on light and on dark pages."""

COLOURS = ("#0b6e99", "#d1495b", "#3c8d2f", "#8d5a97", "#c77d0a", "#555555")
GROUND = "#fcfcfa"
STYLE = {
    "axes.edgecolor": "#888888", "axes.grid": True, "axes.axisbelow": True,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 10,
    "figure.facecolor": GROUND, "axes.facecolor": GROUND, "savefig.facecolor": GROUND,
    "font.family": "sans-serif", "font.size": 9, "grid.color": "#e2e2de", "legend.frameon": False,
    "lines.linewidth": 1.6, "lines.markersize": 4, "svg.fonttype": "none", "svg.hashsalt": "sojourn",
}
PANEL_INCHES = (4.2, 3.1)
COUNTS = "{x:,.10g}"  # for axis.set_major_formatter(): numbers with commas


def panels(count):
    """Decorate a drawing function with its number of axes, side by side (default: one)."""
    def mark(draw):
        draw.panels = count
        return draw
    return mark


def save(path, draw):
    """Draw and write one file: `draw(axes)`, or `draw(list of axes)` for several."""
    # Imported only here: listing experiments needs no matplotlib.
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    count = getattr(draw, "panels", 1)
    with pyplot.rc_context({**STYLE, "axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
        width = PANEL_INCHES[0] * max(count, 1.4)
        figure, axes = pyplot.subplots(1, count, figsize=(width, PANEL_INCHES[1]))
        draw(axes)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
