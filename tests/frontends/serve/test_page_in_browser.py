"""The live page in headless Chromium: its script runs against the service, and what it draws is looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import Browser
from served import Served

ROWS = "[...document.querySelectorAll('#%s tr')].map(row => [...row.cells].map(cell => cell.textContent))"


@pytest.mark.slow
def test_the_page_shows_plans_as_they_come(service: Served, tmp_path: Path) -> None:
    service.make("browsed")
    speeds = {"a100": {"8": 9.0, "4": 5.0}, "t4": {"4": 1.0}}
    hostile = "<img src=x onerror=alert(1)>"
    jobs = [{"id": hostile, "throughputs": speeds}, {"id": "ml/second", "gpus": 2}]
    told = service.delta({"add_jobs": jobs}, "browsed")
    plan = service.plan("browsed", told["sequence"])
    page = Browser(f"http://127.0.0.1:{service.port}/", tmp_path / "profile")
    try:
        page.until("document.querySelectorAll('#jobs tr').length == 2")
        assert page.value("document.title") == "copter"
        assert page.value("[...document.querySelectorAll('#cluster option')].map(each => each.value)") == ["browsed"]
        shown = {row[0]: row[1:3] for row in page.value(ROWS % "jobs")}
        assert shown == {job: [each["gpu_type"], str(each["gpus"])] for job, each in plan["allocations"].items()}
        assert page.value("document.querySelectorAll('img').length") == 0  # a job's name is text
        shown = {row[0]: row[1:3] for row in page.value(ROWS % "gpus")}
        assert shown == {kind: [str(plan["used"][kind]), str(all_of)] for kind, all_of in plan["capacity"].items()}
        assert page.value("document.querySelector('#gpus progress').value") == plan["used"]["a100"]
        assert page.value("document.querySelectorAll('#rounds *').length") >= 1
        # A delta comes, and the page follows by itself.
        told = service.delta({"remove_jobs": [hostile], "add_jobs": [{"id": "third", "gpus": 4}]}, "browsed")
        page.until(f"document.querySelector('#figures dd').textContent.endsWith('delta {told['sequence']}')")
        page.until("[...document.querySelectorAll('#jobs tr')].map(row => row.cells[0].textContent).join() =="
                   " 'ml/second,third'")  # fmt: skip
        picture = page.picture()
        assert picture.startswith(b"\x89PNG")
        if os.environ.get("COPTER_PICTURE"):
            Path(os.environ["COPTER_PICTURE"]).write_bytes(picture)
        assert page.problems == []
    finally:
        page.close()
