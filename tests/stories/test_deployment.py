"""The pages of the deployment guide: their unit, container file and manifest are checked, and what they start runs and stops."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from configparser import RawConfigParser
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "deployment"


def block(page: str, language: str) -> str:
    """Return the file that a page shows."""
    found = re.search(rf"^```{language}\n(.*?)^```", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def unit() -> RawConfigParser:
    class Several(dict[str, Any]):
        """Joins the values of a key that comes again, as systemd does for Environment."""

        def __setitem__(self, key: str, value: Any) -> None:
            both = isinstance(value, list) and isinstance(self.get(key), list)
            super().__setitem__(key, [*self[key], *value] if both else value)

    found = RawConfigParser(strict=False, dict_type=Several)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(block("systemd.md", "ini"))
    return found


def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def asked(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def line(second: int) -> str:
    return json.dumps({"at": f"2026-01-01T00:{second // 60:02}:{second % 60:02}", "status": 200, "milliseconds": second}) + "\n"


class Job:
    """The command of a page, in a folder, with a port that is free."""

    def __init__(self, command: list[str], folder: Path) -> None:
        path = f"{ROOT / 'tests' / 'stories'}{os.pathsep}{ROOT}"
        own = {"STATE": str(folder), "REQUESTS": str(folder / "requests.jsonl"), "METRICS": "127.0.0.1:0", "PYTHONPATH": path}
        self.said: list[dict[str, Any]] = []
        self.process = subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True)
        self.address = self._until("address")

    def _until(self, name: str) -> str:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            self.said.append(json.loads(text))
            if name in self.said[-1]:
                return str(self.said[-1][name])
        raise AssertionError(self.said)

    def events_in(self) -> float:
        families = text_string_to_metric_families(asked(f"{self.address}/metrics")[1])
        return sum(each.value for family in families for each in family.samples if each.name == "streamdsl_events_in_total")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=30)
        self.said += map(json.loads, rest.splitlines())
        return self.process.returncode


def started(folder: Path) -> Job:
    program, *rest = shlex.split(unit()["Service"]["ExecStart"])
    assert program.endswith("/python")
    return Job([sys.executable, *rest], folder)


def test_what_the_unit_starts_is_watched_stops_in_order_and_goes_on(tmp_path: Path) -> None:
    log, found = tmp_path / "requests.jsonl", list[tuple[int, float]]()
    log.write_text("".join(map(line, range(90))))
    job = started(tmp_path)
    eventually(lambda: asked(f"{job.address}/readyz") == (200, "ok\n"))
    eventually(lambda: job.events_in() == 90)
    with log.open("a") as file:
        file.write("".join(map(line, range(90, 200))))
    eventually(lambda: job.events_in() == 200)
    assert job.stop() == 0
    assert [each["message"] for each in job.said][-2:] == [
        "the job is told to stop, and commits what has come",
        "the job has ended: stopped",
    ]
    assert (job.said[-1]["end"], job.said[-1]["rows_in"]) == ("stopped", 200)
    with log.open("a") as file:
        file.write("".join(map(line, range(200, 240))))
    job = started(tmp_path)
    eventually(lambda: job.events_in() == 240)
    assert job.stop() == 0
    assert job.said[-1]["rows_in"] == 40, "it has gone on where it was"
    with closing(sqlite3.connect(tmp_path / "requests.db")) as connection:
        found = connection.execute("SELECT requests, slowest FROM by_minute ORDER BY le").fetchall()
    assert found == [(60, 59), (60, 119), (60, 179), (60, 239)]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_one(tmp_path: Path) -> None:
    given = unit()["Service"]["ExecStart"].split()[0]
    (tmp_path / "requests.service").write_text(block("systemd.md", "ini").replace(given, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "requests.service")], capture_output=True, text=True)
    of_ours = [text for text in done.stderr.splitlines() if "requests.service" in text]
    assert (of_ours, done.returncode) == ([], 0)


def test_the_container_starts_what_the_unit_starts_without_a_shell() -> None:
    steps = dict(re.findall(r"^(\w+) (.*)", block("container.md", "dockerfile"), re.MULTILINE))
    assert json.loads(steps["ENTRYPOINT"])[1:] == shlex.split(unit()["Service"]["ExecStart"])[1:]
    assert steps["STOPSIGNAL"] == unit()["Service"]["KillSignal"]
    assert steps["HEALTHCHECK"].startswith('--start-period=60s CMD ["python", "-c", ')


def test_the_health_check_of_the_container_knows_a_job_that_runs(tmp_path: Path) -> None:
    job = started(tmp_path)
    _, _, check = re.findall(r"HEALTHCHECK (.*) (CMD) (.*)", block("container.md", "dockerfile"))[0]
    command = [sys.executable, *json.loads(check.replace("http://127.0.0.1:9464", job.address))[1:]]
    eventually(lambda: subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0)
    assert job.stop() == 0
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0


def test_the_manifest_probes_what_the_endpoint_has() -> None:
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(block("kubernetes.md", "yaml"))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert job["spec"]["replicas"] == 1
    assert {"name": "METRICS", "value": f"0.0.0.0:{container['ports'][0]['containerPort']}"} in container["env"]
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"]
    uid = re.search(r"--uid (\d+)", block("container.md", "dockerfile"))
    assert uid is not None
    assert pod["securityContext"]["runAsUser"] == int(uid[1])
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert {"/state", Path(re.findall(r"REQUESTS=(\S+)", block("container.md", "dockerfile"))[0]).parent.as_posix()} <= mounts
