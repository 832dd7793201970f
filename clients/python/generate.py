#!/usr/bin/env python3
"""Generates `src/steward` from the contract in `proto/` with the stock grpcio-tools.

The output is not committed: the contract is, in one place, and a second copy could only ever be wrong. Wheels and
sdists hold it, so who installs a release needs neither this script nor grpcio-tools.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
OUTPUT = HERE / "src"


def generate() -> int:
    """Replaces `src/steward`; gives the number of contract files."""
    import grpc_tools  # noqa: PLC0415 - only needed where the contract is at hand.
    from grpc_tools import protoc  # noqa: PLC0415

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    files = sorted(str(file.relative_to(PROTO)) for file in PROTO.glob("steward/**/*.proto"))
    shutil.rmtree(OUTPUT / "steward", ignore_errors=True)
    arguments = [
        f"-I{PROTO}",
        f"-I{well_known}",
        *(f"--{kind}_out={OUTPUT}" for kind in ("python", "pyi", "grpc_python")),
    ]
    if protoc.main(["protoc", *arguments, *files]) != 0:
        raise SystemExit("protoc failed")
    for folder in {file.parent for file in (OUTPUT / "steward").glob("*/*/*_pb2.py")}:
        (folder / "__init__.py").write_text(package(folder))
    # What is generated is typed: without the marker, whoever uses the package would see its messages as Any.
    (OUTPUT / "steward" / "py.typed").touch()
    return len(files)


def package(folder: Path) -> str:
    """Gives the `__init__.py` of a package of the contract: all its messages, whichever file each is in."""
    modules = sorted(file.stem for file in folder.glob("*_pb2.py"))
    name = ".".join(folder.relative_to(OUTPUT).parts)
    lines = [
        f'"""All messages of the package {name}."""',
        "from google.protobuf.descriptor import FileDescriptor as _FileDescriptor",
        *(f"from {name} import {module} as _{module}" for module in modules),
        *(f"from {name}.{module} import *" for module in modules),
        "FILES: tuple[_FileDescriptor, ...] = (" + "".join(f"_{module}.DESCRIPTOR, " for module in modules) + ")",
    ]
    return "\n".join(lines) + "\n"


def is_here() -> bool:
    """Whether the contract is at hand: in a clone of the repository, but not in an unpacked sdist."""
    return PROTO.is_dir()


if __name__ == "__main__":
    if not is_here():
        sys.exit(f"no contract at {PROTO}")
    print(f"{generate()} files of the contract generated into {OUTPUT / 'steward'}")
