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
        page.until("document.querySelectorAll('#rounds *').length >= 1")
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


@pytest.mark.slow
def test_the_page_says_why_jobs_wait_and_answers_what_if(service: Served, tmp_path: Path) -> None:
    service.make("queued")
    jobs = [{"id": f"{team}/job{k}", "weight": 1 + k, "throughputs": {"a100": {"8": 9.0, "4": 5.0}}}
            for k in range(4) for team in ("vision", "speech")]  # fmt: skip
    jobs.append({"id": "<img src=x onerror=alert(1)>", "throughputs": {"a100": {"64": 1.0}}})
    told = service.delta({"add_jobs": jobs}, "queued")
    plan = service.plan("queued", told["sequence"])
    page = Browser(f"http://127.0.0.1:{service.port}/", tmp_path / "profile")
    try:
        count = len(jobs) - len(plan["allocations"])
        page.until(f"document.querySelectorAll('#waiting tr').length == {count}")
        reasons = {row[0]: row[1] for row in page.value(ROWS % "waiting")}
        assert set(reasons) == {job["id"] for job in jobs} - set(plan["allocations"])
        assert reasons["<img src=x onerror=alert(1)>"] == "fits nowhere: needs 64 a100 of 16"
        assert any(" lent " in reason for reason in reasons.values())
        assert page.value("document.querySelectorAll('img').length") == 0
        # A job's name explains it, the button fills the box in, the box answers; nothing is committed.
        page.value("document.querySelector('#jobs a').click()")
        page.until("document.getElementById('answer').textContent.includes('charge')")
        page.value("document.querySelector('#waiting button').click()")
        assert page.value("document.getElementById('change').value") == "add 4 a100"
        page.value("document.getElementById('change').value = 'add 8 a100'")
        page.value("document.getElementById('ask').requestSubmit()")
        page.until("document.getElementById('answer').textContent.includes('would start')")
        assert service.ask("GET", "/v1/clusters/queued/plan")[1]["version"] == plan["version"]
        for place in ("rounds", "usage", "queue"):
            assert page.value(f"document.querySelectorAll('#{place} rect').length") >= 1
        page.value("document.getElementById('change').value = 'add 8 h100'")
        page.value("document.getElementById('ask').requestSubmit()")
        page.until("document.getElementById('answer').textContent.includes('no GPU type')")
        if os.environ.get("COPTER_PICTURE"):
            page.value("document.getElementById('change').value = 'add 8 a100'")
            page.value("document.getElementById('ask').requestSubmit()")
            page.until("document.getElementById('answer').textContent.includes('would start')")
            Path(os.environ["COPTER_PICTURE"]).write_bytes(page.picture())
        page.problems = [each for each in page.problems if "422" not in each]  # the browser's word on the wrong change
        assert page.problems == []
    finally:
        page.close()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INK = "getComputedStyle(document.querySelector('.panel')).color"
PAPER = "getComputedStyle(document.querySelector('.panel')).backgroundColor"
BROKEN = """[...document.querySelectorAll('th, button')].filter(each => each.textContent.trim()).filter(each => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return range.getClientRects().length > each.textContent.trim().split(/\\s+/).length;
}).map(each => each.textContent)"""
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('.panel')].map(each => each.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some((b, k) => k > i && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
})()"""


def lightness(colour: str) -> float:
    """Mean of the red, green and blue of "rgb(1, 2, 3)"."""
    return sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(",")[:3])) / 3


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (375, "light"), (375, "dark")])
def test_the_page_fits_light_and_dark_wide_and_narrow(service: Served, tmp_path: Path, width: int, scheme: str) -> None:
    name = f"looks-{width}-{scheme}"
    service.make(name)
    told = service.delta(
        {"add_jobs": [{"id": f"job-{k:02}-of-a-team-with-a-long-name", "gpus": 2} for k in range(30)]}, name
    )
    service.plan(name, told["sequence"])
    page = Browser(f"http://127.0.0.1:{service.port}/", tmp_path / "profile")
    try:
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.until(f"[...document.querySelectorAll('#cluster option')].some(each => each.value === '{name}')")
        page.value(f"at('cluster').value = '{name}', at('cluster').dispatchEvent(new Event('change')), 1")
        page.until("document.querySelectorAll('#jobs tr').length > 3 && document.querySelectorAll('#rounds *').length")
        assert page.value(OVERFLOW) <= 0
        assert page.value(OVERLAPS) == 0
        assert page.value(BROKEN) == []
        ink, paper = lightness(page.value(INK)), lightness(page.value(PAPER))
        assert (ink < 60 < 200 < paper) if scheme == "light" else (paper < 60 < 200 < ink)
        figures = page.value(
            "document.getElementById('figures').textContent + document.getElementById('span').textContent"
        )
        assert "e-" not in figures
        durations = page.value("[0, 3e-7, 0.0017, 0.99999, 1, 62, 5400, 200000].map(duration)")
        assert durations == ["0 s", "0.3 µs", "1.7 ms", "1 s", "1 s", "62 s", "1.5 h", "2.31 days"]
        shown = page.value("document.querySelectorAll('#jobs tr').length")
        page.value("at('seek-jobs').value = 'job-0', at('seek-jobs').dispatchEvent(new Event('input')), 1")
        assert 0 < page.value("document.querySelectorAll('#jobs tr').length") < shown
        if folder := os.environ.get("COPTER_PICTURES"):
            Path(folder, f"{name}.png").write_bytes(page.picture())
        assert page.problems == []
    finally:
        page.close()


@pytest.mark.slow
def test_a_thousand_waiting_jobs_are_found_and_ordered(service: Served, tmp_path: Path) -> None:
    service.make("crowded")
    page = Browser(f"http://127.0.0.1:{service.port}/", tmp_path / "profile")
    rows = "document.querySelectorAll('#waiting tr').length"

    def sought(text: str, until: str) -> None:
        page.value(f"at('seek-waiting').value = '{text}', at('seek-waiting').dispatchEvent(new Event('input')), 1")
        page.until(until)

    try:
        page.until(
            "document.getElementById('next')?.textContent.includes('no job yet: send one with POST '"
            " + '/v1/clusters/crowded/deltas')"
        )
        jobs = [{"id": f"team-{k % 7}/job-{k:04}", "gpus": 1 + k % 8} for k in range(1040)]
        service.plan("crowded", service.delta({"add_jobs": jobs}, "crowded")["sequence"])
        page.until(f"{rows} == 200 && at('more-waiting').textContent.includes('more: find them by name')")
        assert page.value("at('next').textContent") == ""
        assert page.value("document.documentElement.scrollHeight") < 3000
        sought("job-1039", f"{rows} == 1")  # not among those that are sent without a search
        assert page.value(ROWS % "waiting")[0][0] == "team-3/job-1039"
        sought("nobody", f"{rows} == 0")
        assert page.value("at('more-waiting').textContent").startswith("none of 1,0")
        sought("TEAM-5", f"{rows} > 100")
        for order in ("ascending", "descending"):
            page.value("document.querySelector('th[data-table]').click()")
            assert page.value("document.querySelector('th[data-table]').ariaSort") == order
            names = [row[0] for row in page.value(ROWS % "waiting")]
            assert names == sorted(names, reverse=order == "descending")
        # The same by keyboard: the head has the focus, Enter orders; every button and link is in the tab's order.
        page.value("document.querySelector('th[data-table]').focus()")
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)
        page.until("document.querySelector('th[data-table]').ariaSort == 'ascending'")
        assert page.value("[...document.querySelectorAll('a, button, input, select')].every(e => e.tabIndex >= 0)")
        assert page.problems == []
    finally:
        page.close()
