// A worker in TypeScript: it squares numbers, and remembers how many it saw. Start it beside weir serve or weir dev:
//
//     node example.ts http://127.0.0.1:8080        (Node 22.18 or newer; older ones need a compiler before)
import { Worker } from "./weir.ts";

const worker = new Worker(process.argv[2]);
process.once("SIGTERM", () => worker.stop());

worker.type("Square", { inputs: [{ name: "in", kind: "number" }], outputs: ["out"], tries: 3 }, (run) => {
  let seen = run.state.get<number>("seen") ?? 0;
  for (const n of run.read<number>("in")) {
    run.write("out", n * n);
    seen++;
  }
  run.state.set("seen", seen);
  run.progress(seen, 0, "numbers squared"); // weir tree and the page show it
});

await worker.run();
