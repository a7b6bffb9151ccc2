# SPDX-License-Identifier: MIT
"""The text that people read in a file: its comments, its documents, and its program's messages."""
import ast
import io
import re
import tokenize

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
STRINGS = re.compile(r"(?:\"(?:\\.|[^\"\\\n])*\"(?:\s*(?:PRI[a-z0-9]+\s*)?(?=\"))?)+")
NOT_COMMENTED = (".md", ".txt")
HASHED = (".sh", ".cmake", ".yaml", ".yml", ".service")


def c_comments(text):
    for match in TOKEN.finditer(text):
        if not match[0].startswith('"'):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def script_comments(text):
    """Yield comments of JavaScript and CSS that begin a line: others are hard to distinguish from strings."""
    for match in re.finditer(r"^[ \t]*(/\*.*?\*/|//[^\n]*)", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def python_comments(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node, clean=False)


def hash_comments(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.search(r"(?:^|\s)#(.*)", line)
        if found:
            yield number, found[1]


def prose(path, text):
    """Return pairs (line, text) of a file's comments or of a document."""
    if path.suffix in (".c", ".h"):
        return c_comments(text)
    if path.suffix in (".js", ".css"):
        return script_comments(text)
    if path.suffix in NOT_COMMENTED and path.name != "CMakeLists.txt":
        return [(1, text)]
    first = text.split("\n", 1)[0]
    if path.suffix == ".py" or (first.startswith("#!") and "python" in first):
        return python_comments(text)
    if path.suffix in HASHED or path.name == "CMakeLists.txt" or first.startswith("#!"):
        return hash_comments(text)
    return ()


def is_text(path):
    try:
        path.read_text()
    except UnicodeDecodeError:
        return False
    return True


def bare(comment):
    comment = re.sub(r"^/\*+|\*/$|^//+|^#+ ?", "", comment.strip())
    return re.sub(r"^[ \t]*\*(?: |$)", "", comment, flags=re.MULTILINE)


def c_strings(text):
    """Yield (line, text) of a C file's string literals: adjacent ones are joined, then split at each \\n."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for match in STRINGS.finditer(code):
        whole = "".join(part[1:-1] for part in re.findall(r"\"(?:\\.|[^\"\\\n])*\"", match[0]))
        for line in whole.split("\\n"):
            yield code.count("\n", 0, match.start()) + 1, line


def paragraphs(pairs):
    """Yield comments; one-line comments on successive lines are joined, a block comment stands alone."""
    held = None
    for number, text in pairs:
        if "SPDX-License-Identifier" in text:
            continue
        if held and number == held[2] + 1 and not text.startswith("/*"):
            held = (held[0], held[1] + "\n" + bare(text), number)
            continue
        if held:
            yield held[:2]
        held = (number, bare(text), number + text.count("\n"))
    if held:
        yield held[:2]


def document_paragraphs(text):
    text = re.sub(r"^[ \t]*```.*?^[ \t]*```", lambda block: "\n" * block[0].count("\n"), text,
                  flags=re.MULTILINE | re.DOTALL)
    for match in re.finditer(r"(?:^.*\S.*\n?)+", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, match[0]
