"""Mutants: faults put into a copy of the tree, one law broken by each, and the tests that notice.

The copy lies in target/mutants. All mutants are in its one build, each behind its number (environment variable NPCC_MUTANT), so a mutant
costs a run of tests and no compilation. Production code has none of them.

tests/mutants/PACKAGE.toml has the mutants of a package, tests/mutants/survivors.toml why one is not killed. A mutant:

  number  unique over all files
  file    below src/ of the package
  law     sentence that no longer holds
  old     text that occurs once in the file, white space and tests aside: an expression, or a statement with its semicolon
  new     replaces it. Where the word MUTANT stands in it, it replaces `old` as it is, and MUTANT is true if this mutant runs
  tests   what should kill it, run first: a part of EXECUTABLE::TEST (not required). After it come the tests beside the file

A mutant is killed if a test of its package, or of a package that the table names as `tested_by`, fails, or the tests take five times as long as without it. The tests of each package are run as
one process an executable, so they must not depend on a process of their own. The exit status is 1 if one survives that
survivors.toml does not name, or one is killed that it names.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT / "tests/mutants"
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
TREE = BUILT / "tree"
RESULTS = BUILT / "results.json"
MEMORY = 16 << 30

# Put at the end of each package's lib.rs.
SWITCHBOARD = """
pub(crate) mod npcc_mutant {
    pub(crate) fn is(number: u32) -> bool {
        static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        let chosen = || std::env::var("NPCC_MUTANT").ok().and_then(|number| number.parse().ok());
        *CHOSEN.get_or_init(|| chosen().unwrap_or(0)) == number
    }
}
"""


def fail(text):
    sys.exit(f"error: {text}")


def read_tables():
    """The packages by name, each with its mutants, and the reasons of survivors by number."""
    packages, numbers = {}, {}
    for path in sorted(TABLES.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        if path.stem == "survivors":
            continue
        for mutant in table["mutant"]:
            if missing := {"number", "file", "law", "old", "new"} - mutant.keys():
                fail(f"{path.name}: mutant {mutant.get('number')} has no {', '.join(sorted(missing))}")
            if numbers.setdefault(mutant["number"], path.name) is not path.name or not mutant["number"]:
                fail(f"{path.name}: number {mutant['number']} is taken")
            mutant["package"] = path.stem
        if len({mutant["number"] for mutant in table["mutant"]}) < len(table["mutant"]):
            fail(f"{path.name}: a number occurs twice")
        packages[path.stem] = table
    reasons = tomllib.loads((TABLES / "survivors.toml").read_text())["survivors"]
    reasons = {int(number): reason for number, reason in reasons.items()}
    if unknown := reasons.keys() - numbers.keys():
        fail(f"survivors.toml: no mutant has number {unknown}")
    return packages, reasons


def found(source, mutant):
    """Where the text of a mutant lies: before the tests of the file."""
    words = mutant["old"].split()
    tests = re.search(r"^#\[cfg\(test\)\]\n(#\[.*\]\n)*mod ", source, re.M)
    places = list(re.finditer(r"\s+".join(map(re.escape, words)), source[:tests.start()] if tests else source))
    if len(places) != 1:
        fail(f"mutant {mutant['number']}: {mutant['file']} has this {len(places)} times, not once:\n{mutant['old']}")
    return places[0].span()


def mutate(source, mutants):
    """The source with all mutants of a file. One may lie within the `old` of another."""
    spans = {}
    for mutant in mutants:
        place = found(source, mutant)
        spans.setdefault(place, []).append(mutant)
        # A number is not known to the compiler: a function that has a mutant is not const.
        *_, function = re.finditer(r"(const )?(?:unsafe )?fn \w", source[:place[1]])
        if function[1]:
            spans[function.span(1)] = []
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))

    def render(start, end):
        out, at = [], start
        while ordered and ordered[0][0] < end:
            first, last = ordered.pop(0)
            if last > end:
                fail(f"mutant {spans[first, last][0]['number']} overlaps another")
            out.append(source[at:first])
            old = render(first, last) if spans[first, last] else ""
            for mutant in spans[first, last]:
                condition = f"crate::npcc_mutant::is({mutant['number']})"
                new = mutant["new"].strip()
                if "MUTANT" in new:
                    if old != source[first:last]:
                        fail(f"mutant {mutant['number']} replaces text that others are in")
                    old = new.replace("MUTANT", condition)
                elif mutant["old"].rstrip().endswith(";"):
                    old = f"if {condition} {{ {new} }} else {{ {old} }}"
                else:
                    old = f"(if {condition} {{ {new} }} else {{ {old} }})"
            out.append(old)
            at = last
        out.append(source[at:end])
        return "".join(out)

    return render(0, len(source))


def make_tree(packages):
    """Copies the tracked files, with the mutants. A file that stays as it was keeps its time, so cargo builds little."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in names.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    mutants = {}
    for table in packages.values():
        for mutant in table["mutant"]:
            mutants.setdefault(f"{table['folder']}/src/{mutant['file']}", []).append(mutant)
    if missing := mutants.keys() - set(names):
        fail(f"no such file: {', '.join(sorted(missing))}")
    roots = {f"{table['folder']}/src/lib.rs" for table in packages.values()}
    for name in names:
        content = (ROOT / name).read_bytes()
        if name in mutants:
            content = mutate(content.decode(), mutants[name]).encode()
        if name in roots:
            # After the documentation of the crate, which stands before all else.
            head = re.match(r"(//!.*\n|\s)*", content.decode())[0]
            content = f"{head}#![allow(warnings)]\n{content.decode()[len(head):]}{SWITCHBOARD}".encode()
        copy = TREE / name
        if copy.is_file() and copy.read_bytes() == content:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        copy.chmod((ROOT / name).stat().st_mode)
    # Tests that want a folder on a disk make it here.
    (TREE / "target").mkdir(exist_ok=True)
    kept = set(names)
    for folder in [TREE / table["folder"] for table in packages.values()]:
        for path in folder.rglob("*.rs"):
            if str(path.relative_to(TREE)) not in kept:
                path.unlink()


