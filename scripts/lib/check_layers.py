"""Which package may depend on which, and no circles between the files of a package: check_layers.py ROOT.

A file depends on another when a path in it that begins with `crate::`, `super::`, `self::` or a module that a `use` brings in, in a `use` or
anywhere in code, names something that stands there. A name that a module re-exports (`pub use`) leads through that module to where it is written, and both are depended on, except
that a file does not depend on the facade of its own folder, nor the facade on the folder. What is only compiled for tests does not count.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

# Layers as in ARCHITECTURE.md: a package and all it may depend on. Tests, benches and examples may use the test kit besides.
MAY = {
    "npcc-dpdk-sys": set(),
    "npcc-heap": set(),
    "npcc-pipeline": {"npcc-heap"},
    # Implements an interface of the packet path with intrinsics.
    "npcc-simd": {"npcc-pipeline"},
    # The words of the file are the enums of those who obey them.
    "npcc-config": {"npcc-pipeline", "npcc-roce", "npcc-cnp"},
    # What crosses a socket, for both ends of it.
    "npcc-api": {"npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config"},
    "npcc-doctor": {"npcc-config"},
    # A program of its own; the only one that knows NATS.
    "npcc-feed": {"npcc-pipeline", "npcc-config", "npcc-api"},
    "npcc-dpdk": {"npcc-dpdk-sys", "npcc-pipeline"},
    # Endpoints of RoCEv2, without I/O: knows nothing of congestion.
    "npcc-roce": {"npcc-pipeline", "npcc-heap"},
    "npcc-cnp": {"npcc-pipeline", "npcc-heap", "npcc-roce"},
    "npcc-linux": {"npcc-pipeline", "npcc-heap"},
    "npcc-sim": {"npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config"},
    # Threads that move frames; nothing that an operator talks to.
    "npcc-engine": {"npcc-api", "npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config", "npcc-dpdk", "npcc-heap"},
    # The library in switch/ knows neither what measures it nor the binary.
    "npcc-appliance": {"npcc-api", "npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config", "npcc-dpdk", "npcc-engine", "npcc-heap", "npcc-linux", "npcc-simd"},
    "npcc-lab": {"npcc-api", "npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config", "npcc-dpdk", "npcc-engine", "npcc-heap", "npcc-sim", "npcc-appliance"},
    # Model of cards for tests; knows nothing of the switch.
    "npcc-card": set(),
    # The plug-in that gives the cards to a process, for tests.
    "npcc-double": {"npcc-card"},
    "npcc-testkit": {"npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-simd", "npcc-card"},
    # The binary, which puts everything together.
    "npcc-switch": {"npcc-api", "npcc-pipeline", "npcc-roce", "npcc-cnp", "npcc-config", "npcc-doctor", "npcc-dpdk", "npcc-engine", "npcc-heap", "npcc-simd", "npcc-linux", "npcc-sim", "npcc-lab", "npcc-appliance"},
}

# Dependencies of one package alone: the switch itself never dials out.
ONLY = {"async-nats": "npcc-feed"}

# Packages that a thread of the packet path has nothing to do with: whoever changes the page or a table builds no worker.
FREE_OF = {"npcc-engine": {"axum", "hyper", "tokio", "ratatui", "prometheus-client", "npcc-appliance"}}

# What stands at the top level, and the libraries that the product is built on, each a direct dependency of a package.
TOP = ("Cargo.toml", "build.rs", "dpdk-sys", "switch", "pipeline", "cnp", "config", "scripts", "benches", "tests")
BUILT_ON = ("bindgen", "crossbeam", "core_affinity", "hdrhistogram", "serde_yaml", "clap", "nix")

# Circles that are known and have to go: their files, by package. One that is gone, grew or shrank must be struck out here.
KNOWN = {}

PATH = re.compile(r"(?<![\w:$])(?:crate|super|self)(?:\s*::\s*\w+)+")
NOT_CODE = re.compile(r"""//[^\n]*|'(?:\\.|[^\\'])'|r#*"(?:.|\n)*?"#*|"(?:\\.|[^"\\])*\"""")
USE = re.compile(r"^\s*(pub(?:\([a-z :]+\))?\s+)?use\s+((?:crate|super|self)\b[^;]*);", re.M | re.S)


