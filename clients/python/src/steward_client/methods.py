"""What the contract says of a method: where it is, and whether doing it twice is doing it once.

Read from the generated descriptors, so that the decision to repeat a call is the contract's and never a guess here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message


@dataclass(frozen=True)
class Method:
    """A method of the contract."""

    path: str
    """As gRPC wants it: `/package.Service/Method`."""
    package: str
    """Short name of the package, for example `memory`."""
    idempotent: bool
    """Whether it may be repeated when nobody answered."""


def method_of(request: type[Message]) -> Method:
    """Gives the method that takes this request; each method of the contract has a request of its own."""
    return _find(request.DESCRIPTOR)


@cache
def _find(descriptor: Descriptor) -> Method:
    # A request may stand in another file of the package than its service.
    files = cast("Iterable[FileDescriptor]", getattr(import_module(descriptor.file.package), "FILES", ()))
    for service in (service for file in files for service in file.services_by_name.values()):
        for method in service.methods:
            if method.input_type.full_name == descriptor.full_name:
                level = method.GetOptions().idempotency_level
                return Method(
                    path=f"/{service.full_name}/{method.name}",
                    package=descriptor.file.package.split(".")[1],
                    idempotent=level != MethodOptions.IDEMPOTENCY_UNKNOWN,
                )
    raise TypeError(f"{descriptor.full_name} is not the request of a method")
