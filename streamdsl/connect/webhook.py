"""A sink that posts micro-batches to a server over HTTP."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from streamdsl.connect.kafka_messages import plain_text
from streamdsl.connect.server_sent_events import connection, sendable, target
from streamdsl.errors import SinkError
from streamdsl.io.json_columns import json_rows
from streamdsl.redaction import without_secrets
from streamdsl.sinks.row_changes import event_table

_PAUSES: Final = (0.2, 1.0, 5.0)
"""Seconds before each further try."""


class Webhook:
    """A server to which each micro-batch is posted as JSON: an object with `stream`, `batch` and `events`.

    `events` is a list of objects with `kind`, `id`, `le`, `re`, `re_new` and the fields, as in `JsonlFile`. It promises
    `at_least_once`; a server that remembers the header `Idempotency-Key`, which a micro-batch has again when it is sent again,
    counts each once. Nothing is posted for a micro-batch without events. Where the server does not answer, or with 429 or 5xx, it
    is asked again, three times. Raises `SinkError` after that, and for another answer than 2xx.

    >>> from streamdsl.connect import Webhook
    >>> Webhook("https://example.org/alarms", headers={"Authorization": "Bearer ..."})
    Webhook('https://example.org/alarms')
    """

    promise: Final = "at_least_once"

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 30.0) -> None:
        connection(url, timeout)
        self._url, self._headers, self._timeout = url, sendable(headers), timeout
        self._shown = without_secrets(url)

    def __repr__(self) -> str:
        return f"Webhook({self._shown!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Post a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        rows = json_rows(event_table(events), plain_text)
        if not rows:
            return
        text = f'{{"stream": {json.dumps(stream)}, "batch": {batch}, "events": [{", ".join(rows)}]}}'
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{stream or '-'}-{batch}", **self._headers}
        for pause in (*_PAUSES, None):
            said, is_final = self._post(text.encode(), headers)
            if said is None:
                return
            if is_final or pause is None:
                raise SinkError(f"the server of {self._shown} does not take micro-batch {batch}: {said}")
            time.sleep(pause)

    def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[str | None, bool]:
        """Return what went wrong, None if nothing, and whether it is of no use to try again."""
        client = connection(self._url, self._timeout)
        try:
            client.request("POST", target(self._url), body, dict(headers))
            answer = client.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__, False
        finally:
            client.close()
        if 200 <= answer.status < 300:
            return None, True
        may_pass = answer.status >= 500 or answer.status == http.client.TOO_MANY_REQUESTS
        return f"{answer.status} {answer.reason}", not may_pass
