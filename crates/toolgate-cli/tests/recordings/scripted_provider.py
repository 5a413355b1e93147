"""A model provider on loopback that follows a script, in the four wire formats that clients speak: Anthropic messages, OpenAI
responses, OpenAI chat completions and Gemini. It keeps the requests that clients send, since they hold what a model is shown."""

import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = "Done."
USAGE = {"input_tokens": 10, "output_tokens": 10}
# A client's own number or name of a command that goes on. `$SESSION` in a script stands for the last one.
SESSION = re.compile(r"running with session ID (\d+)|with ID: (\w+)|\(PID: (\d+)\)")


class ScriptedProvider:
    """Answers with one turn of the script after the other. A turn is a list of calls."""

    def __init__(self, turns):
        self.turns = turns
        self.taken = 0
        self.requests = []
        self.session = None
        self.lock = threading.Lock()
        provider = self

        class Handler(ProviderHandler):
            script = provider

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next_turn(self, body):
        """The calls to ask for, or nothing at the end of the script."""
        with self.lock:
            self.requests.append(body)
            found = SESSION.findall(json.dumps(body))
            if found:
                self.session = next(group for group in found[-1] if group)
            if self.taken == len(self.turns):
                return None
            self.taken += 1
            return self.taken, [self.with_session(call) for call in self.turns[self.taken - 1]]

    def with_session(self, call):
        if self.session is None:
            return call
        number = self.session if self.session.isdigit() else json.dumps(self.session)
        return json.loads(json.dumps(call).replace('"$SESSION"', number))


class ProviderHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script = None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply(b"", "text/plain")

    def do_GET(self):
        self.send({"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})

    def do_POST(self):
        body = json.loads(self.body() or b"{}")
        path = self.path.split("?")[0]
        if "count" in path.lower():
            self.send({"input_tokens": 10, "totalTokens": 10})
        elif path.endswith("/messages"):
            self.answer_messages(body)
        elif path.endswith("/responses"):
            self.answer_responses(body)
        elif path.endswith("/chat/completions"):
            self.answer_chat(body)
        elif "generatecontent" in path.lower():
            self.answer_gemini(body, "stream" in path)
        else:
            self.send({}, 404)

    def body(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def send(self, value, status=200):
        self.reply(json.dumps(value).encode(), "application/json", status)

    def stream(self, events):
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            lines.append(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
        self.reply("".join(lines).encode(), "text/event-stream")

    def reply(self, content, kind, status=200):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def turn(self, body, tools):
        """Clients also ask for titles and summaries, without tools or with few; those get words."""
        return self.script.next_turn(body) if len(tools) > 2 else None

    def answer_messages(self, body):
        turn = self.turn(body, body.get("tools") or [])
        blocks = [{"type": "text", "text": DONE}]
        if turn:
            number, calls = turn
            ids = [f"toolu_{number}_{index}" for index in range(len(calls))]
            blocks = [
                {"type": "tool_use", "id": id, "name": call["tool"], "input": call["args"]}
                for id, call in zip(ids, calls)
            ]
        stop = "tool_use" if turn else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": USAGE}
        if not body.get("stream"):
            return self.send({**message, "content": blocks, "stop_reason": stop})
        events = [{"type": "message_start", "message": message}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [{"type": "content_block_start", "index": index, "content_block": start},
                       {"type": "content_block_delta", "index": index, "delta": delta},
                       {"type": "content_block_stop", "index": index}]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": USAGE},
                   {"type": "message_stop"}]
        self.stream(events)

    def answer_responses(self, body):
        turn = self.turn(body, body.get("tools") or [])
        items = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": DONE, "annotations": []}]}]
        if turn:
            number, calls = turn
            items = [response_item(f"call_{number}_{index}", call) for index, call in enumerate(calls)]
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress",
                    "model": body.get("model"), "output": []}
        events = [{"type": "response.created", "response": response}]
        for index, item in enumerate(items):
            events += [{"type": "response.output_item.added", "output_index": index, "item": item},
                       {"type": "response.output_item.done", "output_index": index, "item": item}]
        usage = {**USAGE, "total_tokens": 20, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        ended = {**response, "status": "completed", "output": items, "usage": usage}
        self.stream(events + [{"type": "response.completed", "response": ended}])

    def answer_chat(self, body):
        turn = self.turn(body, body.get("tools") or [])
        message, finish = {"role": "assistant", "content": DONE}, "stop"
        if turn:
            number, calls = turn
            message = {"role": "assistant", "content": None, "tool_calls": [
                {"index": index, **chat_call(f"call_{number}_{index}", call)} for index, call in enumerate(calls)
            ]}
            finish = "tool_calls"
        base = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return self.send({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
                  for delta, reason in [(message, None), ({}, finish)]]
        self.stream(chunks + [{**base, "choices": [], "usage": usage}, "[DONE]"])

    def answer_gemini(self, body, is_stream):
        declared = [tool for group in body.get("tools") or [] for tool in group.get("functionDeclarations", [])]
        turn = self.turn(body, declared)
        schema = (body.get("generationConfig") or {}).get("responseJsonSchema")
        parts = [{"text": json.dumps(example_of(schema)) if schema else DONE}]
        if turn:
            parts = [{"functionCall": {"name": call["tool"], "args": call["args"]}} for call in turn[1]]
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        content = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        answer = {"candidates": [content], "usageMetadata": usage, "modelVersion": "scripted"}
        self.stream([answer]) if is_stream else self.send(answer)


def example_of(schema):
    """Something that fits a schema: clients also ask for judgements as JSON."""
    if schema.get("enum"):
        return schema["enum"][0]
    examples = {"boolean": False, "integer": 0, "number": 0, "array": []}
    kind = str(schema.get("type")).lower()
    if kind == "object" or "properties" in schema:
        return {name: example_of(value) for name, value in schema.get("properties", {}).items()}
    return examples.get(kind, "x")


def chat_call(id, call):
    """A call of chat completions: free text, or a function."""
    if isinstance(call["args"], str):
        return {"id": id, "type": "custom", "custom": {"name": call["tool"], "input": call["args"]}}
    function = {"name": call["tool"], "arguments": json.dumps(call["args"])}
    return {"id": id, "type": "function", "function": function}


def response_item(id, call):
    """A call as an item of the responses API: free text, a function, or an item that is given as it is."""
    if "item" in call:
        return {"id": f"item_{id}", "call_id": id, "status": "completed", **call["item"]}
    if isinstance(call["args"], str):
        return {"type": "custom_tool_call", "id": f"ctc_{id}", "call_id": id, "name": call["tool"],
                "input": call["args"], "status": "completed"}
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": call["tool"],
            "arguments": json.dumps(call["args"]), "status": "completed"}
