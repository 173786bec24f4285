#!/usr/bin/python3
"""Makes one directory equal to the sources of another, by content.

A file that is equal already is not touched, so its time stays and cargo compiles nothing for it.
What the source does not have is removed. Files that git ignores are no sources.
"""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path


def sources(root: Path) -> list[Path]:
    """Paths relative to root: what git knows or would add, else everything but build outputs."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        paths = [Path(name) for name in names]
    except (OSError, subprocess.CalledProcessError):
        paths = [path.relative_to(root) for path in walk(root)]
    return [path for path in paths if os.path.lexists(root / path) and not (root / path).is_dir()]


def walk(root: Path):
    for directory, subdirectories, files in os.walk(root):
        if Path(directory) == root:
            subdirectories[:] = [name for name in subdirectories if name not in (".git", "target")]
        yield from (Path(directory) / name for name in files)


def same(source: Path, copy: Path) -> bool:
    try:
        ours, theirs = source.lstat(), copy.lstat()
    except OSError:
        return False
    if stat.S_IFMT(ours.st_mode) != stat.S_IFMT(theirs.st_mode):
        return False
    if stat.S_ISLNK(ours.st_mode):
        return os.readlink(source) == os.readlink(copy)
    if ours.st_size != theirs.st_size or (ours.st_mode & 0o111) != (theirs.st_mode & 0o111):
        return False
    return source.read_bytes() == copy.read_bytes()


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy_over(source: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(copy):
        remove(copy)
    if source.is_symlink():
        copy.symlink_to(os.readlink(source))
    else:
        # Without the time of the source: a file that changed must look newer than what was built.
        shutil.copyfile(source, copy)
        shutil.copymode(source, copy)


def prune(root: Path, wanted: set[Path]) -> None:
    for directory, subdirectories, files in os.walk(root, topdown=False):
        here = Path(directory)
        links = [name for name in subdirectories if (here / name).is_symlink()]
        for name in files + links:
            path = here / name
            if path.relative_to(root) not in wanted:
                path.unlink()
        if here != root and not os.listdir(here):
            here.rmdir()


def mirror(source: Path, copy: Path) -> None:
    wanted = sources(source)
    copy.mkdir(parents=True, exist_ok=True)
    prune(copy, set(wanted))
    for path in wanted:
        # A directory of the copy may stand where the source has a file now, and the reverse.
        for parent in path.parents:
            if (copy / parent).is_symlink() or (copy / parent).is_file():
                remove(copy / parent)
        if not same(source / path, copy / path):
            copy_over(source / path, copy / path)


if __name__ == "__main__":
    mirror(Path(sys.argv[1]), Path(sys.argv[2]))
