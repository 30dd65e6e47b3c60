"""Counts the Rust lines of a tree: production code, its comments, and tests.

Production code is what is not blank, not a comment, and not under test: outside `#[cfg(test)]` items, outside the files that only such
items name, and outside tests/, benches/, examples/ and files called tests.rs or *_tests.rs.

A multi-line string is code on each of its lines. Attributes and lone braces are code.
"""

import pathlib
import re
import subprocess
import sys

TEST_FOLDERS = {"tests", "benches", "examples", "fuzz"}
TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
MODULE = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
PATH_ATTRIBUTE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]')


def blank_out(text):
    """The same text with comments as `/` and the contents of literals as `"`; lines stay where they are."""
    out = []
    at, end = 0, len(text)

    def fill(stop, mark):
        nonlocal at
        out.append("".join(c if c == "\n" else mark if not c.isspace() else c for c in text[at:stop]))
        at = stop

    while at < end:
        rest = text[at:at + 2]
        if rest == "//":
            stop = text.find("\n", at)
            fill(end if stop < 0 else stop, "/")
        elif rest == "/*":
            depth, stop = 1, at + 2
            while stop < end and depth:
                if text.startswith("/*", stop):
                    depth, stop = depth + 1, stop + 2
                elif text.startswith("*/", stop):
                    depth, stop = depth - 1, stop + 2
                else:
                    stop += 1
            fill(stop, "/")
        elif raw := re.match(r'[bc]?r(#*)"', text[at:at + 12]):
            if at and (text[at - 1].isalnum() or text[at - 1] == "_"):
                out.append(text[at])
                at += 1
                continue
            stop = text.find('"' + raw.group(1), at + raw.end())
            fill(end if stop < 0 else stop + 1 + len(raw.group(1)), '"')
        elif text[at] == '"':
            stop = at + 1
            while stop < end and text[stop] != '"':
                stop += 2 if text[stop] == "\\" else 1
            fill(min(stop + 1, end), '"')
        elif char := re.match(r"'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'", text[at:at + 14]):
            fill(at + char.end(), '"')
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def item_end(text, start):
    """Position after the item that begins at `start`, further attributes included."""
    depth = 0
    for at in range(start, len(text)):
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0 and c == "}":
                return at + 1
        elif depth == 0 and c in ";,":
            return at + 1
    return len(text)


class Source:
    """One file: its lines of code, comment and test, and the modules that it names under test."""

    def __init__(self, path, text):
        code = blank_out(text)
        lines = code.split("\n")
        under_test = [False] * len(lines)
        self.test_modules = []
        for found in TEST_ATTRIBUTE.finditer(code):
            stop = item_end(code, found.end())
            module = MODULE.search(code, found.end(), stop)
            if module:
                other = PATH_ATTRIBUTE.search(text, found.start(), stop)
                self.test_modules += candidates(path, module.group(1), other and other.group(1))
            for line in range(code.count("\n", 0, found.start()), code.count("\n", 0, stop) + 1):
                under_test[line] = True
        # Modules with a path of their own; in a test file they are tests.
        self.named_by_path = [path.parent / found.group(1) for found in PATH_ATTRIBUTE.finditer(text)]
        self.code = self.comment = self.test = 0
        for line, test in zip(lines, under_test):
            if not (bare := line.strip()):
                continue
            if test:
                self.test += 1
            elif set(bare) == {"/"} or not bare.replace("/", "").strip():
                self.comment += 1
            else:
                self.code += 1


def candidates(path, name, named_path):
    """Files that `mod name;` in the file `path` may mean."""
    if named_path:
        return [path.parent / named_path]
    own = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.parent / path.stem
    return [own / f"{name}.rs", own / name / "mod.rs"]


def is_test_file(path):
    return (
        bool(TEST_FOLDERS & set(path.parts[:-1]))
        or path.name == "tests.rs"
        or path.name.endswith("_tests.rs")
    )


def files_of(root, revision):
    """Every tracked Rust file with its text: of the working tree, or of a revision."""
    git = ["git", "-C", str(root)]
    listing = git + (["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files"])
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\n")
    for name in (name for name in names if name.endswith(".rs")):
        if revision:
            shown = subprocess.run(git + ["show", f"{revision}:{name}"], check=True, capture_output=True, text=True)
            yield pathlib.PurePosixPath(name), shown.stdout
        elif (file := pathlib.Path(root, name)).exists():
            yield pathlib.PurePosixPath(name), file.read_text(encoding="utf-8")


def count(root, revision=None):
    """Lines by package folder: {folder: [code, comment, test]}."""
    sources = {path: Source(path, text) for path, text in files_of(root, revision)}
    tests = {path for path in sources if is_test_file(path)}
    waiting = [path for source in sources.values() for path in source.test_modules]
    waiting += [path for test in tests for path in sources[test].named_by_path]
    # Modules below a test module are tests as well.
    while waiting:
        path = waiting.pop()
        if path in sources and path not in tests:
            tests.add(path)
        if path in sources:
            folder = path.parent if path.name == "mod.rs" else path.parent / path.stem
            waiting += [other for other in sources if folder in other.parents and other not in tests]
    totals = {}
    for path, source in sources.items():
        row = totals.setdefault(path.parts[0] if len(path.parts) > 1 else ".", [0, 0, 0])
        if path in tests:
            row[2] += source.code + source.comment + source.test
        else:
            row[0] += source.code
            row[1] += source.comment
            row[2] += source.test
    return totals


def main():
    root, *revisions = sys.argv[1:]
    tables = [count(root, revision) for revision in revisions or [None]]
    print(f"{'':14}{'code':>8}{'comments':>10}{'tests':>8}")
    for revision, table in zip(revisions or ["working tree"], tables):
        if len(tables) > 1:
            print(revision)
        for folder, row in sorted(table.items()):
            print(f"{folder:14}{row[0]:>8}{row[1]:>10}{row[2]:>8}")
        total = [sum(column) for column in zip(*table.values())]
        print(f"{'total':14}{total[0]:>8}{total[1]:>10}{total[2]:>8}")
    if len(tables) == 2:
        change = [sum(row[i] for row in tables[1].values()) - sum(row[i] for row in tables[0].values()) for i in range(3)]
        print(f"{'change':14}{change[0]:>+8}{change[1]:>+10}{change[2]:>+8}")


if __name__ == "__main__":
    main()
