"""A workspace and a home of their own, a real client with our hooks or confined as a whole, and a model that follows a script."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recordings"))

from clients import CLIENTS, Client  # noqa: E402
from scripted_provider import ScriptedProvider  # noqa: E402

LIMIT_SECONDS = 180

COPILOT = Client(
    "@github/copilot", "copilot", "1.0.102", ["copilot", "-p", "hello", "--allow-all-tools"],
    {"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:{port}/v1", "COPILOT_PROVIDER_TYPE": "openai",
     "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-5.5", "COPILOT_OFFLINE": "true"})
ALL = CLIENTS | {"copilot": COPILOT}

SHELL = {"claude": lambda c: {"tool": "Bash", "args": {"command": c}},
         "codex": lambda c: {"tool": "exec_command", "args": {"cmd": c}},
         "gemini": lambda c: {"tool": "run_shell_command", "args": {"command": c}},
         "opencode": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}},
         "copilot": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}}}
BACKGROUND = {"claude": {"run_in_background": True}, "codex": {"yield_time_ms": 250}, "gemini": {"is_background": True},
              "copilot": {"mode": "async"}}
READ = {"claude": lambda p: {"tool": "Read", "args": {"file_path": "$WS/" + p}},
        "gemini": lambda p: {"tool": "read_file", "args": {"file_path": p}},
        "opencode": lambda p: {"tool": "read", "args": {"filePath": "$WS/" + p}},
        "copilot": lambda p: {"tool": "view", "args": {"path": "$WS/" + p}}}
PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-two\n+TWO\n*** End Patch"
EDIT = {"claude": lambda p: {"tool": "Edit", "args": {"file_path": "$WS/" + p, "old_string": "two", "new_string": "TWO"}},
        "codex": lambda p: {"tool": "apply_patch", "args": PATCH.format(p)},
        "gemini": lambda p: {"tool": "replace", "args": {"file_path": "$WS/" + p, "instruction": "x", "old_string": "two",
                                                         "new_string": "TWO"}},
        "opencode": lambda p: {"tool": "edit", "args": {"filePath": "$WS/" + p, "oldString": "two", "newString": "TWO"}},
        "copilot": lambda p: {"tool": "apply_patch", "args": PATCH.format(p)}}
AGENT = {"claude": {"tool": "Agent", "args": {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}},
         "gemini": {"tool": "invoke_agent", "args": {"agent_name": "generalist", "prompt": "p"}},
         "opencode": {"tool": "task", "args": {"description": "d", "prompt": "p", "subagent_type": "general"}},
         "copilot": {"tool": "task", "args": {"description": "d", "prompt": "p", "agent_type": "general-purpose", "name": "n"}}}
SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json",
            "opencode": ".opencode/plugin/toolgate.js", "copilot": ".github/hooks/toolgate.json"}
# What a client is started with here and `toolgate with` refuses.
NOT_CONFINED = ("--dangerously-bypass-approvals-and-sandbox",)


class World:
    """A client, its workspace and its home."""

    def __init__(self, client, program, programs, confined=False):
        self.client, self.program, self.programs, self.confined = client, program, programs, confined
        self.said, self.code, self.requests = "", None, []
        self.directory = tempfile.mkdtemp(prefix="toolgate-hooks-")
        self.home, self.workspace = (os.path.join(self.directory, name) for name in ("home", "workspace"))
        for directory in (self.home, self.workspace, os.path.join(self.directory, "tmp")):
            os.makedirs(directory)
        for path, content in {"a.txt": "one\ntwo\n", ".env": "TOKEN=hidden-canary\n", "sub/b.txt": "b\n",
                              "t.sh": "rm -rf ~/canary\n", "leave.sh": "echo {} > .mcp.json\n"}.items():
            self.put(path, content)
        with open(os.path.join(self.home, "canary"), "w") as file:
            file.write("canary-of-home\n")
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        self.environment = {"HOME": self.home, "PATH": f"{programs}:{os.environ['PATH']}", "TERM": "dumb", "NO_COLOR": "1",
                            "LANG": "C.UTF-8", "TMPDIR": os.path.join(self.directory, "tmp"), "USER": "ada",
                            "TOOLGATE_HOOK_HELPER": "off"}
        # Also where the whole client is confined: a workspace that has hooks works there as well.
        self.toolgate("init", "--for", client, "--hooks", "--write")

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def shell(self, command, **more):
        """A call of the client's shell."""
        call = SHELL[self.client](command)
        return call | {"args": call["args"] | more}

    def put(self, path, content):
        path = os.path.join(self.workspace, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)

    def read(self, path):
        try:
            with open(os.path.join(self.workspace, path)) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def has_canary(self):
        return os.path.exists(os.path.join(self.home, "canary"))

    def toolgate(self, *words):
        done = subprocess.run([self.program, "-w", self.workspace, *words], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return done.stdout

    def change_settings(self, change):
        """Changes the hook commands of the client's settings."""
        self.put(SETTINGS[self.client], change(self.read(SETTINGS[self.client])))

    def prepare(self, port):
        client = ALL[self.client]
        if client.prepare:
            client.prepare(self.home, self.workspace, port)
        if self.client == "copilot":
            os.makedirs(os.path.join(self.home, ".copilot"), exist_ok=True)
            with open(os.path.join(self.home, ".copilot", "config.json"), "w") as file:
                json.dump({"trusted_folders": [self.workspace], "trustedFolders": [self.workspace]}, file)

    def command(self, prompt, port, extra):
        words = [prompt if word == "hello" else word.replace("{port}", str(port)) for word in ALL[self.client].command]
        if self.confined:
            words = [word for word in words if word not in NOT_CONFINED]
            return [self.program, "-w", self.workspace, "with", "--connect", f"localhost:{port}", *words, *extra]
        words[0] = os.path.join(self.programs, words[0])
        return words + [*extra, *(["--dangerously-bypass-hook-trust"] if self.client == "codex" else [])]

    def run(self, turns, prompt="hello", extra=(), environment=None):
        """Runs the client; what its model was shown at last, as one text."""
        turns = json.loads(json.dumps(turns).replace("$WS", self.workspace))
        provider = ScriptedProvider(turns)
        self.prepare(provider.port)
        variables = {name: value.format(port=provider.port, home=self.home)
                     for name, value in ALL[self.client].environment.items()}
        try:
            done = subprocess.run(self.command(prompt, provider.port, extra), cwd=self.workspace, text=True,
                                  env=self.environment | variables | (environment or {}), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
            self.said, self.code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            self.said, self.code = f"{(late.stdout or b'').decode()}\nIt didn't end.", None
        provider.close()
        self.requests = provider.requests
        return shown(provider.requests[-1]) if provider.requests else ""

    def everything_shown(self):
        """What any model was shown, that of a sub-agent too."""
        return "".join(shown(request) for request in self.requests)


def shown(request):
    """The conversation in a request, as one text."""
    return json.dumps(request.get("messages") or request.get("input") or request.get("contents") or [])


def install(directory):
    """Installs the clients from npm, each at one exact version."""
    packages = [f"{client.package}@{client.version}" for client in ALL.values()]
    marker = os.path.join(directory, "installed")
    if not os.path.exists(marker) or open(marker).read() != "\n".join(packages):
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", directory, *packages], check=True)
        with open(marker, "w") as file:
            file.write("\n".join(packages))
    return os.path.abspath(os.path.join(directory, "node_modules", ".bin"))
