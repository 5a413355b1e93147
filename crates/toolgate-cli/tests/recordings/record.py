"""Records what real clients show their models. usage: record.py DIRECTORY [CLIENT...]

Clients are installed from npm into DIRECTORY. Each follows its script (`CLIENT.script.json`) in a throw-away workspace
(`workspace.json`) and home; the shape of what its model was given goes into `CLIENT.json`: the tools with their arguments, how long
their definitions are, and each call with its result."""

import json
import os
import subprocess
import sys
import tempfile

from clients import CLIENTS
from scripted_provider import ScriptedProvider
from shape import shape

HERE = os.path.dirname(os.path.abspath(__file__))
# Bytes of a token, roughly.
TOKEN_BYTES = 4


def read(name):
    with open(os.path.join(HERE, name)) as file:
        return json.load(file)


def make_workspace(workspace):
    for path, content in read("workspace.json").items():
        file = os.path.join(workspace, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as out:
            if isinstance(content, str):
                out.write(content.encode())
            elif "bytes" in content:
                out.write(bytes(content["bytes"]))
            else:
                out.write((content["repeat"] * content["times"]).encode())


def own_texts(script):
    """Every line that comes from the script or the workspace."""
    texts = json.dumps(script, ensure_ascii=False)
    lines = set(texts.replace("\\n", "\n").split("\n"))
    for content in read("workspace.json").values():
        if isinstance(content, str):
            lines.update(content.split("\n"))
    return {line.strip() for line in lines} - {""}


def tools_of(body):
    """The tools of a request, each with its name and schema, whatever the wire format."""
    for tool in body.get("tools") or []:
        if "functionDeclarations" in tool:
            for function in tool["functionDeclarations"]:
                yield function["name"], function.get("parametersJsonSchema") or {}, function
        elif tool.get("type") == "namespace":
            for inner in tool["tools"]:
                yield f"{tool['name']}.{inner['name']}", inner.get("parameters") or {}, inner
        else:
            function = tool.get("function", tool)
            schema = function.get("input_schema") or function.get("parameters") or {}
            yield function.get("name") or tool["type"], schema, tool


def results_of(body):
    """The results in a request: whether each is marked as an error, where the wire format has such a mark, and its blocks."""
    for message in body.get("messages") or []:
        content = message.get("content")
        if message["role"] == "tool":
            yield None, blocks_of(content)
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                yield bool(block.get("is_error")), blocks_of(block.get("content"))
    for item in body.get("input") or []:
        if str(item.get("type")).endswith("_output"):
            yield None, blocks_of(item.get("output"))
    for message in body.get("contents") or []:
        for part in message["parts"]:
            if "functionResponse" in part:
                response = part["functionResponse"]["response"]
                yield "error" in response, blocks_of(response.get("error", response.get("output")))


def blocks_of(content):
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return [json.dumps(content)]
    return [block["text"] if "text" in block else {"type": block.get("type")} for block in content]


def described(name, schema):
    required = schema.get("required", [])
    arguments = {argument: kind_of(value) for argument, value in schema.get("properties", {}).items()}
    return {"name": name, "arguments": arguments, "required": sorted(required),
            "closed": schema.get("additionalProperties") is False}


def kind_of(schema):
    if "enum" in schema:
        return schema["enum"]
    if "anyOf" in schema:
        return [kind_of(one) for one in schema["anyOf"]]
    if schema.get("type") == "array":
        return [kind_of(schema.get("items", {}))]
    if schema.get("properties"):
        return described("", schema)["arguments"]
    return schema.get("type", "any")


def with_workspace(value, workspace):
    return json.loads(json.dumps(value).replace("$WS", workspace))


def install(name, directory):
    """Installs a client, unless it is there."""
    client = CLIENTS[name]
    manifest = os.path.join(directory, "node_modules", client.package, "package.json")
    if os.path.exists(manifest) and json.load(open(manifest))["version"] == client.version:
        return
    os.makedirs(directory, exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", directory,
                    f"{client.package}@{client.version}"], check=True)


def record(name, directory):
    client, script = CLIENTS[name], read(f"{name}.script.json")
    # Not in the system's directory for temporary files: some clients keep nothing there.
    directory = os.path.abspath(directory)
    with tempfile.TemporaryDirectory(dir=directory) as home, tempfile.TemporaryDirectory(dir=directory) as place:
        workspace = os.path.join(os.path.realpath(place), "workspace")
        os.makedirs(workspace)
        make_workspace(workspace)
        provider = ScriptedProvider([[with_workspace(step, workspace)] for step in script])
        said = client.run(os.path.join(directory, "node_modules", ".bin"), home, workspace, provider.port)
        provider.close()
        if provider.taken < len(script):
            sys.exit(f"{name} stopped after {provider.taken} of {len(script)} calls:\n{said[-2000:]}")
        main = [body for body in provider.requests if any(True for _ in tools_of(body))]
        own = own_texts(script)
        results = list(results_of(main[-1]))
        if len(results) != len(script):
            sys.exit(f"{name} gave {len(results)} results to {len(script)} calls")
        steps = []
        for step, (is_error, blocks) in zip(script, results):
            shown = [shape(block, {workspace: "$WS", home: "$HOME"}, own) if isinstance(block, str) else block for block in blocks]
            if "ends_anywhere" in step:
                shown[-1] = shown[-1].rsplit("\n", 1)[0] + "\n…"
            steps.append({**step, "is_error": is_error, "shown": shown})
        tools = list(tools_of(main[0]))
        definitions = sum(len(json.dumps(whole, separators=(",", ":"))) for _, _, whole in tools)
        return {"client": client.package, "version": client.version,
                "definition_tokens": definitions // TOKEN_BYTES,
                "tools": [described(tool, schema) for tool, schema, _ in tools], "steps": steps}


def write(name, recording):
    """One tool and one step a line, so that a difference can be read."""
    lines = ["{"]
    for key in ("client", "version", "definition_tokens"):
        lines.append(f"  {json.dumps(key)}: {json.dumps(recording[key])},")
    for key, end in (("tools", ","), ("steps", "")):
        entries = [f"    {json.dumps(entry, ensure_ascii=False)}" for entry in recording[key]]
        lines.append(f"  {json.dumps(key)}: [\n" + ",\n".join(entries) + f"\n  ]{end}")
    with open(os.path.join(HERE, f"{name}.json"), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


if __name__ == "__main__":
    for name in sys.argv[2:] or CLIENTS:
        install(name, sys.argv[1])
        write(name, record(name, sys.argv[1]))
        print(f"{name}.json: recorded from {CLIENTS[name].package} {CLIENTS[name].version}")