def paths(tree):
    """Every path of a use tree, as (segments, name it is bound to)."""
    tree = re.sub(r"//[^\n]*", "", tree).strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = (part.strip() for part in tree.partition(" as "))
        parts = [part.strip() for part in path.split("::")]
        yield parts, alias or parts[-1]
        return
    before = [part.strip() for part in tree[:brace].split("::") if part.strip()]
    depth, start = 0, brace + 1
    inner = tree[brace + 1:tree.rfind("}")]
    start = 0
    for at, letter in enumerate(inner + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if inner[start:at].strip():
                for parts, alias in paths(inner[start:at]):
                    yield before + ([] if parts == ["self"] else parts), before[-1] if parts == ["self"] else alias
            start = at + 1


def production(text):
    """Without what is compiled for tests only, as far as that stands at the end of a file or in a module of its own."""
    return re.split(r"#\[cfg\((?:all\()?(?:test|loom)[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{", text)[0]


class Package:
    def __init__(self, source):
        self.modules = {}  # path of segments -> file
        self.text = {}
        for file in sorted(source.rglob("*.rs")):
            segments = list(file.relative_to(source).with_suffix("").parts)
            if segments[-1] in ("mod", "lib", "main"):
                if segments == ["main"] and (source / "lib.rs").exists():
                    continue
                segments.pop()
            if segments[-1:] and (segments[-1] == "tests" or segments[-1].endswith("_tests") or "tests" in segments or segments[0] == "bin"
                                  or any(part.endswith("_tests") for part in segments)):
                continue
            self.modules[tuple(segments)] = str(file.relative_to(source))
            self.text[tuple(segments)] = production(file.read_text())
        self.handed_on = {module: {} for module in self.modules}
        self.uses = {module: [] for module in self.modules}
        for module, text in self.text.items():
            # `#[path]` modules and tests of the module keep to themselves.
            text = re.sub(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))?\s+)?use [^;]*;", "", text)
            imported = {}
            for public, tree in USE.findall(text):
                for parts, name in paths(tree):
                    absolute = self.absolute(module, parts)
                    if absolute in self.modules:
                        imported[name] = absolute
                    if public and absolute:
                        self.handed_on[module][name] = absolute
                    if absolute and not (public and absolute[:len(module)] == module):
                        self.uses[module].append(absolute)
            code = USE.sub("", NOT_CODE.sub("", text))
            self.uses[module] += [self.absolute(module, re.split(r"\s*::\s*", path)) for path in PATH.findall(code)]
            for name, absolute in imported.items():
                found = re.findall(rf"(?<![\w:$]){name}((?:\s*::\s*\w+)+)", code)
                self.uses[module] += [absolute + tuple(re.split(r"\s*::\s*", path)[1:]) for path in found]

    @staticmethod
    def absolute(module, parts):
        at = list(module)
        for n, part in enumerate(parts):
            if part == "crate":
                at = []
            elif part == "super":
                at = at[:-1]
            elif part != "self":
                return tuple(at) + tuple(parts[n:])
        return tuple(at)

    def passes(self, path, depth=0):
        """The modules that lead to what a path names: those that re-export it, then the one in which it is written."""
        for length in range(len(path), -1, -1):
            module = path[:length]
            if module in self.modules:
                rest = path[length:]
                found = self.handed_on[module].get(rest[0]) if rest and depth < 8 else None
                return [module] + (self.passes(found + rest[1:], depth + 1) if found else [])
        return []

    def edges(self):
        edges = {module: set() for module in self.modules}
        for module, uses in self.uses.items():
            for path in uses:
                *through, last = self.passes(path) or [module]
                # The facade of a file's own folder is no dependency of that file.
                edges[module] |= {facade for facade in through if module[:len(facade)] != facade} | {last}
            edges[module].discard(module)
        return edges

    def circles(self):
        """Strongly connected sets of more than one module (Tarjan)."""
        edges, index, low, stack, on, found = self.edges(), {}, {}, [], set(), []

        def visit(one):
            index[one] = low[one] = len(index)
            stack.append(one)
            on.add(one)
            for to in sorted(edges[one]):
                if to not in index:
                    visit(to)
                    low[one] = min(low[one], low[to])
                elif to in on:
                    low[one] = min(low[one], index[to])
            if low[one] == index[one]:
                circle = []
                while True:
                    circle.append(stack.pop())
                    on.discard(circle[-1])
                    if circle[-1] == one:
                        break
                if len(circle) > 1:
                    found.append(frozenset(circle))

        sys.setrecursionlimit(10_000)
        for module in sorted(edges):
            if module not in index:
                visit(module)
        return found, edges

    def way(self, circle, edges):
        """A shortest way round, as files."""
        best = None
        for start in sorted(circle):
            before, queue = {start: None}, [start]
            for one in queue:
                for to in sorted(edges[one] & circle):
                    if to == start:
                        way = [one]
                        while before[way[-1]] is not None:
                            way.append(before[way[-1]])
                        way = way[::-1] + [start]
                        if best is None or len(way) < len(best):
                            best = way
                        queue = []
                        break
                    if to not in before:
                        before[to] = one
                        queue.append(to)
                else:
                    continue
                break
        return " -> ".join(self.modules[module] for module in best)


