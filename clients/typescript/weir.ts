/**
 * A client of Weir for workers in TypeScript. It needs fetch (Node 18, Deno, Bun), and nothing else.
 *
 *     import { Worker } from "./weir.ts";
 *
 *     const worker = new Worker("http://127.0.0.1:8080");
 *     worker.type("Double", { inputs: ["in"], outputs: ["out"] }, async (run) => {
 *       for (const n of run.read<number>("in")) run.write("out", 2 * n);
 *     });
 *     await worker.run();
 *
 * What a run reads, writes, changes and spawns happens together, once, when the function returns; nothing of
 * it happens when it throws or the process dies. The function may be called again for the same messages, so what it does
 * outside Weir should be safe to repeat: run.key is the same each time that a message is worked on.
 *
 * JSON.parse rounds whole numbers beyond 2^53: send such numbers as texts.
 */

/** Any JSON value. */
export type JSONValue = null | boolean | number | string | JSONValue[] | { [key: string]: JSONValue };

/** Returned by a handler: the job sleeps, also when no input can bring more. */
export const SUSPEND = "suspend";
/** Returned by a handler: the job is run again at once. */
export const AGAIN = "again";
/** How a run ends, unless it throws. */
export type End = void | typeof SUSPEND | typeof AGAIN;

/** The server could not do what it was asked for. */
export class WeirError extends Error {
  /** Of HTTP; 0 if no answer came. */
  readonly status: number;
  /** A word for the kind of problem; fenced: the run has lost its job. */
  readonly code: string;
  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Thrown by a handler: another try cannot help. */
export class Permanent extends Error {}

/** Thrown by a handler: the next try, if there is one, comes after so many seconds. */
export class RetryAfter extends Error {
  readonly seconds: number;
  constructor(seconds: number, message = "") {
    super(message);
    this.seconds = seconds;
  }
}

/** A message of a port, and the context that its writer gave it. */
export interface Message<T = JSONValue> {
  data: T;
  context?: Record<string, JSONValue>;
}

/** A port of a type. */
export interface Port {
  name: string;
  kind?: "string" | "number" | "integer" | "boolean" | "array" | "object";
  default?: JSONValue;
  limit?: number;
  required?: boolean;
}

/** How many runs of a type go on at once at most, and how many begin within a time; each of an argument's values may have its own. */
export interface Limits {
  max_running?: number;
  max_running_by?: string;
  max_runs?: number;
  max_runs_per?: string;
  max_runs_by?: string;
}

/** What a type is, and how often a run of it is tried. */
export interface TypeOptions {
  inputs?: (string | Port)[];
  outputs?: (string | Port)[];
  /** The names of arguments and their kinds; "" for any. */
  args?: Record<string, string>;
  queue?: string;
  priority?: number;
  version?: string;
  /** How many runs of the type there are, whoever runs them, such as { max_runs: 50, max_runs_per: "1s" }. */
  limits?: Limits;
  /** How many runs in a row may fail before the job does; 1 if it is not given. */
  tries?: number;
  /** Seconds before the second try, twice as many before each further one; 1 if it is not given. */
  backoff?: number;
  /** Seconds at most; an hour if it is not given. */
  maxBackoff?: number;
}

/** Runs one run of a job. */
export type Handler = (run: Run) => End | Promise<End>;

/** How a Worker works. */
export interface WorkerOptions {
  token?: string;
  /** Runs at a time; 4 if it is not given. */
  concurrency?: number;
  /** For how many seconds a job is this worker's without a heartbeat; 30 if it is not given. */
  lease?: number;
  /** How many messages of each port a run sees at most; 1000 if it is not given. */
  messages?: number;
  /** Is told what no handler can be told. */
  onError?: (text: string) => void;
}

/** A child that a run makes. */
export interface Child {
  type: string;
  queue?: string;
  args?: JSONValue;
  priority?: number;
  labels?: Record<string, string>;
  alias?: string;
}

interface RawInput {
  from: number;
  messages: Message[];
  more: number;
  closed: boolean;
  default?: JSONValue;
}

interface RawRun {
  run: string;
  job: string;
  name?: string;
  type: string;
  queue: string;
  labels?: Record<string, string>;
  args: Record<string, JSONValue>;
  state?: Record<string, JSONValue>;
  inputs: Record<string, RawInput>;
  outputs: string[];
  children?: { name: string; job: string }[];
  step: number;
  try: number;
  shutdown: boolean;
}

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
const duration = (seconds: number) => `${Math.max(0, Math.round(seconds * 1e6))}us`;

/** Sends requests to a server of Weir. */
export class Client {
  private readonly url: string;
  private readonly token: string | undefined;
  constructor(url = "http://127.0.0.1:8080", token?: string) {
    this.url = url.replace(/\/+$/, "");
    this.token = token;
  }

