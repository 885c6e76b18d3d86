#!/usr/bin/env python3
"""A worker in Python: it doubles numbers, and remembers how many it saw. Start it beside weir serve or weir dev:

    python3 example.py http://127.0.0.1:8080
"""

import sys

import weir

worker = weir.Worker(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080")


@worker.type("Double", inputs=[{"name": "in", "kind": "number"}], outputs=["out"], tries=3)
def double(run):
    seen = run.state.get("seen", 0)
    for number in run.read("in"):
        run.write("out", 2 * number)
        seen += 1
    run.state["seen"] = seen
    run.progress(seen, text="numbers doubled")  # weir tree and the page show it


worker.run()
