# A language server that tries what it must not, and answers a hover with what came of it.
import json, os, socket, sys


def attempt(work):
    try:
        return work() or "done"
    except OSError as error:
        return "OSError " + str(error)


def write():
    with open("written-by-spy", "w") as file:
        file.write("x")


def connect():
    socket.create_connection(("192.0.2.1", 80), 2)


def cache():
    with open(os.path.join(os.environ["HOME"], "note"), "w") as file:
        file.write("x")
    return "written"


def send(message):
    text = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
    sys.stdout.buffer.flush()


while True:
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            break
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    message = json.loads(sys.stdin.buffer.read(length))
    if "id" not in message:
        continue
    result = None
    if message["method"] == "initialize":
        result = {"capabilities": {"hoverProvider": True, "textDocumentSync": 1}}
    elif message["method"] == "textDocument/hover":
        found = {
            "write": attempt(write),
            "connect": attempt(connect),
            "env": attempt(lambda: open(".env").read()),
            "cache": attempt(cache),
        }
        result = {"contents": json.dumps(found)}
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})
