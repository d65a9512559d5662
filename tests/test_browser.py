"""A report in a real browser: every figure shows and the console has no errors, on a screen, a phone and paper."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from small_reports import whole_report
from waiting import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: `make browser` installs it")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
]

# Measures the page from inside, and writes the result where --dump-dom shows it.
PROBE = """<script>
addEventListener("load", () => {
  const images = [...document.images].map(i => [i.complete && i.naturalWidth > 100, i.getBoundingClientRect().width > 100, i.alt.length]);
  const wide = [...document.querySelectorAll("body > *:not(.wide)")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length;
  const report = {images, wide, page: document.documentElement.scrollWidth, window: innerWidth, background: getComputedStyle(document.body).backgroundColor};
  document.documentElement.setAttribute("data-report", JSON.stringify(report));
});
</script></body>"""


def chromium(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)


def look(page: Path, profile: Path, *flags: str) -> dict:
    """Return what a probe inside the page saw; there may be no error on the console."""
    probed = page.with_name("probed.html")
    probed.write_text(page.read_text().replace("</body>", PROBE))
    done = chromium(probed, profile, "--dump-dom", *flags)
    assert not re.search(r"CONSOLE.*(error|Uncaught|Failed)", done.stderr, re.IGNORECASE), done.stderr
    found = re.search(r'data-report="([^"]+)"', done.stdout)
    assert found, done.stdout[:500]
    return json.loads(found[1].replace("&quot;", '"'))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A copy of a whole report, to which pages can be added."""
    where = tmp_path_factory.mktemp("browser") / "report"
    shutil.copytree(whole_report(tmp_path_factory).folder, where, ignore=shutil.ignore_patterns("cells", "work"))
    return where


def test_every_figure_shows_on_a_screen_and_there_is_no_error(report, tmp_path):
    seen = look(report / "index.html", tmp_path / "profile", "--window-size=1200,900")
    assert len(seen["images"]) == (report / "index.html").read_text().count("<img") > 4
    assert all(loaded and shown and alt > 60 for loaded, shown, alt in seen["images"])
    assert seen["background"] == "rgb(255, 255, 255)"
    kept = Path(os.environ.get("ZEROTHRESH_SCREENSHOTS", tmp_path))  # where to keep the picture
    chromium(
        report / "index.html", tmp_path / "profile", "--window-size=1200,3000", f"--screenshot={kept / 'report.png'}"
    )
    picture = (kept / "report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000  # not an empty page


def test_on_a_phone_nothing_is_wider_than_the_screen(report, tmp_path):
    seen = look(report / "index.html", tmp_path / "profile", "--window-size=500,900")
    assert seen["page"] <= seen["window"]
    assert seen["wide"] == 0
    assert all(loaded and shown for loaded, shown, _ in seen["images"])


def test_in_the_dark_the_page_is_dark(report, tmp_path):
    seen = look(report / "index.html", tmp_path / "profile", "--blink-settings=preferredColorScheme=0")
    assert seen["background"] == "rgb(20, 24, 31)"


def test_it_prints(report, tmp_path):
    chromium(report / "index.html", tmp_path / "profile", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_that_does_not_load_is_noticed(report, tmp_path):
    """Check that the probe can fail."""
    broken = report / "broken.html"
    broken.write_text(
        re.sub(
            r"data:image/svg\+xml;base64,[^\"]{40}",
            "data:image/svg+xml;base64,!",
            (report / "index.html").read_text(),
            count=1,
        )
    )
    seen = look(broken, tmp_path / "profile", "--window-size=1200,900")
    assert not all(loaded for loaded, _, _ in seen["images"])
