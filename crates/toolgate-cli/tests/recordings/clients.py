"""How each client is started without its provider: against a scripted one on loopback, in an empty home, with nothing to ask."""

import json
import os
import subprocess

LIMIT_SECONDS = 180


class Client:
    """A client of one version, and how it speaks."""

    def __init__(self, package, program, version, command, environment, prepare=None):
        self.package, self.program, self.version = package, program, version
        self.command, self.environment, self.prepare = command, environment, prepare

    def run(self, programs, home, workspace, port):
        """Runs the client with a word to its model, until its model is done."""
        if self.prepare:
            self.prepare(home, workspace, port)
        environment = {name: value.format(port=port, home=home) for name, value in self.environment.items()}
        environment |= {"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
        command = [word.replace("{port}", str(port)) for word in self.command]
        command[0] = os.path.join(programs, command[0])
        try:
            ended = subprocess.run(command, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
            return ended.stdout
        except subprocess.TimeoutExpired as late:
            return f"{(late.stdout or b'').decode()}\nIt didn't end within {LIMIT_SECONDS} seconds."


CLAUDE_TOOLS = ("Read,Edit,Write,Bash,Glob,Grep,TaskCreate,TaskGet,TaskList,TaskUpdate,TaskStop,NotebookEdit,Skill")
CODEX_PROVIDER = ('model_providers.scripted={{name="scripted",base_url="http://127.0.0.1:{port}/v1",env_key="CODEX_SCRIPTED_KEY",'
                  'wire_api="responses",request_max_retries=0,stream_max_retries=0}}').replace("{{", "{").replace("}}", "}")


def prepare_gemini(home, workspace, port):
    settings = os.path.join(home, ".gemini")
    os.makedirs(settings, exist_ok=True)
    with open(os.path.join(settings, "settings.json"), "w") as file:
        json.dump({"security": {"auth": {"selectedType": "gemini-api-key"}}}, file)


def prepare_opencode(home, workspace, port):
    models = {name: {"name": name} for name in ("scripted", "gpt-scripted")}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "models": models,
                "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "none"}}
    settings = os.path.join(home, ".config", "opencode")
    os.makedirs(settings, exist_ok=True)
    with open(os.path.join(settings, "opencode.json"), "w") as file:
        json.dump({"provider": {"scripted": provider}, "permission": {"*": "allow"}, "autoupdate": False,
                   "model": "scripted/scripted", "small_model": "scripted/scripted"}, file)


CLIENTS = {
    "claude": Client(
        "@anthropic-ai/claude-code", "claude", "2.1.325",
        ["claude", "-p", "hello", "--tools", CLAUDE_TOOLS, "--allowedTools", CLAUDE_TOOLS],
        {"ANTHROPIC_BASE_URL": "http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
         "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}),
    "codex": Client(
        "@openai/codex", "codex", "0.166.0",
        ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c",
         "model_provider=scripted", "-c", CODEX_PROVIDER, "-c", "tools.update_plan.enabled=true", "-m", "gpt-5.5", "hello"],
        {"CODEX_SCRIPTED_KEY": "none"}),
    "gemini": Client(
        "@google/gemini-cli", "gemini", "0.61.0",
        ["gemini", "-p", "hello", "--approval-mode", "yolo"],
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:{port}",
         "GEMINI_CLI_TRUST_WORKSPACE": "true"}, prepare_gemini),
    "opencode": Client(
        "opencode-ai", "opencode", "1.18.33",
        ["opencode", "run", "hello"],
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
        prepare_opencode),
}
