"""Names and messages of strangers, in reports, in LaTeX and on the terminal: shown, and never obeyed."""

from __future__ import annotations

import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from attack_victims import victims
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import zerothresh as zt
from zerothresh.basics.foreign_text import printable
from zerothresh.cli.app import app
from zerothresh.reports import attack_page
from zerothresh.reports.latex import latex_text
from zerothresh.reports.tables import ReportTable

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>&$x^$\\input{/etc/passwd}%_#~[*\x1b]0;gone\x07\u202e\udcff\n'


@given(st.text())
def test_every_character_of_a_text_can_be_seen(text):
    shown, lines = printable(text), printable(text, lines=True)
    assert len(shown) == len(lines) == len(text)
    assert shown.isprintable()
    assert all(character.isprintable() or character in "\n\t" for character in lines)
    assert all(after in (before, " ", "?") for before, after in zip(text, shown, strict=True))
    shown.encode()


def test_what_hides_or_moves_a_cursor_is_replaced_and_words_are_not():
    assert printable("naïve η ± 日本 🙂 a\u00a0b") == "naïve η ± 日本 🙂 a b"
    for character in "\x00\x07\x08\x1b\x7f\x9b\u200b\u200e\u202a\u202e\u2066\u2069\ufeff\ud800":
        assert printable(f"a{character}b") == "a?b"
    assert printable("a\r\n\tb\u2028c\u2029d") == "a   b c d"


COMMANDS = r"\\(?:textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar)\{\}|\\[#%&_${}]"
LETTERS = r"\$\\(?:eta|pm|infty|lambda|mu|theta)\$"


@given(st.text(alphabet=st.sampled_from("aη±∞λμθ&%$#_{}~^\\<>|\"'`[]*\n\r\t\x1b\u202e -")))
def test_no_character_of_a_name_means_anything_to_latex(text):
    left = re.sub(f"{LETTERS}|{COMMANDS}", "", latex_text(text))
    left = re.sub(r"^\{([\[*])\}", r"\1", left)  # a bracket after \\ would be an argument of it
    assert not set(left) & set('&%$#_{}~^\\<>|"\n\r\t\x1b\u202e')
    assert not latex_text(text).startswith(("[", "*"))