  /** Sends one request and returns the answer, decoded. Problems are thrown as WeirError. */
  async request<T>(method: string, path: string, body?: unknown, timeout = 30): Promise<T> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (this.token) headers["Authorization"] = `Bearer ${this.token}`;
    let status = 0;
    let text = "";
    try {
      const answer = await fetch(this.url + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(timeout * 1000),
      });
      status = answer.status;
      text = await answer.text();
      if (answer.ok) return (text ? JSON.parse(text) : undefined) as T;
    } catch (e) {
      throw new WeirError(0, "no_answer", `${method} ${path}: ${e instanceof Error ? e.message : e}`);
    }
    let problem: { code?: string; detail?: string } = {};
    try {
      problem = JSON.parse(text);
    } catch {
      // it is not from Weir
    }
    throw new WeirError(status, problem.code ?? "error", problem.detail ?? `HTTP status ${status}`);
  }

  /** Like request, and repeats it for so many seconds while no answer comes, or the server cannot answer now. */
  async insist<T>(method: string, path: string, body: unknown, seconds: number, stopped: () => boolean = () => false): Promise<T> {
    const until = Date.now() + seconds * 1000;
    for (let delay = 50; ; delay = Math.min(2 * delay, 2000)) {
      try {
        return await this.request<T>(method, path, body);
      } catch (e) {
        if (!(e instanceof WeirError) || ![0, 429, 502, 503, 504].includes(e.status) || Date.now() + delay > until || stopped()) throw e;
      }
      await sleep(delay * (0.8 + 0.4 * Math.random()));
    }
  }
}

/** The job's durable memory, by key: what a run changes is stored when it is committed. */
export class State {
  private readonly values: Map<string, JSONValue>;
  private readonly changed = new Map<string, JSONValue | undefined>();
  constructor(values: Record<string, JSONValue>) {
    this.values = new Map(Object.entries(values));
  }
  has(key: string): boolean {
    return this.values.has(key);
  }
  /** Returns a copy of what is stored under a key: what is changed in it is stored when it is set again. */
  get<T = JSONValue>(key: string): T | undefined {
    const v = this.values.get(key);
    return v === undefined ? undefined : (structuredClone(v) as T);
  }
  set(key: string, value: JSONValue): void {
    const copy = structuredClone(value);
    this.values.set(key, copy);
    this.changed.set(key, copy);
  }
  delete(key: string): void {
    this.values.delete(key);
    this.changed.set(key, undefined);
  }
  /** What is to be stored; undefined for nothing. */
  changes(): { set: Record<string, JSONValue>; unset: string[] } | undefined {
    if (this.changed.size === 0) return undefined;
    const all = [...this.changed];
    return {
      set: Object.fromEntries(all.filter((c): c is [string, JSONValue] => c[1] !== undefined)),
      unset: all.filter((c) => c[1] === undefined).map((c) => c[0]),
    };
  }
}

/** One run of a job, as its handler sees it. */
export class Run {
  readonly job: string;
  readonly name: string;
  readonly type: string;
  readonly queue: string;
  readonly args: Record<string, JSONValue>;
  readonly labels: Record<string, string>;
  readonly state: State;
  readonly outputs: string[];
  /** Those that woke the job. */
  readonly children: { name: string; job: string }[];
  readonly step: number;
  /** 1 for the first try of this run, 2 after a failure, … */
  readonly attempt: number;
  /** The job was terminated: this is its last run. */
  readonly shutdown: boolean;
  /** Is aborted when the run has lost its job: then it should stop. */
  readonly lost = new AbortController();
  private readonly raw: RawRun;
  private lastRead: string;
  /** How many messages were taken, by In port. */
  readonly taken: Record<string, number> = {};
  private readonly written: { port: string; messages: JSONValue[]; key?: string; context?: Record<string, JSONValue> }[] = [];
  private readonly closed: string[] = [];
  private readonly spawned: (Child & { name: string })[] = [];
  private readonly wakes: string[] = [];
  readonly logged: JSONValue[] = [];
  /** How far the job is, as it was told last. */
  far?: { done: number; total: number; text: string };
  private told = Date.now();
  /** Sends a heartbeat. */
  beat: () => void = () => {};

