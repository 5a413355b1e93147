"""What is kept of a client's answer: its shape. Names, markers, numbers, order and what the workspace holds stay; sentences are cut,
since they are somebody's own words.

In a shape, `…` stands for any text, and `⟨hex⟩`, `⟨number⟩`, `⟨word⟩` and `⟨path⟩` for one of that kind."""

import re

# How many words of a sentence stay: enough to know it by.
MARKER_WORDS = 5
WORD = r"[A-Za-z][A-Za-z_'’-]*"
PROSE = re.compile(rf"{WORD}(?:[,;:.]?[ ]+(?:{WORD}|`[^`\n]*`|'[a-z_ -]*'|\([^)\n]*\)))+[.,;:]?(?:[ ]+{WORD}(?:[,;:.]?[ ]+{WORD})*[.,;:]?)*")

# What differs from run to run.
VOLATILE = [
    (r"Chunk ID: [0-9a-f]+", "Chunk ID: ⟨hex⟩"),
    (r"Wall time: [0-9.]+", "Wall time: ⟨number⟩"),
    (r"Original token count: [0-9]+", "Original token count: ⟨number⟩"),
    (r"session ID [0-9]+", "session ID ⟨number⟩"),
    (r"process id [0-9]+", "process id ⟨number⟩"),
    (r"PGID: [0-9]+", "PGID: ⟨number⟩"),
    (r"PID: [0-9]+", "PID: ⟨number⟩"),
    (r"\[PID [0-9]+\]", "[PID ⟨number⟩]"),
    (r"with ID: \w+", "with ID: ⟨word⟩"),
    (r"stopped task: \w+", "stopped task: ⟨word⟩"),
    (r"Inserted cell \w+", "Inserted cell ⟨word⟩"),
    (r'"task_id":"\w+"', '"task_id":"⟨word⟩"'),
    (r"expected [iu][0-9]+", "expected ⟨word⟩"),
    (r"saved to: \S+", "saved to: ⟨path⟩"),
    (r"written to: \S+", "written to: ⟨path⟩"),
    (r"output see: \S+", "output see: ⟨path⟩"),
    (r" \(os error [0-9]+\)", ""),
    (r" at line [0-9]+ column [0-9]+", ""),
]


def shape(text, places, own):
    """The shape of a text. `places` are paths and what stands for them. `own` are texts of the script and the workspace: they are
    nobody else's."""
    for path, name in places.items():
        text = text.replace(path, name)
    for pattern, placeholder in VOLATILE:
        text = re.sub(pattern, placeholder, text)
    lines = [line if line.strip() in own else cut(line, own) for line in text.split("\n")]
    return "\n".join(shortened(lines))


def cut(line, own):
    """The line without sentences: the first keeps the words that it is known by."""
    kept = []

    def replaced(match):
        words = match.group(0).split(" ")
        if match.group(0) in own or len(words) <= MARKER_WORDS:
            return match.group(0)
        first = " ".join(words[:MARKER_WORDS]) if not kept else ""
        kept.append(match)
        return first + "…"

    return re.sub(r"…+(?:[ .,—_]*…)*", "…", PROSE.sub(replaced, line))


def shortened(lines):
    """Long output keeps its beginning and its end."""
    return lines if len(lines) <= 40 else lines[:12] + ["…"] + lines[-6:]
