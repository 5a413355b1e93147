"""What hooks cost inside the real Claude Code. usage: bench.py PROGRAM DIRECTORY [ROUNDS]

In one run, by turns: a session without hooks, with `/bin/true` as the hook, with cc-safety-net from npm, and with ours. A scripted model
asks for the same calls each time; a call takes from the model's answer to the client's next request. Then the hook as a program by
itself, beside `/bin/true`, and `toolgate with CLIENT --version` beside the client alone. Lines that end with what is wanted are read by
`cargo xtask bench`."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recordings"))

from scripted_provider import ProviderHandler, ScriptedProvider  # noqa: E402
from world import ALL, USUAL, install  # noqa: E402

CALLS = 12
# The first calls of a session start what is started once.
WARM = 2
PEER = "cc-safety-net@2.4.5"
EVENTS = ("PreToolUse", "PostToolUse")


class TimedProvider(ScriptedProvider):
    """Notes when each turn was asked for and when it was answered."""

    def __init__(self, turns):
        self.asked, self.answered = [], []
        super().__init__(turns)

    def next_turn(self, body):
        self.asked.append(time.perf_counter())
        return super().next_turn(body)

    def taken_by_calls(self):
        """Milliseconds from each answer with a call to the request after it."""
        pairs = zip(self.answered, self.asked[1:])
        return [(asked - answered) * 1000 for answered, asked in pairs][WARM:]


def timed(handle):
    def handled(self, body):
        before = len(self.script.asked)
        handle(self, body)
        if len(self.script.asked) > before:
            self.script.answered.append(time.perf_counter())
    return handled


ProviderHandler.answer_messages = timed(ProviderHandler.answer_messages)


def settings(command):
    if command is None:
        return {}
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 60}]}
    return {"hooks": {event: [hook] for event in EVENTS}}


class Bench:
    def __init__(self, program, directory):
        self.program, self.programs = program, install(directory, USUAL)
        peer = os.path.join(directory, "cc-safety-net")
        if not os.path.exists(os.path.join(peer, "node_modules")):
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", peer, PEER], check=True)
        self.peer = os.path.join(peer, "node_modules", ".bin", "cc-safety-net")
        self.directory = tempfile.mkdtemp(prefix="toolgate-bench-")
        self.home, self.workspace = (os.path.join(self.directory, name) for name in ("home", "workspace"))
        os.makedirs(self.home)
        os.makedirs(os.path.join(self.workspace, ".claude"))
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        with open(os.path.join(self.workspace, "a.txt"), "w") as file:
            file.write("one\ntwo\n")
        self.environment = {"HOME": self.home, "PATH": f"{self.programs}:{os.environ['PATH']}", "TERM": "dumb", "LANG": "C.UTF-8",
                            "USER": "ada"}

    def session(self, hooks, call):
        """The times of the calls of one session."""
        with open(os.path.join(self.workspace, ".claude", "settings.json"), "w") as file:
            json.dump(hooks, file)
        provider = TimedProvider([[call]] * CALLS)
        client = ALL["claude"]
        variables = {name: value.format(port=provider.port, home=self.home) for name, value in client.environment.items()}
        subprocess.run(client.command, cwd=self.workspace, env=self.environment | variables, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300, check=True)
        provider.close()
        return provider.taken_by_calls()

    def ours(self):
        subprocess.run([self.program, "-w", self.workspace, "init", "--for", "claude", "--hooks", "--write"], check=True,
                       env=self.environment, stdout=subprocess.DEVNULL)
        with open(os.path.join(self.workspace, ".claude", "settings.json")) as file:
            return json.load(file)

    def in_claude(self, rounds):
        hooks = {"no hook": {}, "/bin/true": settings("/bin/true"), "cc-safety-net": settings(f"{self.peer} hook --claude-code"),
                 "toolgate": self.ours()}
        calls = {"Read": {"tool": "Read", "args": {"file_path": os.path.join(self.workspace, "a.txt")}},
                 "Bash": {"tool": "Bash", "args": {"command": "true", "description": "d"}}}
        for tool, call in calls.items():
            times = {name: [] for name in hooks}
            # The first session of each pays for caches that all have afterwards.
            for round in range(rounds + 1):
                for name, setting in hooks.items():
                    taken = self.session(setting, call)
                    times[name] += taken if round > 0 else []
            base = statistics.median(times["no hook"])
            for name, taken in times.items():
                added = [time - base for time in taken]
                print(f"{tool:<5} {name:<14} {statistics.median(taken):8.1f} ms a call, "
                      f"added p50 {statistics.median(added):7.1f}  p99 {percentile(added, 99):7.1f}  ({len(taken)} calls)", flush=True)
            if tool == "Read":
                spawned = statistics.median(times["/bin/true"])
                added = [time - spawned for time in times["toolgate"]]
                print(f"a judged call in Claude Code beside `/bin/true` as hook, both events, p50: {statistics.median(added):.1f} ms"
                      "   (wanted: at most 16)")

    def alone(self, rounds):
        """The hook as a program: what it adds to starting a program at all."""
        event = json.dumps({"hook_event_name": "PreToolUse", "session_id": "bench", "cwd": self.workspace, "tool_name": "Read",
                            "tool_input": {"file_path": os.path.join(self.workspace, "a.txt")}}).encode()
        commands = {"true": ["/bin/true"], "ours": [self.program, "-w", self.workspace, "hook", "claude"]}
        times = {name: [] for name in commands}
        for round in range(rounds):
            for name, command in commands.items():
                taken = self.timed(command, event)
                if round >= 20:
                    times[name].append(taken)
        base = statistics.median(times["true"])
        added = [time - base for time in times["ours"]]
        print(f"an event answered by the resident helper, p50: {statistics.median(added):.1f} ms   (wanted: at most 8)")
        print(f"an event answered by the resident helper, p99: {percentile(added, 99):.1f} ms   (wanted: at most 25)")
        starts = [self.timed([self.program, "-w", self.workspace, "policy", "check", "ls"], b"") for _ in range(50)]
        print(f"start of the program to judge one command: {statistics.median(starts):.1f} ms   (wanted: at most 10)", flush=True)

    def timed(self, command, event):
        start = time.perf_counter()
        subprocess.run(command, input=event, env=self.environment, cwd=self.workspace, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return (time.perf_counter() - start) * 1000

    def confined(self, rounds):
        for name in ("claude", "codex"):
            plain = [name, "--version"]
            confined = [self.program, "-w", self.workspace, "with", *plain]
            times = {"plain": [], "confined": []}
            for _ in range(rounds):
                times["plain"].append(self.timed(plain, b""))
                times["confined"].append(self.timed(confined, b""))
            plain, confined = (statistics.median(times[one]) for one in ("plain", "confined"))
            print(f"`toolgate with {name} --version` {confined:.0f} ms, `{name} --version` {plain:.0f} ms")
            print(f"`toolgate with {name} --version` ÷ plain: {confined / plain:.2f} x   (wanted: as little as can be)", flush=True)


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main():
    bench = Bench(os.path.abspath(sys.argv[1]), sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    try:
        bench.in_claude(rounds)
        bench.alone(rounds * 30)
        bench.confined(rounds)
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