def environment(mutant):
    """What tests see: no number is the tree as it is. Properties draw the same cases each time; one that fails is not
    minimised, and not replayed for the next mutant."""
    python = {"NPCC_PYTHON": str(ROOT / ".venv/bin/python")} if (ROOT / ".venv").is_dir() else {}
    return python | os.environ | {
        "CARGO_TARGET_DIR": str(BUILT / "build"),
        "NPCC_MUTANT": str(mutant),
        "PROPTEST_RNG_SEED": "47",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
    }


class Executable:
    """A test executable: its name, its tests, and how long they take without a mutant."""

    def __init__(self, artifact):
        self.path = artifact["executable"]
        self.name = artifact["target"]["name"].replace("-", "_")
        self.folder = pathlib.Path(artifact["manifest_path"]).parent
        self.seconds = 0.0
        self.tests = self.list_tests() - self.list_tests("--ignored")

    def list_tests(self, *arguments):
        listed = subprocess.run([self.path, "--list", "--format", "terse", *arguments], cwd=self.folder, capture_output=True, text=True, check=True)
        return {line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")}

    def full(self, test):
        return f"{self.name}::{test}"

    threads = os.cpu_count()

    def run(self, tests, mutant, limit):
        """What failed first, if something did: a test, or how the executable ended."""
        command = [self.path, "--exact", "--test-threads", str(self.threads), *sorted(tests)]
        process = subprocess.Popen(command, cwd=self.folder, env=environment(mutant), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, errors="replace", start_new_session=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        late = threading.Event()

        def stop():
            late.set()
            end(process)

        timer = threading.Timer(limit, stop)
        timer.start()
        waiting = set(tests)
        failed = None
        try:
            for line in process.stdout:
                if status := re.match(r"test (\S+).* \.\.\. (ok|FAILED|ignored)", line):
                    waiting.discard(status[1])
                    if status[2] == "FAILED":
                        failed = self.full(status[1])
                        break
        finally:
            timer.cancel()
            if failed:
                end(process)
            process.stdout.close()
            code = process.wait()
        if failed or code == 0 and not late.is_set():
            return failed
        one = min(waiting) if len(waiting) == 1 else f"({len(waiting)} tests not ended)"
        return self.full(one) + (f" takes over {limit:.0f} s" if late.is_set() else f" ends the process ({code})")


def beside(file):
    """Parts of the names of tests beside a file, then of those in its folder."""
    module = file.removesuffix(".rs").removesuffix("/mod").replace("/", "::")
    folder, _, _ = module.rpartition("::")
    return [f"::{module}"] + ([f"::{folder}::"] if folder else [])


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def tested_by(table):
    """The packages whose tests kill a table's mutants."""
    return [table["package"], *table.get("tested_by", [])]


def build(packages, others):
    """The test executables of the packages, by package; those of other packages under the names that cargo knows."""
    packages = packages | {other: {"package": other} for other in others}
    command = ["cargo", "test", "--no-run", "--tests", "--message-format", "json-render-diagnostics"]
    tested = dict.fromkeys(name for table in packages.values() for name in tested_by(table))
    command += [word for name in tested for word in ("-p", name)]
    cargo = subprocess.Popen(command, cwd=TREE, env=environment(0) | {"CARGO_INCREMENTAL": "0"}, stdout=subprocess.PIPE, text=True)
    artifacts = []
    for line in cargo.stdout:
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]:
            artifacts.append(message)
    if cargo.wait():
        fail("the copy with the mutants does not build")
    executables = {name: [] for name in packages}
    for artifact in artifacts:
        manifest = tomllib.loads(pathlib.Path(artifact["manifest_path"]).read_text())
        for name, table in packages.items():
            if manifest["package"]["name"] in tested_by(table):
                executables[name].append(Executable(artifact))
    return executables


class Suite:
    """The tests of a package, without the slow ones unless all are wanted."""

    def __init__(self, table, executables, everything, only):
        slow = [] if everything else [entry["tests"] for entry in table.get("slow", [])]
        never = [entry["tests"] for entry in table.get("never", [])]
        self.parts = []
        for executable in executables:
            names = {test for test in executable.tests
                     if not any(part in executable.full(test) for part in slow + never) and (not only or only in executable.full(test))}
            if names:
                self.parts.append((executable, names))

    def baseline(self):
        for executable, names in self.parts:
            began = time.monotonic()
            if failed := executable.run(names, 0, 3600):
                fail(f"without a mutant: {failed}")
            executable.seconds = time.monotonic() - began
        self.parts.sort(key=lambda part: part[0].seconds)
        return sum(executable.seconds for executable, _ in self.parts)

    def chosen(self, part):
        picked = ((executable, {test for test in names if part in executable.full(test)}) for executable, names in self.parts)
        return [(executable, names) for executable, names in picked if names]

    def killer(self, number, hints):
        """The test that fails with a mutant, if one does: the hinted ones run first."""
        for parts in [self.chosen(hint) for hint in hints if hint] + [self.parts]:
            for executable, names in parts:
                if failed := executable.run(names, number, 30 + 5 * executable.seconds):
                    test = failed.split(" ")[0].removeprefix(executable.name + "::")
                    if test in names and (other := executable.run({test}, 0, 60 + 5 * executable.seconds)):
                        fail(f"without a mutant too, now and then: {other}")
                    return failed
        return None


def main():
    parser = argparse.ArgumentParser(prog="scripts/test-long mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="packages (names of the tables) and numbers; without one: all")
    parser.add_argument("--list", action="store_true", help="the mutants, and why survivors survive")
    parser.add_argument("--all", action="store_true", help="the slow tests too")
    parser.add_argument("--tests", metavar="PART", help="only tests with this in EXECUTABLE::TEST; expectations are not looked at")
    parser.add_argument("--of", metavar="PACKAGE", help="the tests of this package instead, such as npcc-switch; expectations are not looked at")
    parser.add_argument("--threads", type=int, metavar="N", help="tests at a time; 1 for tests that start the switch")
    parser.add_argument("--build", action="store_true", help="build, and run no test")
    parser.add_argument("--again", action="store_true", help="forget which test killed a mutant last time")
    options = parser.parse_args()

    packages, reasons = read_tables()
    mutants = [mutant for table in packages.values() for mutant in table["mutant"]]
    wanted = set(options.what)
    if unknown := wanted - packages.keys() - {str(mutant["number"]) for mutant in mutants}:
        fail(f"no package and no mutant: {', '.join(sorted(unknown))}")
    if wanted:
        mutants = [mutant for mutant in mutants if wanted & {mutant["package"], str(mutant["number"])}]
    if options.list:
        for mutant in mutants:
            print(f"{mutant['number']:4} {mutant['package']}/{mutant['file']}: {mutant['law']}")
            if reason := reasons.get(mutant["number"]):
                print(f"     survives: {reason}")
        return 0

    make_tree(packages)
    built = {name: packages[name] for name in dict.fromkeys(mutant["package"] for mutant in mutants)}
    executables = build(built, [options.of] if options.of else [])
    Executable.threads = options.threads or Executable.threads
    if options.build:
        return 0
    began = time.monotonic()
    suites = {}
    for name in [options.of] if options.of else {mutant["package"]: None for mutant in mutants}:
        suites[name] = Suite(packages.get(name, {}), executables[name], options.all, options.tests)
        print(f"{name}: {sum(len(names) for _, names in suites[name].parts)} tests, {suites[name].baseline():.0f} s without a mutant", flush=True)
    free = options.tests or options.of
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() and not options.again else {}
    killed, survived, wrong = 0, [], []
    for mutant in mutants:
        number, at = mutant["number"], time.monotonic()
        last = results.get(str(number)) or ""
        hints = [last if " " not in last else "", mutant.get("tests", ""), *beside(mutant["file"])]
        by = suites[options.of or mutant["package"]].killer(number, [] if free else hints)
        if not free:
            results[str(number)] = by
            RESULTS.write_text(json.dumps(results, indent=1))
        killed += by is not None
        if by is None:
            survived.append(number)
        if (by is None) != (number in reasons):
            wrong.append(number)
        print(f"{number:4} {f'killed by {by}' if by else 'SURVIVED'} ({time.monotonic() - at:.1f} s): {mutant['package']}/{mutant['file']}: {mutant['law']}",
              flush=True)
    print(f"{len(mutants)} mutants: {killed} killed, {len(survived)} survived ({' '.join(map(str, survived))}), {time.monotonic() - began:.0f} s")
    if free:
        return 0
    for number in wrong:
        print(f"mutant {number}: " + ("killed, though survivors.toml says it is not: " + reasons[number] if number in reasons
                                      else "no test notices: write one, or give the reason in survivors.toml"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
