"""A person's terminal in tmux, with a shell on it: keys are typed, and the screen is what tmux shows."""

import os
import shlex
import subprocess
import time

# How long something may take to show.
LIMIT_SECONDS = 60


class Screen:
    """A terminal of 80 columns at first, with bash in a world's workspace and the variables of its client."""

    def __init__(self, world, variables):
        self.socket = os.path.join(world.directory, "tmux")
        variables = world.environment | variables | {"COLORTERM": "truecolor"}
        named = [f"{name}={value}" for name, value in variables.items() if name not in ("TERM", "NO_COLOR")]
        shell = line(["env", *named, "bash", "--norc", "--noprofile", "-i"])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", world.workspace, shell)
        self.waits_for("bash-")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    def close(self):
        self.tmux("kill-server")

    def types(self, text):
        """Types a line. Clients take what comes at once for pasted text, in which Enter is one more line."""
        self.tmux("send-keys", "-l", text)
        time.sleep(1)
        self.presses("Enter")

    def presses(self, key):
        self.tmux("send-keys", key)

    def resizes(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def shown(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def waits_until(self, is_so, what):
        until = time.monotonic() + LIMIT_SECONDS
        while not is_so(self.shown()):
            assert time.monotonic() < until, f"waited in vain for {what}, and sees:\n{self.shown()}"
            time.sleep(0.2)

    def waits_for(self, words):
        self.waits_until(lambda screen: words in screen, words)


def line(words):
    """A command line of a shell."""
    return shlex.join(words)
