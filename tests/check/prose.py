#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sentences for a first reader: at most 25 words in comments and messages, at most 30 in documents, and none of
the phrases in PHRASES."""
import inspect
import re
import sys
from typing import NamedTuple

import reading
import tree
from tree import Example

LONGEST = {"comment": 25, "message": 25, "document": 30}

# Other people's texts, programs' output, and this file's own examples.
SKIPPED = ("LICENSES", "packaging/copyright", "tests/unit/golden", "tests/check/prose.py")


class Phrase(NamedTuple):
    """A phrase that stalls readers, and its replacement."""

    pattern: str
    better: str
    found: str
    not_found: str


# Each pattern is searched in a single sentence, so ^ is where the sentence starts.
PHRASES = (
    Phrase(r"^(?:Who|What|Whoever|Whatever|Whose)\b(?!.*\?$)", "name the thing as the subject",
           "What was missed is counted.", "What is missed?"),
    Phrase(r"\bbehind (?:it|them|this|that|each|every|all|both|those)\b", "after",
           "The read comes behind it.", "A server behind a proxy."),
    Phrase(r"\banew\b", "again", "It is read anew.", "It is a new one."),
    Phrase(r"\b(?:tell|tells|told)\b(?!(?: \S+){0,4} (?:apart|from)\b)", "report, print, say or distinguish", "Losses are told.", "It tells old segments from new."),
    Phrase(r"\b(?:by itself|by themselves)\b", "automatically, or alone", "It ends by itself.", "It ends."),
    Phrase(r"\bnobody's\b", "free, or without an owner", "The slot is nobody's.", "Nobody owns the slot."),
    Phrase(r"\baffair\b", "name the thing", "That is its own affair.", "That is its task."),
    Phrase(r"\b(?:go|goes|going|gone|went) on with\b", "continue", "It is gone on with.", "It goes on."),
    Phrase(r"\bto be had\b", "available", "None is to be had.", "It has to be read."),
    Phrase(r"\bfor ever\b", "without end", "It waits for ever.", "It waits for each."),
)


# A mark, perhaps in brackets or bold, before the start of a sentence: a capital, code, or a number after a word.
SENTENCE_END = re.compile(r"""(?:(?<=[.!?:;])|(?<=[.!?]\))|(?<=[.!?]\*\*))\s+(?=[A-Z@`'"(\[*]|[a-z_]+\(|0:)"""
                          r"""|(?<=[.!?])\s+(?=[a-z]+:)|(?<=[\w)]{2}[.!?])\s+(?=\d)""")


def sentences(text):
    """Yield the sentences of a text without code and quotes, one paragraph or list item at a time."""
    text = re.sub(r"^(?:#+ .*|> .*|\|[-| :]+\||(?: {4,}|\t)\S.*|<.*)$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^[ \t]*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\|.*$", lambda row: "\n\n" + row[0].replace("|", "\n\n"), text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph.split())
        yield from SENTENCE_END.split(joined)


def words(sentence):
    """Return the words; code in backquotes is one word, and so is a link's text."""
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    sentence = re.sub(r"\]\([^)]*\)", "]", sentence)
    return [word for word in sentence.split() if re.search(r"\w", word)]


def without_tables(comment):
    """Remove lines indented by two blanks or more, which are rows of a table or code."""
    return re.sub(r"^ {2,}.*$", "", inspect.cleandoc(comment), flags=re.MULTILINE)


def faults(kind, text):
    for sentence in sentences(text):
        count = len(words(sentence))
        if count > LONGEST[kind]:
            yield f"{count} words in a sentence of a {kind}, at most {LONGEST[kind]}: {sentence[:60]}…"
        bare = re.sub(r"`[^`]*`", "", sentence)
        for phrase in PHRASES:
            found = re.search(phrase.pattern, bare)
            if found:
                yield f"'{found[0]}': {phrase.better}: {sentence[:60]}…"


def of_file(path, text):
    if path.suffix == ".md":
        kind, pairs = "document", reading.document_paragraphs(text)
    else:
        kind, pairs = "comment", reading.paragraphs(reading.prose(path, text))
    for number, said in pairs:
        for fault in faults(kind, said if kind == "document" else without_tables(said)):
            yield f"{path}:{number}: {fault}"
    if path.suffix in (".c", ".h"):
        for number, said in reading.c_strings(text):
            # A message separates what happened, its cause and the remedy by these.
            for fault in faults("message", re.sub(r"[;:] ", ".\n\n", said)):
                yield f"{path}:{number}: {fault}"


def is_data(path):
    return path.suffix == ".txt" and path.name != "CMakeLists.txt"


def problems(root, options):
    del options
    for path in tree.files(root):
        if not tree.under(path, *SKIPPED) and not is_data(path) and reading.is_text(root / path):
            yield from of_file(path, (root / path).read_text())


OPENING = "/* SPDX-License-Identifier: MIT */\n"
LONG = " ".join(["word"] * 26)
EXAMPLES = [
    Example("clean", {"lib/a.c": OPENING + "/* Return the slot. */\nint a = f(\"cannot open %s\");\n",
                      "docs/a.md": "# " + LONG + LONG + "\n\nA page.\n\n```\n" + LONG * 2 + "\n```\n"}, []),
    Example("ends", {"docs/a.md": f"A {LONG}. A {LONG} (word.) A {LONG} **word.** A {LONG}. 2 {LONG}: `word` {LONG}.\n\n> {LONG} {LONG}\n"}, []),
    Example("no end", {"docs/a.md": f"A {LONG} e.g. 2 {LONG}.\n"}, ["docs/a.md:1: 55 words"]),
    Example("long", {"lib/a.c": OPENING + f"/* {LONG}. */\n", "lib/b.c": OPENING + f"int b = f(\"{LONG}\");\n",
                     "docs/a.md": LONG + " " + LONG + ".\n", "docs/b.md": LONG + ".\n", "a.py": f"# {LONG}\n"},
            ["lib/a.c:2: 26 words", "lib/b.c:2: 26 words", "docs/a.md:1: 52 words", "a.py:1: 26 words"]),
]
EXAMPLES += [Example(f"phrase {i}", {f"docs/a{i}.md": phrase.found + "\n", "docs/b.md": phrase.not_found + "\n"},
                     [f"docs/a{i}.md:1: '"]) for i, phrase in enumerate(PHRASES)]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
