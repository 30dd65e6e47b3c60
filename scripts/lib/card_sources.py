"""Compares the quotes of a folder of card profiles with a source tree of DPDK: see scripts/card-sources.

    card_sources.py PROFILES [--exact] DIR [TAG]
"""
import argparse
import collections
import functools
import pathlib
import re
import subprocess
import sys

ANSWER = re.compile(r"([a-z]\w*):$")
SECTION = re.compile(r"  (source|absent): \|$")
QUOTE = re.compile(r"    ([^:]+):(\d+): (.*)$")
# FOLDER or FILE, and in parentheses the first line of a block of it.
ABSENT = re.compile(r"    ([^:(]+)(?:\((.*)\))?: (.*)$")

Row = collections.namedtuple("Row", "profile answer kind place detail text")


def rows(profile):
    """Quotes of one file, as the YAML of this folder has them."""
    answer = kind = None
    for number, line in enumerate(profile.read_text().splitlines(), 1):
        if found := ANSWER.match(line):
            answer, kind = found[1], None
        elif found := SECTION.match(line):
            kind = found[1]
        elif line.startswith("    "):
            found = {"source": QUOTE, "absent": ABSENT}[kind].match(line) if kind else None
            if not found:
                sys.exit(f"error: {profile}:{number}: neither FILE:LINE: TEXT nor FOLDER: TEXT")
            yield Row(profile.stem, answer, kind, *found.groups())
        elif line.startswith("  "):
            kind = None


class Tree:
    """Files of a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    @functools.cache
    def lines(self, path):
        """Lines of a file, without the blanks around them; none where there is no such file."""
        file = self.folder / path
        return self.stripped(file.read_text(errors="replace")) if file.is_file() else None

    @functools.cache
    def files(self, place):
        """Sources at or below a place."""
        if (self.folder / place).is_file():
            return [place]
        found = sorted((self.folder / place).rglob("*.[ch]"))
        return [str(file.relative_to(self.folder)) for file in found]

    @staticmethod
    def stripped(text):
        """Each line, and whether it begins in the first column."""
        return [(line.strip(), line[:1].strip() != "") for line in text.splitlines()]


class Tag(Tree):
    """Files of a tag of a git repository."""

    def __init__(self, repository, tag):
        super().__init__(repository)
        self.tag = tag

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.folder, *arguments], capture_output=True, check=False)

    @functools.cache
    def lines(self, path):
        got = self.git("show", f"{self.tag}:{path}")
        return self.stripped(got.stdout.decode(errors="replace")) if got.returncode == 0 else None

    @functools.cache
    def files(self, place):
        names = self.git("ls-tree", "-r", "--name-only", self.tag, "--", place).stdout.decode().splitlines()
        return [name for name in names if name.endswith((".c", ".h"))]


def quote_changed(tree, row, exact):
    """Difference of a quote, or nothing."""
    lines = tree.lines(row.place)
    if lines is None:
        return "the file is gone"
    at = [number for number, (line, _) in enumerate(lines, 1) if row.text in line]
    if not at:
        return "gone"
    if exact and int(row.detail) not in at:
        return f"on line {', '.join(map(str, at))}"
    return None


def absent_changed(tree, row):
    """Place of a text that was absent, or nothing."""
    files = tree.files(row.place)
    if not files:
        return "the place is gone"
    for path in files:
        lines = tree.lines(path)
        begin, end = 0, len(lines)
        if row.detail:
            heads = [n for n, (line, _) in enumerate(lines) if row.detail in line]
            if not heads:
                return "the block is gone"
            # The last: a declaration goes before.
            begin = heads[-1]
            end = next((n for n in range(begin, end) if lines[n][1] and lines[n][0].startswith("}")), end)
        for number in range(begin, end):
            if row.text in lines[number][0]:
                return f"now in {path}:{number + 1}: {lines[number][0]}"
    return None


def main():
    parser = argparse.ArgumentParser(prog="scripts/card-sources")
    parser.add_argument("profiles", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--exact", action="store_true", help="print quotes on another line too")
    parser.add_argument("dir", metavar="DIR", help="unpacked source tree of DPDK, or a git repository of it")
    parser.add_argument("tag", metavar="TAG", nargs="?", help="tag, branch or commit of the repository")
    options = parser.parse_args()
    tree = Tag(options.dir, options.tag) if options.tag else Tree(options.dir)
    if not tree.files("lib/ethdev"):
        where = f"tag {options.tag} of {options.dir}" if options.tag else options.dir
        sys.exit(f"error: no lib/ethdev in {where}: name a source tree of DPDK, or a repository and a tag")
    changed = 0
    for profile in sorted(options.profiles.glob("*.yaml")):
        for row in rows(profile):
            if row.kind == "source":
                difference, place = quote_changed(tree, row, options.exact), f"{row.place}:{row.detail}"
            else:
                difference, place = absent_changed(tree, row), row.place + (f"({row.detail})" if row.detail else "")
            if difference:
                changed += 1
                print(f"{row.profile} {row.answer}: {place}: {row.text}\n    {difference}")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
