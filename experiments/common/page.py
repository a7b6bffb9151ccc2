# SPDX-License-Identifier: MIT
"""The result page of an experiment: its template with the fields filled in, its plots, its figures."""
import json
import re

FIELD = re.compile(r"\{\{(\w+)\}\}")


def table(head, rows):
    """Return a table in Markdown; the first column is text, the others are figures."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"a row of {len(row)} cells below a head of {len(head)}: {row}")
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def code(lines):
    """Return lines as a block of code, indented as everywhere in docs/. The comment ends a preceding list,
    whose last item would otherwise include the lines."""
    return "<!-- -->\n\n" + "\n".join(f"    {line}" for line in lines)


class Page:
    """The result of run(context): figures (for the JSON file), fields (for page.md), and plots by name. A plot
    is a function that draws on matplotlib's axes (plot.save)."""

    def __init__(self, figures, fields, plots=None):
        self.figures, self.fields, self.plots = figures, fields, plots or {}


def render(template, fields):
    """Fill in the template's fields. A field without a value, or a value without its field, is an error: no
    page may be published with a hole."""
    wanted = set(FIELD.findall(template))
    if wanted != set(fields):
        raise ValueError(f"fields without a value: {sorted(wanted - set(fields))}; "
                         f"values without a field: {sorted(set(fields) - wanted)}")
    text = FIELD.sub(lambda match: str(fields[match[1]]), template)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def write(context, page, head):
    """Write DIR/NAME.md, NAME-PLOT.svg and NAME.json; return the paths. `head` has the fields and members of
    all pages."""
    from . import plot

    template = (context.source / "page.md").read_text(encoding="utf-8")
    text = render(template, {**head, **page.fields})
    context.folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in page.plots.items():
        written.append(context.folder / f"{context.name}-{name}.svg")
        plot.save(written[-1], draw)
    written.append(context.folder / f"{context.name}.md")
    written[-1].write_text(text, encoding="utf-8")
    written.append(context.folder / f"{context.name}.json")
    document = {"schema": "sojourn.experiment/1", "experiment": context.name,
                "quick": context.quick, "machine": head["machine"], "figures": page.figures}
    written[-1].write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n",
                           encoding="utf-8")
    return written
