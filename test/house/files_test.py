"""What every file keeps to: its length, its name, its words, its links."""

import json
import re
import shutil
import subprocess

import pytest
from repository import CODE, ROOT, files, room, text

WRITTEN = CODE | {".py", ".sh", ".cmake", ".txt", ".html", ".css", ".js"}
# Spelled apart, so that this file keeps its own rule.
MACHINE = re.compile("/" + r"(?:work|root|home/\w+)/")
TEMPORARY = re.compile("/" + "tmp/")
OTHER_WORDS = re.compile(r"\b(?:ses" + r"sion|hel" + r"per)s?\b", re.IGNORECASE)
POOR_NAMES = {"util", "utils", "hel" + "per", "hel" + "pers", "impl", "manager", "base"}
RESULT = re.compile(r"bench/results/[\w.+-]+\.json")


def lines_with(pattern, paths):
    return [f"{path}:{number}: {line.strip()}" for path in paths
            for number, line in enumerate(text(path).splitlines(), 1) if pattern.search(line)]


def readable():
    return [path for path in files() if path.suffix in WRITTEN | {".md", ".json", ".toml", ""}
            and "results" not in path.parts and "corpus" not in path.parts]


def test_no_file_is_longer_than_400_lines():
    lengths = {str(path): len(text(path).splitlines()) for path in files(*WRITTEN)}
    assert not {path: length for path, length in lengths.items() if length > 400}


def test_names_say_what_is_inside():
    assert not [path for path in files() if path.suffix in WRITTEN
                and POOR_NAMES & set(re.split(r"[_.\-]", path.stem.lower()))]


def test_no_paths_of_one_machine():
    assert not lines_with(MACHINE, readable())
    assert not lines_with(TEMPORARY, [path for path in readable() if path.parts[0] != "test"])


def test_the_project_speaks_of_itself():
    assert not lines_with(OTHER_WORDS, readable())


def test_headers_are_included_once():
    assert not [path for path in files(".h", ".cuh") if "#pragma once\n" not in text(path)]


def test_links_resolve():
    broken = []
    for path in files(".md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text(path), flags=re.DOTALL)):
            file = target.split("#")[0]
            if file and "://" not in file and not (ROOT / path.parent / file).exists():
                broken.append(f"{path}: {target}")
    assert not broken


def tables(markdown):
    """Each table with the line after it, where its source may stand."""
    for match in re.finditer(r"(?:^\|[^\n]*\n)+\n?[^\n]*", markdown, flags=re.MULTILINE):
        yield match.group()


def test_numbers_in_readme_tables_name_their_result_file():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README.md yet")
    for table in tables(text("README.md")):
        plain = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "", "\n".join(
            line for line in table.splitlines() if line.startswith("|")))
        if re.search(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", plain):
            named = RESULT.findall(table)
            assert named, f"this table has numbers and names no file in bench/results:\n{table}"
            assert not [name for name in named if not (ROOT / name).exists()]


def test_result_files_are_named_and_of_schema_1():
    for path in files(".json"):
        if path.parts[:2] == ("bench", "results"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\d-[\w.]+-[\w-]+", path.stem), path
            content = json.loads(text(path))
            assert content["schema"] == 1 and content["rows"], path


def test_contributing_names_every_room():
    rooms = {room(path).split("/")[0] for path in files(*CODE) if path.parts[0] == "src"}
    assert not [name for name in rooms if f"src/{name}" not in text("CONTRIBUTING.md")]


def test_files_are_formatted():
    if not shutil.which("clang-format"):
        pytest.skip("no clang-format on this machine")
    done = subprocess.run([ROOT / "scripts/format.sh", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + "\nrun: make format"


def test_the_core_is_tidy():
    """clang-tidy over all of tile, through one header; `make lint` reads the rest."""
    if not shutil.which("clang-tidy"):
        pytest.skip("no clang-tidy on this machine")
    command = ["clang-tidy", "--quiet", "src/tile/loop.h", "--", "-xc++", "-std=c++20", "-Isrc", "-Iinclude"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
