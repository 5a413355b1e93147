"""What is tried with the whole client confined by `toolgate with`, in a workspace that has the client's hooks as well."""

import json
import os
import re
import time

from cases import BYPASSES, DENIED, denied, failing_command, in_background, mentioned_secret, nothing_leaves, of_sub_agent
from screen import Screen, line
from world import ALL, EDIT, NOT_CONFINED, READ, SETTINGS, ScriptedProvider

# Switches and variables with which each client would leave its hooks or its own safeguards out.
SWITCHES = {
    "claude": [["--bare"], ["--safe-mode"], ["--dangerously-skip-permissions"], ["--settings", '{"disableAllHooks":true}']],
    "codex": [["--disable", "hooks"], ["-c", "features.hooks=false"], ["--dangerously-bypass-hook-trust"], ["--yolo"]],
    "gemini": [],
    "opencode": [["--pure"]],
    "copilot": [["--yolo"], ["--allow-all"]],
}
VARIABLES = {"claude": {"CLAUDE_CODE_SIMPLE": "1"}, "opencode": {"OPENCODE_PURE": "1"}}
# Files of a workspace that switch hooks off.
WORKSPACE_SWITCHES = {
    "claude": {".claude/settings.local.json": {"disableAllHooks": True, "env": {"CLAUDE_CODE_SIMPLE": "1"}}},
    "codex": {".codex/config.toml": "[features]\nhooks = false\n"},
    "gemini": {".gemini/settings.json": {"hooksConfig": {"enabled": False, "disabled": ["toolgate"]}}},
    "opencode": {"opencode.json": {"plugin": []}},
}


def whole_turn(world):
    """Commands and edits of a turn, what they see, what the record has of them, and how they are undone."""
    turns = [[world.shell("echo made > made.txt; grep -r hidden .; cat ~/canary; echo seen-words; bash leave.sh")],
             [EDIT[world.client]("a.txt")], [world.shell("echo failing-words; exit 3")]]
    if world.client in ("claude", "opencode"):
        turns.insert(1, [READ[world.client]("a.txt")])
    shown = world.run(turns)
    assert "seen-words" in shown and "failing-words" in shown, f"{shown[-1500:]}"
    assert "hidden-canary" not in shown and "canary-of-home" not in shown, "a secret was shown"
    assert world.read("made.txt") == "made\n" and world.read("a.txt") == "one\nTWO\n", shown[-1500:]
    assert world.read(".mcp.json") is None, "what clients load by themselves wasn't quarantined"
    assert ".mcp.json" in world.said and ".mcp.json" in world.toolgate("quarantine", "list"), world.said
    changes = world.toolgate("changes")
    assert "made.txt" in changes and "a.txt" in changes, changes
    tree = world.toolgate("runs", "tree")
    assert "executed by " + world.client in tree and tree.count("shell") >= 2, tree
    world.toolgate("undo", "--run", "last")
    assert world.read("made.txt") is None and world.read("a.txt") == "one\ntwo\n", "it wasn't undone"


def bypasses(world):
    for command in [*BYPASSES, "rm -f ~/canary; cat /etc/shadow"]:
        shown = world.run([[world.shell(command)]])
        assert world.has_canary(), f"{command} removed it"
        assert "hidden-canary" not in shown and not re.search(r"root:[^ ]*:\d+:", shown), f"{command} showed a secret"
    nothing_leaves(world)


def switches(world):
    cases = [(extra, {}) for extra in SWITCHES[world.client]]
    if world.client in VARIABLES:
        cases.append(([], VARIABLES[world.client]))
    for extra, environment in cases:
        world.run([[world.shell("echo ran > ran.txt")]], extra=extra, environment=environment)
        assert world.code != 0 and "is refused" in world.said and not world.requests, f"{extra} {environment}: {world.said}"
        assert world.read("ran.txt") is None


def switched_off_in_workspace(world):
    """Settings of the workspace don't reach the hooks that `toolgate with` hands to the client."""
    for path, content in WORKSPACE_SWITCHES[world.client].items():
        world.put(path, content if isinstance(content, str) else json.dumps(content))
    denied(world)


def switched_off_for_copilot(world):
    """Copilot's settings do reach them, so it isn't started."""
    world.put(".github/copilot/settings.json", json.dumps({"disableAllHooks": True}))
    world.run([[world.shell("echo ran > ran.txt")]])
    assert world.code != 0 and "disableAllHooks" in world.said and not world.requests, world.said


def settings_changed(world):
    """A command that changes settings while the client runs switches nothing off."""
    off = json.dumps({"disableAllHooks": True, "hooksConfig": {"enabled": False}, "hooks": {}})
    files = [SETTINGS[world.client], ".claude/settings.local.json", ".github/copilot/settings.local.json"]
    command = "; ".join(f"mkdir -p $(dirname {file}); rm -f {file}; echo '{off}' > {file}" for file in files)
    shown = world.run([[world.shell(command)], [world.shell("sleep 1")], [world.shell(DENIED)]])
    assert world.has_canary(), "it ran"
    assert "Toolgate" in shown, shown[-1500:]