  constructor(raw: RawRun) {
    this.raw = raw;
    this.job = raw.job;
    this.lastRead = `${raw.job}-${raw.step}`;
    this.name = raw.name ?? "";
    this.type = raw.type;
    this.queue = raw.queue;
    this.args = raw.args;
    this.labels = raw.labels ?? {};
    this.state = new State(raw.state ?? {});
    this.outputs = raw.outputs;
    this.children = raw.children ?? [];
    this.step = raw.step;
    this.attempt = raw.try;
    this.shutdown = raw.shutdown;
  }

  /**
   * A text that names the job and the message that was read last, the same each time that this message is worked on:
   * for payments and the like. Before a message was read it names the run.
   */
  get key(): string {
    return this.lastRead;
  }

  /** Takes the messages of an In port one by one, with their context. Those that are not taken stay for the next run. */
  *messages<T = JSONValue>(port: string): Generator<Message<T>> {
    const all = this.input(port).messages as Message<T>[];
    while ((this.taken[port] ?? 0) < all.length) {
      const n = (this.taken[port] ?? 0) + 1;
      this.taken[port] = n;
      this.lastRead = `${this.job}-${port}-${this.input(port).from + n - 1}`;
      yield all[n - 1]!;
    }
  }

  /** Takes the messages of an In port one by one. */
  *read<T = JSONValue>(port: string): Generator<T> {
    for (const m of this.messages<T>(port)) yield m.data;
  }

  /** What is to be read of an In port while it is empty; undefined for nothing. */
  default(port: string): JSONValue | undefined {
    return this.input(port).default;
  }

  /** Tells whether all messages of an In port were read and none can come any more. */
  done(port: string): boolean {
    const i = this.input(port);
    return i.closed && i.more === 0 && (this.taken[port] ?? 0) === i.messages.length;
  }

  private input(port: string): RawInput {
    const i = this.raw.inputs[port];
    if (!i) throw new Error(`job ${this.job} has no In port "${port}": it has ${Object.keys(this.raw.inputs).join(", ") || "none"}`);
    return i;
  }

  /** Writes a message to an Out port. Of several consumers, those with the same key go to the same one. */
  write(port: string, value: JSONValue, options: { key?: string; context?: Record<string, JSONValue> } = {}): void {
    if (!this.outputs.includes(port)) throw new Error(`job ${this.job} has no open Out port "${port}": it has ${this.outputs.join(", ") || "none"}`);
    if (JSON.stringify(value) === undefined) throw new TypeError(`what is written to port ${port} is not valid JSON`);
    const last = this.written[this.written.length - 1];
    if (last && last.port === port && last.key === options.key && last.context === options.context) last.messages.push(value);
    else this.written.push({ port, messages: [value], ...options });
  }

  /** Says that an Out port gets no more messages. */
  close(port: string): void {
    this.closed.push(port);
  }

  /** Makes a child of the job, of any type that a worker or an engine has registered. */
  spawn(name: string, child: Child): void {
    this.spawned.push({ name, ...child });
  }

  /** Asks for another run after a time, whatever else happens. */
  wakeIn(seconds: number): void {
    this.wakes.push(duration(seconds));
  }

  /** Adds an entry to the job's log. */
  log(entry: JSONValue): void {
    this.logged.push(entry);
  }

  /**
   * Tells how far the job is: done of total, which is 0 if it is not known, and a few words. weir tree, weir top and the page
   * show it, at most a second later if it is told again and again, else with the next heartbeat or the commit.
   */
  progress(done: number, total = 0, text = ""): void {
    this.far = { done, total, text };
    if (Date.now() - this.told < 1000) return;
    this.told = Date.now();
    this.beat();
  }

  /** All that the run did. */
  work(status: End): Record<string, unknown> {
    return {
      run: this.raw.run,
      read: this.taken,
      write: this.written,
      close: this.closed,
      state: this.state.changes(),
      spawn: this.spawned,
      wake_in: this.wakes,
      log: this.logged,
      progress: this.far,
      status: status ?? undefined,
    };
  }
}

interface Kind {
  options: TypeOptions;
  handler: Handler;
}

/** Runs jobs of the types that are registered with it. */
export class Worker {
  readonly client: Client;
  private readonly kinds = new Map<string, Kind>();
  private readonly options: WorkerOptions;
  private readonly lease: number;
  private stopped = false;

