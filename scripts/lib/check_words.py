"""Finds private words in identifiers, file names, configuration texts and headings, and doc comments that begin like half a sentence.

    check_words.py ROOT [--count]     --count: how often each word occurs, and nothing else

A word is looked for in the parts of an identifier (`was_told`, `AllTold`), outside of comments and strings. Exceptions are the rows of the
table "Exceptions" in docs/glossary.md: `word in path` with a reason.
"""
import collections
import pathlib
import re
import sys

# Private word: what the field says.
WORDS = {
    "apart": "partition, separate",
    "asked": "requested",
    "crew": "thread group",
    "deaf": "unresponsive",
    "feather": "below fair share",
    "farewell": "time wait",
    "hasten": "wake early",
    "naps": "sleeps",
    "obey": "apply, honor",
    "refusal": "reject reason",
    "roll": "registry",
    "seating": "queue assignment",
    "tellable": "eligible",
    "told": "signalled, logged, sent",
    "vain": "ineffective",
    "vigil": "watchdog",
    "wish": "desired state",
}
# Openings of a first sentence that needs the line above it.
OPENINGS = re.compile(r"(What|Whether|Of|As|Who|Whose|Whom|By|Where)\b")
SKIPPED = {"target", ".git", ".venv", "snapshots", "captures"}
HEADINGS = re.compile(r"^#+ (.*)", re.M)


def sources(root, suffix):
    for path in sorted(root.rglob(f"*{suffix}")):
        if not SKIPPED & set(path.relative_to(root).parts):
            yield path


def code(text):
    """The text without comments, strings and names of tests."""
    text = re.sub(r'r#"(?:.|\n)*?"#|"(?:\\.|[^"\\])*"', '""', text)
    text = re.sub(r"//.*", "", text)
    return re.sub(r"#\[test\](?:\s*#\[[^\]]*\])*\s*fn \w+", "", text)


def parts(identifier):
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", identifier)}


def first_sentences(text):
    """Line number and text of each doc comment's first line."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*//([/!]) ?(.*)", line)
        if comment and not re.match(r"\s*//[/!]", before):
            yield number, comment[2]
        before = line


def exceptions(root):
    glossary = (root / "docs/glossary.md").read_text()
    rows = re.findall(r"^\| `(\w+)` in `([^`]+)` \|", glossary, re.M)
    return {(word, path) for word, path in rows}


def findings(root):
    allowed = exceptions(root)

    def is_allowed(word, path):
        name = str(path.relative_to(root))
        return any(word == other and name.startswith(prefix) for other, prefix in allowed)

    for path in sources(root, ".rs"):
        name, text = path.relative_to(root), path.read_text()
        for word in parts(path.stem) & WORDS.keys():
            if not is_allowed(word, path):
                yield word, f"{name}: file name"
        bare = code(text)
        for number, line in enumerate(bare.splitlines(), 1):
            for identifier in re.findall(r"[A-Za-z_]\w*", line):
                for word in parts(identifier) & WORDS.keys():
                    if not is_allowed(word, path):
                        yield word, f"{name}: `{identifier}`"
        for number, sentence in first_sentences(text):
            if OPENINGS.match(sentence):
                yield "opening", f"{name}:{number}: {sentence[:60]}"
        if "config/src/model" in str(name):
            for number, line in enumerate(text.splitlines(), 1):
                comment = re.match(r"\s*///(.*)", line)
                for word in re.findall(r"[a-z]+", comment[1]) if comment else []:
                    if word in WORDS and not is_allowed(word, path):
                        yield word, f"{name}:{number}: configuration text"
    for path in sources(root, ".md"):
        name = path.relative_to(root)
        if name.parts[:2] == ("docs", "experiments"):
            continue
        for heading in HEADINGS.findall(path.read_text()):
            for word in set(re.findall(r"[a-z]+", heading.lower())) & WORDS.keys():
                yield word, f"{name}: heading: {heading}"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(findings(root))
    if "--count" in sys.argv:
        for word, count in collections.Counter(word for word, _ in found).most_common():
            print(f"{count:5} {word}")
        return
    for word, place in sorted(set(found)):
        print(f"{place}: {WORDS.get(word, 'begin with the noun, or a verb')}")
    sys.exit(bool(found))


main()