# What the checker must find, or leave alone: files with their text, and the circle among them.
PLANTED = [
    ({"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "use super::a::A;"}, {"a.rs", "b.rs"}),
    # A path in code, behind a comment, a text and a letter that look like others.
    ({"lib.rs": "", "a.rs": "fn f() { // \"\n let q = '\"'; crate::b::g(\"crate::c\") }", "b.rs": "fn g() { super::a::f() }", "c.rs": ""}, {"a.rs", "b.rs"}),
    # A path that begins with an imported module.
    ({"lib.rs": "", "a.rs": "use crate::b;\nfn f() { b::part::g() }", "b/mod.rs": "pub mod part;", "b/part.rs": "use crate::a::f;"}, {"a.rs", "b/part.rs"}),
    # A name that the facade of a folder re-exports leads through the facade.
    ({"lib.rs": "", "a.rs": "use crate::b::Part;", "b/mod.rs": "pub use self::part::Part;\nuse crate::a::A;", "b/part.rs": "pub struct Part;"}, {"a.rs", "b/mod.rs"}),
    # A facade and its folder, and what only tests use.
    ({"lib.rs": "", "b/mod.rs": "pub use self::part::Part;\npub use self::rest::Rest;", "b/part.rs": "use super::Rest;", "b/rest.rs": "#[cfg(test)]\nmod tests {\nuse super::super::Part;\n}"}, None),
]


def self_test():
    for files, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            package = Package(pathlib.Path(folder))
            found = [{package.modules[module] for module in circle} for circle in package.circles()[0]]
            if found != ([expected] if expected else []):
                sys.exit(f"the checker itself is wrong: {sorted(files)} have the circle {expected}, and it finds {found}")


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    workspace = tomllib.loads((root / "Cargo.toml").read_text())
    names = {name: given.get("package", name) for name, given in workspace["workspace"]["dependencies"].items() if isinstance(given, dict) and "path" in given}
    wrong = [f"{name} is missing at the top level" for name in TOP if not (root / name).exists()]
    direct, count = set(), 0
    for member in workspace["workspace"]["members"]:
        manifest = tomllib.loads((root / member / "Cargo.toml").read_text())
        package = manifest["package"]["name"]
        if package not in MAY:
            wrong.append(f"{package}: no layer; give it one in scripts/lib/check_layers.py")
            continue
        for table in ("dependencies", "build-dependencies"):
            for dependency in manifest.get(table, {}):
                direct.add(dependency)
                if package != ONLY.get(dependency, package):
                    wrong.append(f"{package} depends on {dependency}, which only {ONLY[dependency]} may")
                dependency = names.get(dependency)
                if dependency and dependency not in MAY[package]:
                    wrong.append(f"{package} depends on {dependency}, which its layer may not")
        library = manifest.get("lib", {}).get("path")
        folders = {root / member / (pathlib.Path(library).parent if library else "src")}
        # A program of the package with a folder of its own.
        folders |= {(root / member / program["path"]).parent for program in manifest.get("bin", []) if "path" in program}
        known = {frozenset(circle) for circle in KNOWN.get(package, ())}
        files, ways = {}, {}
        for folder in sorted(folders):
            read = Package(folder)
            count += len(read.modules)
            found, edges = read.circles()
            for circle in found:
                names_of = frozenset(read.modules[module] for module in circle)
                files[names_of], ways[names_of] = circle, read.way(circle, edges)
        for circle in sorted(files.keys() - known, key=sorted):
            wrong.append(f"{package}: files in a circle: {ways[circle]} ({', '.join(sorted(circle))})")
        for circle in sorted(known - files.keys(), key=sorted):
            wrong.append(f"{package}: this circle is gone or another one now, so strike it out in scripts/lib/check_layers.py: {', '.join(sorted(circle))}")
    wrong += [f"no package depends on {name}" for name in BUILT_ON if not any(one.startswith(name) for one in direct)]
    for package, strangers in FREE_OF.items():
        tree = subprocess.run(["cargo", "tree", "--quiet", "-p", package, "-e", "normal", "--prefix", "none"], cwd=root, capture_output=True, text=True)
        linked = {line.split()[0] for line in tree.stdout.splitlines() if line}
        if package not in linked:
            wrong.append(f"{package}: no tree of its dependencies: {tree.stderr.strip()}")
        wrong += [f"{package} links {name}, by some way (cargo tree -p {package} -i {name})" for name in sorted(strangers & linked)]
    print("\n".join(wrong) or f"{len(MAY)} packages in layers, {count} files, no circle but {sum(map(len, KNOWN.values()))} known")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