  constructor(url = "http://127.0.0.1:8080", options: WorkerOptions = {}) {
    this.client = new Client(url, options.token);
    this.options = options;
    this.lease = options.lease ?? 30;
  }

  /** Registers what runs jobs of a type. */
  type(name: string, options: TypeOptions, handler: Handler): void {
    this.kinds.set(name, { options, handler });
  }

  /** Lets run return when the runs in progress have ended. */
  stop(): void {
    this.stopped = true;
  }

  /** Registers the types and runs jobs until stop is called. */
  async run(): Promise<void> {
    if (this.kinds.size === 0) throw new Error("no type is registered: call worker.type first");
    const ports = (all: (string | Port)[] | undefined) => (all ?? []).map((p) => (typeof p === "string" ? { name: p } : p));
    const types = [...this.kinds].map(([type, { options: o }]) => ({
      type,
      queue: o.queue ?? "default",
      inputs: ports(o.inputs),
      outputs: ports(o.outputs),
      args: o.args && Object.entries(o.args).map(([name, kind]) => (kind ? { name, kind } : { name })),
      priority: o.priority,
      version: o.version,
      ...o.limits,
    }));
    await this.client.insist("POST", "/v1/workers", { types }, Infinity, () => this.stopped);
    await Promise.all(Array.from({ length: this.options.concurrency ?? 4 }, () => this.serve()));
  }

  private tell(text: string): void {
    (this.options.onError ?? ((t: string) => console.error("weir: " + t)))(text);
  }

  private async serve(): Promise<void> {
    const asked = {
      types: [...this.kinds.keys()],
      queues: [...new Set([...this.kinds.values()].map((k) => k.options.queue ?? "default"))],
      wait: "5s",
      lease: duration(this.lease),
      messages: this.options.messages ?? 1000,
    };
    for (let delay = 100; !this.stopped; ) {
      try {
        const { runs } = await this.client.request<{ runs: RawRun[] }>("POST", "/v1/runs/lease", asked);
        delay = 100;
        for (const raw of runs) await this.one(raw);
      } catch (e) {
        this.tell(`asking for runs: ${e instanceof Error ? e.message : e}`);
        await sleep(delay);
        delay = Math.min(2 * delay, 5000);
      }
    }
  }

  private async one(raw: RawRun): Promise<void> {
    const run = new Run(raw);
    const kind = this.kinds.get(run.type)!;
    run.beat = () => void this.keep(raw, run);
    const beat = setInterval(run.beat, (this.lease * 1000) / 3);
    try {
      let work: Record<string, unknown>;
      try {
        const end = await kind.handler(run);
        if (end !== undefined && end !== SUSPEND && end !== AGAIN) throw new TypeError(`the handler of ${run.type} returned ${String(end)}: return nothing, SUSPEND or AGAIN`);
        work = run.work(end);
      } catch (e) {
        return await this.fail(kind, raw, run, e);
      }
      try {
        await this.client.insist("POST", "/v1/runs/commit", work, 2 * this.lease);
      } catch (e) {
        const code = e instanceof WeirError ? e.code : "";
        if (["fenced", "moved", "not_found", "no_answer"].includes(code)) this.tell(`run of job ${run.job} is not committed: ${(e as Error).message}`);
        else await this.fail(kind, raw, run, e);
      }
    } finally {
      clearInterval(beat);
    }
  }

  private async fail(kind: Kind, raw: RawRun, run: Run, e: unknown): Promise<void> {
    const o = kind.options;
    const failed: Record<string, unknown> = { run: raw.run, error: String(e), stack: e instanceof Error ? e.stack : undefined, read: run.taken, log: run.logged };
    if (run.attempt < (o.tries ?? 1) && !(e instanceof Permanent)) {
      failed["retry_in"] = duration(e instanceof RetryAfter ? e.seconds : Math.min((o.backoff ?? 1) * 2 ** (run.attempt - 1), o.maxBackoff ?? 3600));
    }
    try {
      await this.client.insist("POST", "/v1/runs/fail", failed, 2 * this.lease);
    } catch (e) {
      this.tell(`failure of a run of job ${run.job}: ${e instanceof Error ? e.message : e}`);
    }
  }

  private async keep(raw: RawRun, run: Run): Promise<void> {
    try {
      await this.client.request("POST", "/v1/runs/heartbeat", { run: raw.run, lease: duration(this.lease), progress: run.far });
    } catch (e) {
      if (e instanceof WeirError && ["fenced", "not_found"].includes(e.code)) run.lost.abort();
    }
  }
}
