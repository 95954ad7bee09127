"""The tracked files of this repository, and what they include."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = {".h", ".cc", ".cu", ".cuh"}


def files(*suffixes: str) -> list[pathlib.Path]:
    """Files that are tracked or about to be, relative to the root; of these suffixes, where any is given."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = [pathlib.Path(name) for name in sorted(set(names)) if name and (ROOT / name).is_file()]
    return [path for path in paths if not suffixes or path.suffix in suffixes]


def text(path: pathlib.Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def code(path: pathlib.Path) -> str:
    """The file without its comments."""
    without_blocks = re.sub(r"/\*.*?\*/", "", text(path), flags=re.DOTALL)
    return re.sub(r"//[^\n]*", "", without_blocks)


def includes(path: pathlib.Path) -> list[str]:
    """What the file includes, as written between the quotes or brackets."""
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text(path), flags=re.MULTILINE)


def room(path: pathlib.Path | str) -> str:
    """`op` for src/op/x.cc, `engine/sm90` for src/engine/sm90/x.h, `engine` for src/engine/config.h."""
    parts = [part for part in pathlib.Path(path).parts if part != "src"]
    if parts[0] == "engine" and len(parts) > 2:
        return f"engine/{parts[1]}"
    return parts[0]
