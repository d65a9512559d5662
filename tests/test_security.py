"""What docs/security.md says: its tests exist, names are only text, and files of strangers are only data."""

from __future__ import annotations

import json
import os
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.basics import files
from zerothresh.cli import load
from zerothresh.cli.messages import BadInput
from zerothresh.reports.figures import Drawn
from zerothresh.reports.html_page import Section, render_page
from zerothresh.reports.tables import ReportTable

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security.md"

EVIL = [
    '<script>alert("1")</script>',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><!-- &lt;b&gt;",
    r"\input{/etc/passwd} $x$ & % # _ ^ ~ { } [0]",
    "red \x1b[31m \u202e reversed \udcff \x00 two\nlines",
]


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(tests/\w+\.py)`(?:: ((?:`test_\w+`(?:, )?)+))?", PAGE.read_text())
    assert len(named) > 15
    for file, tests in named:
        source = (ROOT / file).read_text()
        for name in re.findall(r"test_\w+", tests):
            assert f"def {name}(" in source, f"{file} has no {name}"


def test_the_policy_and_the_page_lead_to_each_other():
    assert "(docs/security.md)" in (ROOT / "SECURITY.md").read_text()
    assert "(../SECURITY.md)" in PAGE.read_text()
    assert "(docs/security.md)" in (ROOT / "README.md").read_text()


class Elements(HTMLParser):
    """The elements of a page, and the names of all attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements, self.attributes, self.addresses, self.text = set(), set(), set(), ""

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value for name, value in attrs if name == "src"}

    def handle_data(self, data):
        self.text += data


def test_names_cannot_break_out_of_a_page_a_table_or_a_line():
    for evil in EVIL:
        seen = evil.replace("\n", " ").translate({ord(c): "?" for c in "\x1b\u202e\udcff\x00"})
        table = ReportTable(evil, evil, (evil, "F"), [[evil, "1"]], (evil,), [[evil]], note=evil)
        figure = Drawn(evil, evil, evil, evil, b"<svg/>", b"png", b"pdf")
        section = Section(evil, evil, [evil], [figure], [table], {evil: evil})
        page = Elements()
        page.feed(render_page(evil, [evil], [], table, [section], [evil], [evil], evil))
        assert not page.elements & {"script", "iframe", "object", "embed", "base", "form"}
        assert not [name for name in page.attributes if name.startswith("on")]
        assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
        assert seen in page.text
        latex = table.latex()
        bare = re.sub(r"\\[#%&_${}]|\\text\w+\{\}", "", latex.split(r"\midrule")[1].split(r"\bottomrule")[0])
        assert not set(bare) & set("#%_$^~")
        assert set(re.findall(r"\\[a-z]+", bare)) == set()
        for text in (latex, table.csv()):
            assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_long_messages_of_a_function_are_cut(tmp_path):
    def fails(x):
        raise RuntimeError("x" * 3_000_000)

    result = zt.minimize(fails, 3, 1, budget=20, seed=0, retries=2, backoff=0.0, run=tmp_path / "run")
    assert result.status is zt.Status.FAILED
    assert len(result.message) <= 2000
    failures = (tmp_path / "run" / "failures.jsonl").read_text().splitlines()
    for failure in map(json.loads, failures):
        assert len(failure["error"]) <= 1000
        assert len(failure["traceback"]) <= 10_000
    assert sum(path.stat().st_size for path in (tmp_path / "run").iterdir()) < 12_000 * (len(failures) + 1)


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "precious.txt").write_text("precious")
    (tmp_path / "index.html").symlink_to(tmp_path / "precious.txt")
    files.write(tmp_path / "index.html", "<html>")
    assert (tmp_path / "precious.txt").read_text() == "precious"
    assert not (tmp_path / "index.html").is_symlink()


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("trap"),))


def test_images_of_a_stranger_are_plain_arrays_or_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "images.npz"
    np.savez_compressed(path, images=np.zeros((2, 3, 3)), labels=[0, 1], note=np.array([Trap()], dtype=object))
    arrays, names = load.read_arrays(path, ("images", "labels"))
    assert arrays["images"].shape == (2, 3, 3)
    assert names == ["images", "labels", "note"]  # what is not needed is not unpacked
    np.savez(path, images=np.array([Trap()], dtype=object), labels=[0])
    with pytest.raises(BadInput, match=r"is not an \.npz file of plain arrays"):
        load.read_arrays(path, ("images", "labels"))
    monkeypatch.setattr(load, "MOST_BYTES", 1 << 16)
    np.savez_compressed(path, images=np.zeros((100, 30, 30)), labels=[0])  # a thousand bytes
    with pytest.raises(BadInput, match="holds more than 65,536 bytes of images"):
        load.read_arrays(path, ("images", "labels"))
    path.write_bytes(b"\0" * (1 << 17))
    with pytest.raises(BadInput, match="has more than 65,536 bytes"):
        load.read_arrays(path, ("images",))
    path.write_bytes(b"PK\x03\x04 junk")
    with pytest.raises(BadInput, match=r"is not an \.npz file of plain arrays"):
        load.read_arrays(path, ("images",))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadInput, match="is not a file"):
        load.read_arrays(path, ("images",))
    assert not (tmp_path / "trap").exists()


def test_an_array_that_claims_to_be_longer_than_its_file_is_refused(tmp_path):
    path = tmp_path / "images.npz"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 8)
    with pytest.raises(BadInput, match=r"is not an \.npz file of plain arrays"):
        load.read_arrays(path, ("images",))
