"""Answers questions with semble, without weights: its BM25 and its ranking alone. Reads one JSON line for each tree,
{"tree": directory, "questions": [...]}, and writes one, {"answers": [[[path, first line, last line], ...], ...],
"seconds": ..., "query_ms": ...}. Of a directory that it was asked about before, it indexes what has changed."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from semble.index import index as semble_index
from semble.index.types import PreviousIndex
from semble.types import ContentType


class NoWeights:
    """Embeddings that say nothing; with alpha 0 they aren't counted."""

    dim = 2

    def encode(self, texts, **_):
        return np.ones((len(texts), 2), dtype=np.float32)


known, previous = None, None
for line in sys.stdin:
    request = json.loads(line)
    root = Path(request["tree"])
    began = time.monotonic()
    built = semble_index._build(root, NoWeights(), "none", tuple(ContentType), False, previous if root == known else None)
    seconds = time.monotonic() - began
    known = root
    previous = PreviousIndex(built.chunks, built._semantic_index.vectors, built._manifest, built._bm25_index)
    answers, times = [], []
    for question in request["questions"]:
        began = time.monotonic()
        found = built.search(question, top_k=50, alpha=0.0)
        times.append(time.monotonic() - began)
        chunks = [result.chunk for result in found]
        answers.append([[str(chunk.file_path).removeprefix(f"{root}/"), chunk.start_line, chunk.end_line] for chunk in chunks])
    times.sort()
    print(json.dumps({"answers": answers, "seconds": seconds, "query_ms": 1000 * times[len(times) // 2]}), flush=True)
