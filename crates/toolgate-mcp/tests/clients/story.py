"""What every real client does with the server, told once for both Python SDKs.

A client brings `call(name, arguments)`, `read(uri)`, `tools()` and `cancel(name, arguments, when)`; everything else is the
same. A line is printed for each part that went well.
"""

import asyncio
import os
import subprocess
import sys


def told(part):
    print(f"ok {part}", flush=True)


def arguments():
    program, workspace = sys.argv[1:3]
    environment = {"HOME": os.path.join(workspace, "..", "home"), "PATH": os.environ["PATH"], "USER": "ada"}
    return program, workspace, environment


def text_of(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


def is_running(words):
    return subprocess.run(["pgrep", "-f", words], capture_output=True).returncode == 0


async def until(condition):
    for _ in range(2400):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never happened")


async def tell(client, workspace):
    names = [tool.name for tool in await client.tools()]
    assert {"read", "edit", "shell", "delete"} <= set(names), names
    told("lists tools")

    hello = await client.call("read", {"path": "hello.txt"})
    assert hello.content[0].text == "hello\nworld\n", hello
    told("reads")

    await client.call("edit", {"path": "hello.txt", "find": "world", "replace": "moon"})
    assert open(os.path.join(workspace, "hello.txt")).read() == "hello\nmoon\n"
    told("edits")

    ran = await client.call("shell", {"command": "echo from the sandbox"})
    assert client.structured(ran)["stdout"] == "from the sandbox\n", ran
    told("runs a command")

    refused = await client.call("read", {"path": ".env"})
    assert client.is_error(refused) and "error[sensitive_path]" in text_of(refused), refused
    told("is refused")

    deleted = await client.call("delete", {"path": "hello.txt"})
    assert not client.is_error(deleted) and not os.path.exists(os.path.join(workspace, "hello.txt")), deleted
    assert client.asked and "delete hello.txt" in client.asked[0], client.asked
    told("approves by elicitation")

    sleep = f"sleep 60.{os.getpid()}"
    await client.cancel("shell", {"command": sleep}, lambda: until(lambda: is_running(sleep)))
    await until(lambda: not is_running(sleep))
    told("cancels")

    long = await client.call("shell", {"command": "seq 1 30000"})
    uri = next(str(part.uri) for part in long.content if part.type == "resource_link")
    whole = ""
    while uri:
        content = (await client.read(uri)).contents[0]
        whole += content.text
        uri = (content.meta or {}).get("toolgate/next")
    assert "".join(f"{number}\n" for number in range(1, 30001)) in whole
    told("pages a large output")
