"""Answers questions with semble, without weights: its BM25 and its ranking alone. Reads one JSON line for each tree,
{"tree": directory, "questions": [...]}, and writes one, {"answers": [[path, ...], ...], "seconds": ..., "query_ms": ...}."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from semble.index import index as semble_index
from semble.types import ContentType


class NoWeights:
    """Embeddings that say nothing; with alpha 0 they aren't counted."""

    dim = 2

    def encode(self, texts, **_):
        return np.ones((len(texts), 2), dtype=np.float32)


for line in sys.stdin:
    request = json.loads(line)
    root = Path(request["tree"])
    began = time.monotonic()
    content = tuple(ContentType)
    built = semble_index._build(root, NoWeights(), "none", content, False)
    seconds = time.monotonic() - began
    answers, times = [], []
    for question in request["questions"]:
        began = time.monotonic()
        found = built.search(question, top_k=50, alpha=0.0)
        times.append(time.monotonic() - began)
        paths = []
        for result in found:
            path = str(result.chunk.file_path)
            path = path.removeprefix(str(root) + "/")
            if path not in paths:
                paths.append(path)
        answers.append(paths[:10])
    times.sort()
    print(json.dumps({"answers": answers, "seconds": seconds, "query_ms": 1000 * times[len(times) // 2]}), flush=True)
