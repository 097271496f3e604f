"""A stdio MCP server of the 2026-07-28 era, in plain JSON-RPC; a stand-alone script.

It refuses the handshake, answers `server/discover`, and asks for input by multi-round-trip
results. Every `tools/call` it gets goes to `--log`, each run of `write` and each finished order
to `--runs`.
"""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

Message = dict[str, Any]

VERSION = "2026-07-28"
STATE = 'opaque "état" \\ {"n": 1}\n'
FORM: Message = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["s", "m"], "title": "Size"}},
    "required": ["size"],
}
TEXT_ARGUMENT: Message = {"type": "object", "properties": {"text": {"type": "string"}}}
READ: Message = {"readOnlyHint": True}


def tool(name: str, does: str, annotations: Message) -> Message:
    return {
        "name": name,
        "description": does,
        "inputSchema": TEXT_ARGUMENT,
        "annotations": annotations,
    }


TOOLS: list[Message] = [
    tool("echo", "Returns the text.", READ),
    tool("write", "Appends the text to the runs file.", {}),
    tool("order", "Asks for a form, twice when the text is `twice`, and returns the answers.", {}),
    tool("endless", "Asks for ever.", READ),
    tool("later", "Is ready in the third round, without asking anything.", READ),
    tool("odd_type", "Returns a result of an unknown type.", READ),
    tool("samples", "Has the client's model answer the text and returns its answer.", READ),
    tool("crash_in_second_round", "Asks, and exits when it gets the answer.", READ),
    tool("plain", "Returns a result without a type.", READ),
    tool("changed", "Has one tool more from now on and says so to listeners.", READ),
]


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.listener: Any = None
        self.extra: list[Message] = []
        self.answers: Message | None = None
        self.state: str | None = None
        self.output = threading.Lock()

    def send(self, message: Message) -> None:
        with self.output:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def note(self, path: str | None, text: str) -> None:
        if path is None:
            return
        with Path(path).open("a") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())

    def run(self) -> None:
        for line in sys.stdin:
            message: Message = json.loads(line)
            self.note(self.options.methods, message.get("method", "answer"))
            if "id" in message and "method" in message:
                reply = self.handle(message)
                if reply is not None:
                    self.send({"id": message["id"], **reply})

    def handle(self, message: Message) -> Message | None:
        method: str = message["method"]
        params: Message = message.get("params") or {}
        meta: Message = params.get("_meta") or {}
        if method == "initialize" and self.options.silent_handshake:
            return None
        if meta.get("io.modelcontextprotocol/protocolVersion") != VERSION:
            supported = {"supported": [VERSION], "requested": "2025-11-25"}
            return {"error": {"code": -32022, "message": "too old", "data": supported}}
        match method:
            case "server/discover":
                self.note(
                    self.options.capabilities,
                    json.dumps(meta["io.modelcontextprotocol/clientCapabilities"]),
                )
                return {"result": self.discovered()}
            case "tools/list":
                return {"result": self.typed({"tools": [*TOOLS, *self.extra]})}
            case "tools/call":
                self.note(self.options.log, json.dumps({"id": message["id"], **params}))
                return {"result": self.call(params)}
            case "subscriptions/listen":
                self.listener = message["id"]
                acknowledged: Message = {
                    "notifications": {"toolsListChanged": True},
                    **self.stamp(),
                }
                self.notify("subscriptions/acknowledged", acknowledged)
                return None
            case _:
                return {"error": {"code": -32601, "message": "unknown method"}}

    def discovered(self) -> Message:
        return self.typed(
            {"supportedVersions": [VERSION], "capabilities": {"tools": {"listChanged": True}}}
        )

    def typed(self, result: Message) -> Message:
        """Add what the protocol asks for, unless this server is a careless one."""
        if self.options.careless:
            return result
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}

    def stamp(self) -> Message:
        return {"_meta": {"io.modelcontextprotocol/subscriptionId": self.listener}}

    def notify(self, method: str, params: Message) -> None:
        self.send({"method": f"notifications/{method}", "params": params})

    def call(self, params: Message) -> Message:
        arguments: Message = params.get("arguments") or {}
        self.answers = params.get("inputResponses")
        self.state = params.get("requestState")
        does = getattr(self, f"do_{params['name']}", None)
        if does is None:
            return {**self.said("unknown tool"), "isError": True}
        result: Message = does(str(arguments.get("text", "")))
        return result

    def do_echo(self, text: str) -> Message:
        return self.said(text)

    def do_write(self, text: str) -> Message:
        self.note(self.options.runs, text)
        return self.said("written")

    def do_endless(self, _: str) -> Message:
        return asks(ask("again"), state="x")

    def do_later(self, _: str) -> Message:
        rounds = int(self.state or 0)
        return self.said("ready") if rounds == 2 else asks({}, state=str(rounds + 1))

    def do_odd_type(self, _: str) -> Message:
        return {"resultType": "hologram"}

    def do_samples(self, text: str) -> Message:
        if self.answers is not None:
            return self.said(json.dumps(self.answers["one"]))
        user = {"role": "user", "content": {"type": "text", "text": text}}
        params: Message = {"messages": [user], "maxTokens": 100}
        return asks({"one": {"method": "sampling/createMessage", "params": params}})

    def do_crash_in_second_round(self, _: str) -> Message:
        if self.answers:
            os._exit(7)
        return asks(ask("one"))

    def do_plain(self, _: str) -> Message:
        return {"content": [{"type": "text", "text": "no type"}]}

    def do_changed(self, _: str) -> Message:
        self.extra = [tool("fresh", "A tool that was not there before.", READ)]
        self.notify("tools/list_changed", self.stamp())
        return self.said("said so")

    def do_order(self, text: str) -> Message:
        answers = self.answers
        if answers is None:
            return asks(ask("first"), state=STATE)
        if self.state is not None and self.state != STATE:
            return self.said(f"the state came back changed: {self.state!r}")
        if "first" in answers and text == "twice":
            return asks({**ask("second"), **ask("third")})
        self.note(self.options.runs, "order")
        return self.said(json.dumps(answers, sort_keys=True))

    def said(self, text: str) -> Message:
        return self.typed({"content": [{"type": "text", "text": text}]})


def ask(key: str) -> Message:
    params = {"mode": "form", "message": f"{key}?", "requestedSchema": FORM}
    return {key: {"method": "elicitation/create", "params": params}}


def asks(requests: Message, *, state: str | None = None) -> Message:
    return {
        "resultType": "input_required",
        **({"inputRequests": requests} if requests else {}),
        **({"requestState": state} if state is not None else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", help="file that counts runs of writing tools")
    parser.add_argument("--log", help="file that gets every tools/call")
    parser.add_argument("--methods", help="file that gets the method of every message")
    parser.add_argument("--capabilities", help="file that gets what the client advertised")
    parser.add_argument("--silent-handshake", action="store_true", help="ignore initialize")
    parser.add_argument("--careless", action="store_true", help="leave out what is optional")
    parser.add_argument("--start-delay", type=float, default=0, help="seconds before reading")
    options = parser.parse_args()
    time.sleep(options.start_delay)
    Server(options).run()


if __name__ == "__main__":
    main()
