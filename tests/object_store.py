"""An object store of its own for tests, which speaks S3: moto, on loopback."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def object_store() -> Iterator[dict[str, Any]]:
    """Give the storage options with which s3fs reaches a new store; it has a bucket `bucket`."""
    import fsspec
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        options = {"key": "key", "secret": "secret", "client_kwargs": {"endpoint_url": address}}
        fsspec.filesystem("s3", **options).mkdir("bucket")
        yield options
    finally:
        server.stop()