def secret_read(world):
    shown = world.run([[READ[world.client](".env")], [world.shell("cat .env; grep -r hidden .")]])
    assert "hidden-canary" not in shown, "the secret was shown"


def server_started(world):
    """MCP servers of the client's are inside as well."""
    world.put("server.sh", "cat ~/canary .env > seen.txt; echo x > ~/escaped; echo started > started.txt; cat > /dev/null\n")
    server = {"command": "sh", "args": [f"{world.workspace}/server.sh"]}
    if world.client == "claude":
        extra = ["--mcp-config", json.dumps({"mcpServers": {"escaping": server}})]
    else:
        extra = ["-c", 'mcp_servers.escaping.command="sh"', "-c", f"mcp_servers.escaping.args={json.dumps(server['args'])}"]
    world.run([[world.shell("sleep 2")]], extra=extra)
    assert world.read("started.txt") == "started\n", world.said
    assert "canary" not in (world.read("seen.txt") or ""), "a server read what is hidden"
    assert not os.path.exists(os.path.join(world.home, "escaped")), "a server wrote outside"


# Codex asks once about a model that isn't new.
OLD_MODEL = "Use existing model"
WORKING = {"claude": "esc to interrupt", "codex": "esc to interrupt"}
READY = {"claude": "❯", "codex": "Ask Codex to do anything"}


def screen(world):
    """The client's own screen: colours, typing, resizing, interrupting, stopping and continuing, and the end."""
    provider = ScriptedProvider([[world.shell("echo made > made.txt; sleep 50")], [world.shell("echo again > again.txt")]])
    world.prepare(provider.port)
    interactive(world)
    client = ALL[world.client]
    variables = {name: value.format(port=provider.port, home=world.home) for name, value in client.environment.items()}
    seen = Screen(world, variables)
    try:
        words = [word.replace("{port}", str(provider.port)) for word in client.command if word not in NOT_CONFINED]
        ours = ["claude", "--permission-mode", "default", "--allowedTools", "Bash"]
        words = ours if world.client == "claude" else [words[0], *words[3:-1]]
        seen.types(line([world.program, "with", "--connect", f"localhost:{provider.port}", *words]))
        if world.client == "codex":
            seen.waits_for(OLD_MODEL)
            time.sleep(1)
            seen.presses("2")
        seen.waits_for(READY[world.client])
        assert "\x1b[" in seen.shown("-e"), "it has no colours"
        seen.types("please make it")
        seen.waits_until(lambda _: world.read("made.txt") == "made\n", "its command")
        seen.resizes(120, 30)
        seen.waits_until(lambda shown: any(len(row) > 80 for row in shown.split("\n")), "120 columns")
        seen.presses("Escape")
        seen.waits_until(lambda shown: WORKING[world.client] not in shown, "the end of its work")
        assert "please make it" in seen.shown(), seen.shown()
        seen.presses("C-z")
        seen.waits_for("Stopped")
        seen.types("echo in-$((1 + 1))-shell")
        seen.waits_for("in-2-shell")
        seen.types("fg")
        seen.waits_until(lambda shown: READY[world.client] in shown.rstrip().split("Stopped")[-1], "its screen again")
        seen.types("once more")
        seen.waits_until(lambda _: world.read("again.txt") == "again\n", "its second command")
        for _ in range(3):
            seen.presses("C-c")
            time.sleep(0.5)
        seen.types("stty -a | grep -o ' icanon'; echo ended-$((1 + 1))")
        seen.waits_for("ended-2")
        assert " icanon" in seen.shown(), f"the terminal isn't as it was: {seen.shown()}"
    finally:
        world.said = seen.shown()
        seen.close()
        provider.close()


def interactive(world):
    """What these clients ask at their first start is answered."""
    if world.client == "claude":
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {world.workspace: trusted},
                    "customApiKeyResponses": {"approved": ["none"], "rejected": []}}
        with open(os.path.join(world.home, ".claude.json"), "w") as file:
            json.dump(settings, file)
    else:
        os.makedirs(os.path.join(world.home, ".codex"), exist_ok=True)
        with open(os.path.join(world.home, ".codex", "config.toml"), "w") as file:
            file.write(f'[projects."{world.workspace}"]\ntrust_level = "trusted"\n')


SHORT = {"whole_turn": whole_turn}
LONG = {"denied": denied, "failing_command": failing_command, "bypasses": bypasses, "switches": switches,
        "switched_off_in_workspace": switched_off_in_workspace, "settings_changed": settings_changed, "secret_read": secret_read,
        "mentioned_secret": mentioned_secret, "in_background": in_background, "of_sub_agent": of_sub_agent,
        "switched_off_for_copilot": switched_off_for_copilot, "server_started": server_started, "screen": screen}
NOT_APPLICABLE = {("switched_off_in_workspace", "copilot"), ("secret_read", "codex"), ("in_background", "opencode"),
                  *((case, client) for case in ("server_started", "screen") for client in ("gemini", "opencode", "copilot")),
                  *(("switched_off_for_copilot", client) for client in SETTINGS if client != "copilot")}
