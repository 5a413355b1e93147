# How a scripted language server reads and sends.
import json, sys


def send(message):
    text = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
    sys.stdout.buffer.flush()


def messages():
    while True:
        length = 0
        while True:
            line = sys.stdin.buffer.readline()
            if not line:
                return
            if line == b"\r\n":
                break
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        yield json.loads(sys.stdin.buffer.read(length))


def answer(message, empty=False):
    result = None
    if message["method"] == "initialize":
        result = {"capabilities": {"hoverProvider": True, "textDocumentSync": 1}}
    elif message["method"] == "textDocument/hover" and not empty:
        result = {"contents": "an answer"}
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})
