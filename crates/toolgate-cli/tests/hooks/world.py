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
GOOSE = Client(
    "@aaif/goose-binary-linux-x64", "goose", "1.52.0",
    ["goose", "run", "--no-session", "--with-builtin", "developer", "--text", "hello"],
    {"GOOSE_PROVIDER": "openai", "OPENAI_HOST": "http://127.0.0.1:{port}", "OPENAI_API_KEY": "none", "GOOSE_MODEL": "gpt-4o",
     "GOOSE_MODE": "auto", "GOOSE_DISABLE_KEYRING": "1"})
ALL = CLIENTS | {"copilot": COPILOT, "goose": GOOSE}
# Those that are tried by default: goose is tried in the full selection, without `toolgate with`.
USUAL = [client for client in ALL if client != "goose"]

SHELL = {"claude": lambda c: {"tool": "Bash", "args": {"command": c}},
         "codex": lambda c: {"tool": "exec_command", "args": {"cmd": c}},
         "gemini": lambda c: {"tool": "run_shell_command", "args": {"command": c}},
         "opencode": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}},
         "copilot": lambda c: {"tool": "bash", "args": {"command": c, "description": "d"}},
         "goose": lambda c: {"tool": "shell", "args": {"command": c}}}
# The argument of the shell that names the directory of one command.
DIRECTORY = {"codex": "workdir", "gemini": "dir_path", "opencode": "workdir"}
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
        "copilot": lambda p: {"tool": "apply_patch", "args": PATCH.format(p)},
        "goose": lambda p: {"tool": "edit", "args": {"path": p, "before": "two", "after": "TWO"}}}
ADDITION = "*** Begin Patch\n*** Add File: {}\n+{}\n*** End Patch"
WRITE = {"claude": lambda p, c: {"tool": "Write", "args": {"file_path": "$WS/" + p, "content": c}},
         "codex": lambda p, c: {"tool": "apply_patch", "args": ADDITION.format(p, c)},
         "gemini": lambda p, c: {"tool": "write_file", "args": {"file_path": p, "content": c}},
         "opencode": lambda p, c: {"tool": "write", "args": {"filePath": "$WS/" + p, "content": c}},
         "copilot": lambda p, c: {"tool": "create", "args": {"path": "$WS/" + p, "file_text": c}},
         "goose": lambda p, c: {"tool": "write", "args": {"path": p, "content": c}}}
# Codex shows its model the tools of sub-agents after a search for them.
SEARCH = {"item": {"type": "tool_search_call", "execution": "client", "arguments": {"query": "spawn a sub-agent"}}}
SPAWN = {"item": {"type": "function_call", "name": "spawn_agent", "namespace": "multi_agent_v1",
                  "arguments": json.dumps({"message": "sub-prompt"})}}
AGENT = {"claude": {"tool": "Agent", "args": {"description": "d", "prompt": "sub-prompt", "subagent_type": "general-purpose"}},
         "gemini": {"tool": "invoke_agent", "args": {"agent_name": "generalist", "prompt": "sub-prompt"}},
         "opencode": {"tool": "task", "args": {"description": "d", "prompt": "sub-prompt", "subagent_type": "general"}},
         "copilot": {"tool": "task", "args": {"description": "d", "prompt": "sub-prompt", "agent_type": "general-purpose", "name": "n"}},
         "goose": {"tool": "delegate", "args": {"instructions": "sub-prompt"}}}
SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json",
            "opencode": ".opencode/plugin/toolgate.js", "copilot": ".github/hooks/toolgate.json",
            "goose": ".agents/plugins/toolgate/hooks/hooks.json"}
# What a client is started with here and `toolgate with` refuses.
NOT_CONFINED = ("--dangerously-bypass-approvals-and-sandbox",)


class World:
    """A client, its workspace and its home."""

    def __init__(self, client, program, programs, confined=False):
        self.client, self.program, self.programs, self.confined = client, program, programs, confined
        self.said, self.code, self.requests, self.trusts_hooks = "", None, [], True
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
        self.set_up("--write")

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
        trust = ["--dangerously-bypass-hook-trust"] if self.client == "codex" and self.trusts_hooks else []
        return words + [*extra, *trust]

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

    def everything_shown(self, to=""):
        """What any model was shown, that of a sub-agent too; or the models whose conversation has these words."""
        return "".join(text for text in map(shown, self.requests) if to in text)

    def remove_file(self, path):
        os.remove(os.path.join(self.workspace, path))

    def set_up(self, verb):
        """Adds the client's hooks (`--write`), or removes them (`--remove`)."""
        self.toolgate("init", "--for", self.client, "--hooks", verb)


def shown(request):
    """The conversation in a request, as one text."""
    return json.dumps(request.get("messages") or request.get("input") or request.get("contents") or [])


def install(directory, names):
    """Installs these clients from npm, each at one exact version."""
    os.makedirs(directory, exist_ok=True)
    programs = os.path.abspath(os.path.join(directory, "node_modules", ".bin"))
    wanted = {f"{ALL[name].package}@{ALL[name].version}" for name in names}
    marker = os.path.join(directory, "installed")
    there = set(open(marker).read().split("\n")) if os.path.exists(marker) else set()
    if not wanted <= there:
        missing = sorted(wanted - there)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", directory, *missing], check=True)
        of_others = {package for package in there if package.rpartition("@")[0] not in {one.rpartition("@")[0] for one in wanted}}
        with open(marker, "w") as file:
            file.write("\n".join(sorted(wanted | of_others)))
    platform, usual = (os.path.join(programs, name) for name in ("goose-binary-linux-x64", "goose"))
    if os.path.exists(platform) and not os.path.exists(usual):
        os.symlink(platform, usual)
    return programs