def test_latex_shows_special_characters_as_they_are():
    assert latex_text("a & b_c 5 % #1 {x} $y$ ~ ^ \\") == (
        r"a \& b\_c 5 \% \#1 \{x\} \$y\$ \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    assert latex_text("two\nlines") == "two lines"
    rows = [["[0, 1]", EVIL]]
    latex = ReportTable("t", EVIL, ["a", EVIL], rows, ["a"], rows).latex()
    assert len(latex.splitlines()) == 7  # one line for each row, whatever its cells contain
    assert r"{[}0, 1] & " in latex


def test_the_report_of_an_attack_shows_names_of_strangers_and_obeys_none(tmp_path):
    model, x, y = victims()
    classifier = zt.attack.Classifier(model, bounds=(-0.5, 0.5), name=EVIL, classes=(EVIL, "$\\frac{$", "c_d", "&lt;"))
    attack_page.write(tmp_path, zt.attack.universal(classifier, x, y, k=1, budget=60, seed=0))
    page = (tmp_path / "index.html").read_text()
    assert "<script" not in page
    assert not re.search(r"<img[^>]*onerror", page)
    assert "&lt;script&gt;alert(1)" in page
    assert "&amp;lt;" in page  # shown as it was written
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("index.html", "summary.tex", "labels.tex", "summary.csv", "labels.csv", "attack.json"):
        text = written[name].decode()
        assert all(character.isprintable() or character == "\n" for character in text), name
    assert b"\\input{" not in written["summary.tex"]
    assert b"\\input{" not in written["labels.tex"]
    svg = re.search(r"data:image/svg\+xml;base64,([^\"]+)", page)
    assert svg is not None
    import base64

    tree = ET.fromstring(base64.b64decode(svg[1]))
    assert not [element for element in tree.iter() if element.tag.endswith("script")]
    assert json.loads(written["attack.json"])["model"] == EVIL


def run_with_evil_words(folder: Path) -> None:
    """A run folder whose description, failures and messages were written by somebody else."""
    calls = 0

    def fails(x):
        nonlocal calls
        calls += 1
        if calls > 40:
            raise ValueError(f"{EVIL}[link=file:///etc/passwd]x[/link]")
        return float(x @ x)

    zt.minimize(fails, 4, 2, budget=100, run=folder, method=zt.FGZOHT(eta=0.1), seed=0, progress=False)
    described = json.loads((folder / "run.json").read_text())
    described["identity"]["problem"] = EVIL
    described["identity"]["options"]["eta"] = EVIL
    described["identity"]["estimator"] = {EVIL: {"class": EVIL, EVIL: EVIL}}
    (folder / "run.json").write_text(json.dumps(described))


def test_the_terminal_obeys_no_file_of_a_stranger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_with_evil_words(tmp_path / "run")
    snapshots = list((tmp_path / "run").glob("snapshot-*.npz"))
    for words in (["show", "run"], ["show", "run", "--json"], ["export", "run", "--trace", "t.csv", "--force"]):
        done = CliRunner().invoke(app, words)
        said = done.stdout + done.stderr
        assert done.exit_code == 0, said
        assert all(character.isprintable() or character == "\n" for character in said)
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    for change in ({"schema": EVIL}, {"budget": EVIL}, {"identity": EVIL}):
        (tmp_path / "run" / "run.json").write_text(json.dumps(described | change))
        done = CliRunner().invoke(app, ["show", "run"])
        assert done.exit_code == 2
        assert all(character.isprintable() or character == "\n" for character in done.stdout + done.stderr)
    (tmp_path / "run" / "run.json").write_text(json.dumps(described))
    for path in snapshots:
        path.write_bytes(EVIL.encode("utf-8", "surrogateescape"))
    done = CliRunner().invoke(app, ["show", "run"])
    assert all(character.isprintable() or character == "\n" for character in done.stdout + done.stderr)


def test_what_an_objective_says_is_printed_without_its_control_characters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("talks.py").write_text(f"def f(x): raise RuntimeError({EVIL!r})\ndef g(x): return {EVIL!r}\n")
    for name in "fg":
        done = CliRunner().invoke(app, ["solve", f"talks.py:{name}", "--dim", "3", "-k", "1", "--budget", "50"])
        assert done.exit_code == 1
        assert "alert(1)" in done.stderr
        assert all(character.isprintable() or character in "\n\t" for character in done.stdout + done.stderr)


def test_a_terminal_without_the_characters_of_a_message_gets_others(tmp_path):
    import subprocess

    zt.minimize(lambda x: float(x @ x), 3, 1, budget=50, method=zt.FGZOHT(eta=0.1), seed=0, run=tmp_path / "é\udcff")
    done = subprocess.run(
        [sys.executable, "-c", "from zerothresh.cli.app import main; main()", "show", tmp_path / "é\udcff"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"\\xe9?" in done.stdout


@pytest.mark.parametrize("name", ["x0.npy", "report.json"])
def test_a_pipe_is_refused_and_not_waited_for(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text("def f(x): return float(x @ x)\n")
    os.mkfifo(name)
    option = "--x0" if name == "x0.npy" else "--out"
    words = ["solve", "f.py:f", "--dim", "3", "-k", "1", "--budget", "50", "--run", "run", option, name]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "is not a" in done.stderr


def test_a_small_file_cannot_fill_the_memory(tmp_path, monkeypatch):
    from zerothresh.cli import load

    monkeypatch.setattr(load, "MOST_BYTES", 100_000)
    np.savez_compressed(tmp_path / "bomb.npz", images=np.zeros((1, 32, 32, 3000)), labels=[0])
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    with pytest.raises(load.BadInput, match=r"holds more than 100,000 bytes of images: attack fewer at a time"):
        load.read_arrays(tmp_path / "bomb.npz", ["images", "labels"])
    arrays, names = load.read_arrays(tmp_path / "bomb.npz", ["labels"])  # what nobody asks for is not unpacked
    assert (list(arrays), names) == (["labels"], ["images", "labels"])
