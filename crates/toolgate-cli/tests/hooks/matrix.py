"""Real clients with our hooks, against a scripted model. usage: matrix.py PROGRAM DIRECTORY [--full] [--case=NAME] [CLIENT...]

Clients are installed from npm into DIRECTORY. Each case sets a client up by `toolgate init --for CLIENT --hooks --write`, has its model
ask for calls, and asserts what happened on disk and what the model received; cases whose names begin with `with_` confine the whole
client by `toolgate with`. `not_held.json` lists what a client's hooks can't hold: such a case has to behave as it says, so that
a client that gets better is noticed, and has to be named by `toolgate hook doctor`."""

import json
import os
import sys

import cases
import confined_cases
from world import ALL, USUAL, World, install

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "not_held.json")) as known:
    NOT_HELD = {tuple(case) for case in json.load(known)}


def selected(is_full, only):
    """Every case by its name, with whether the whole client is confined."""
    alone = cases.SHORT | (cases.LONG | cases.FAILING if is_full else {})
    confined = confined_cases.SHORT | (confined_cases.LONG if is_full else {})
    every = [(name, case, False) for name, case in alone.items()]
    every += [(f"with_{name}", case, True) for name, case in confined.items()]
    return [case for case in every if only is None or case[0] == only]


def is_applicable(name, client):
    if client == "goose" and name.startswith("with_"):
        return False
    if name.startswith("with_"):
        return (name.removeprefix("with_"), client) not in confined_cases.NOT_APPLICABLE
    return (name, client) not in cases.NOT_APPLICABLE


def attempt(name, case, world):
    held = case(world)
    if name in cases.FAILING:
        is_named = (world.client, name) in NOT_HELD
        assert held != is_named, f"held: {held}, but not_held.json says {not is_named}"


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    program, directory, names = os.path.abspath(words[0]), words[1], words[2:] or (list(ALL) if "--full" in sys.argv else USUAL)
    only = next((word.removeprefix("--case=") for word in sys.argv if word.startswith("--case=")), None)
    programs, passed, failed = install(directory, names), 0, []
    for client in names:
        for name, case, confined in selected("--full" in sys.argv or only is not None, only):
            if not is_applicable(name, client):
                continue
            world = World(client, program, programs, confined)
            try:
                attempt(name, case, world)
                passed += 1
                print(f"ok   {client} {name}", flush=True)
            except Exception as fault:  # noqa: BLE001
                failed.append((client, name))
                print(f"FAIL {client} {name}: {str(fault)[:1500]}\n{world.said[-600:]}", flush=True)
            finally:
                world.remove()
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
