"""A client of Weir for workers in Python. It needs Python 3.9 or newer, and nothing else.

    import weir

    worker = weir.Worker("http://127.0.0.1:8080")

    @worker.type("Double", inputs=["in"], outputs=["out"])
    def double(run):
        for number in run.read("in"):
            run.write("out", 2 * number)

    worker.run()

What a run reads, writes, changes and spawns happens together, once, when the function returns; nothing of it
happens when it raises an exception or the process dies. The function may be called again for the same messages, so what
it does outside Weir should be safe to repeat: run.key is the same each time that a message is worked on.
"""

import json
import random
import signal
import threading
import time
import traceback
import urllib.error
import urllib.request

__all__ = ["Worker", "Run", "Message", "Client", "Error", "Fenced", "Permanent", "RetryAfter", "SUSPEND", "AGAIN"]

#: Returned by a handler: the job sleeps, also when no input can bring more.
SUSPEND = "suspend"
#: Returned by a handler: the job is run again at once.
AGAIN = "again"


class Error(Exception):
    """The server could not do what it was asked for. status is that of HTTP, code a word for the kind of problem."""

    def __init__(self, status, code, detail):
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class Fenced(Error):
    """The run has lost its job: its lease ended, and somebody else has it."""


class Permanent(Exception):
    """Raised by a handler: another try cannot help."""


class RetryAfter(Exception):
    """Raised by a handler: the next try, if there is one, comes after so many seconds."""

    def __init__(self, seconds, *args):
        super().__init__(*args)
        self.seconds = seconds


def duration(seconds):
    """Writes a time in seconds as Weir reads it."""
    return "%dus" % max(0, round(seconds * 1e6))


class Client:
    """Sends requests to a server of Weir. It may be used by several threads."""

    def __init__(self, url="http://127.0.0.1:8080", token=None, timeout=30.0):
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout

    def request(self, method, path, body=None, timeout=None, key=None):
        """Sends one request and returns the answer, decoded. Problems are raised as Error.

        key is an Idempotency-Key: with it the request may be repeated."""
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if key:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout or self.timeout) as answer:
                raw = answer.read()
        except urllib.error.HTTPError as e:
            raise _problem(e) from None
        return json.loads(raw) if raw else None

    def insist(self, method, path, body=None, until=None, stopped=None):
        """Like request, and repeats it while no answer comes, or the server says that it cannot answer now."""
        delay = 0.05
        while True:
            try:
                return self.request(method, path, body)
            except (Error, OSError) as e:
                if isinstance(e, Error) and e.status not in (429, 502, 503, 504):
                    raise
                if until is not None and time.time() + delay > until or stopped is not None and stopped.is_set():
                    raise
            time.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(2 * delay, 2.0)


def _problem(e):
    try:
        p = json.loads(e.read())
        code, detail = p["code"], p["detail"]
    except (ValueError, KeyError, TypeError, OSError):
        code, detail = "error", "%s %s" % (e.code, e.reason)
    return (Fenced if code == "fenced" else Error)(e.code, code, detail)


class Message:
    """A message of a port: its data, and the context that its writer gave it."""

    __slots__ = ("data", "context")

    def __init__(self, data, context):
        self.data, self.context = data, context


class State:
    """The job's durable memory, by key: what a run changes is stored when it is committed."""

    def __init__(self, values):
        self._values, self._set, self._unset = values, {}, set()

    def get(self, key, default=None):
        """Returns a copy of what is stored under a key: what is changed in it is stored when it is set again."""
        return json.loads(json.dumps(self._values[key])) if key in self._values else default

    def __getitem__(self, key):
        if key not in self._values:
            raise KeyError(key)
        return self.get(key)

    def __contains__(self, key):
        return key in self._values

    def __iter__(self):
        return iter(list(self._values))

    def __setitem__(self, key, value):
        self._values[key] = self._set[key] = json.loads(json.dumps(value, allow_nan=False))
        self._unset.discard(key)

    def __delitem__(self, key):
        del self._values[key]
        self._set.pop(key, None)
        self._unset.add(key)

    def _changes(self):
        return {"set": self._set, "unset": sorted(self._unset)} if self._set or self._unset else None


class Run:
    """One run of a job, as the handler sees it."""

    def __init__(self, raw):
        self.raw = raw
        self.id = raw["job"]  #: of the job
        self.name = raw.get("name", "")
        self.type, self.queue = raw["type"], raw["queue"]
        self.args = raw["args"]  #: the arguments of the job
        self.labels = raw.get("labels") or {}
        self.state = State(dict(raw.get("state") or {}))
        self.outputs = raw["outputs"]
        self.children = raw.get("children") or []  #: those that woke the job: [{"name", "job"}]
        self.step, self.attempt = raw["step"], raw["try"]
        self.shutdown = raw["shutdown"]  #: the job was terminated: this is its last run
        self.lost = threading.Event()  #: set when the run has lost its job: it should stop
        self._inputs, self._read = raw["inputs"], {}
        self._key = "%s-%d" % (self.id, self.step)
        self._write, self._close, self._spawn, self._wake, self._log = [], [], [], [], []
        self._progress, self._told, self._tell = None, time.monotonic(), lambda: None

    @property
    def key(self):
        """A text that names the job and the message that was read last, the same each time that this message is worked on:
        for payments and the like. Before a message was read it names the run."""
        return self._key

    def messages(self, port):
        """Takes the messages of an In port one by one, with their context. Those that are not taken stay for the next run."""
        got = self._input(port)["messages"]
        while self._read.get(port, 0) < len(got):
            n = self._read[port] = self._read.get(port, 0) + 1
            m = got[n - 1]
            self._key = "%s-%s-%d" % (self.id, port, self._input(port)["from"] + n - 1)
            yield Message(m["data"], m.get("context") or {})

    def read(self, port):
        """Takes the messages of an In port one by one."""
        for m in self.messages(port):
            yield m.data

    def default(self, port):
        """Returns what is to be read of an In port while it is empty; None for nothing."""
        return self._input(port).get("default")

    def done(self, port):
        """Tells whether all messages of an In port were read and none can come any more."""
        i = self._input(port)
        return i["closed"] and not i["more"] and self._read.get(port, 0) == len(i["messages"])

    def _input(self, port):
        if port not in self._inputs:
            raise KeyError("job %s has no In port %r: it has %s" % (self.id, port, ", ".join(sorted(self._inputs)) or "none"))
        return self._inputs[port]

    def write(self, port, *values, key=None, context=None):
        """Writes messages to an Out port. Of several consumers, those with the same key go to the same one."""
        if port not in self.outputs:
            raise KeyError("job %s has no open Out port %r: it has %s" % (self.id, port, ", ".join(self.outputs) or "none"))
        last = self._write[-1] if self._write else None
        if not last or (last["port"], last.get("key"), last.get("context")) != (port, key, context):
            last = {"port": port, "messages": []}
            if key is not None:
                last["key"] = key
            if context:
                last["context"] = context
            self._write.append(last)
        for v in values:
            json.dumps(v, allow_nan=False)  # so that what is not valid JSON is told where it was written
            last["messages"].append(v)

    def close(self, port):
        """Says that an Out port gets no more messages."""
        self._close.append(port)

    def spawn(self, name, type, queue=None, args=None, priority=None, labels=None, alias=None):
        """Makes a child of the job, of any type that a worker or an engine has registered."""
        child = {"name": name, "type": type, "queue": queue, "args": args, "priority": priority, "labels": labels, "alias": alias}
        self._spawn.append({k: v for k, v in child.items() if v is not None})

    def wake_in(self, seconds):
        """Asks for another run after a time, whatever else happens."""
        self._wake.append(duration(seconds))

    def log(self, entry):
        """Adds an entry to the job's log."""
        self._log.append(entry)

    def progress(self, done, total=0, text=""):
        """Tells how far the job is: done of total, which is 0 if it is not known, and a few words. weir tree, weir top and the
        page show it, at most a second later if it is told again and again, else with the next heartbeat or the commit."""
        self._progress = {"done": done, "total": total, "text": text}
        if time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            self._tell()

    def _work(self, status):
        work = {"run": self.raw["run"], "read": self._read, "write": self._write, "close": self._close, "state": self.state._changes(),
                "spawn": self._spawn, "wake_in": self._wake, "log": self._log, "progress": self._progress, "status": status}
        return {k: v for k, v in work.items() if v}


class _Type:
    def __init__(self, fn, spec, tries, backoff, most):
        self.fn, self.spec, self.tries, self.backoff, self.most = fn, spec, tries, backoff, most


class Worker:
    """Runs jobs of the types that are registered with it.

    concurrency is how many runs there are at a time, each in a thread. lease is for how many seconds a job is this
    worker's without a heartbeat, messages how many messages of each port a run sees at most."""

    def __init__(self, url="http://127.0.0.1:8080", token=None, concurrency=4, lease=30.0, messages=1000, on_error=None):
        self.client = Client(url, token)
        self.concurrency, self.lease, self.messages = concurrency, lease, messages
        self._types, self._stop = {}, threading.Event()
        self._on_error = on_error or (lambda text: print("weir: " + text, flush=True))

    def type(self, name, inputs=(), outputs=(), args=None, queue="default", tries=1, backoff=1.0, max_backoff=3600.0, priority=None, version=None, limits=None):
        """Registers a function as what runs jobs of a type.

        inputs and outputs are names of ports, or objects such as {"name": "in", "kind": "integer", "limit": 100}.
        args maps the names of arguments to their kinds ("string", "number", …; None for any). A run that fails is tried again
        until it failed tries times, first after backoff seconds, then after twice as long each time.
        limits says how many runs of the type there are, whoever runs them, such as {"max_runs": 50, "max_runs_per": "1s"}
        or {"max_running": 3}; with max_runs_by or max_running_by for each value of an argument."""
        spec = {"type": name, "queue": queue, "inputs": [_port(p) for p in inputs], "outputs": [_port(p) for p in outputs]}
        if args is not None:
            spec["args"] = [dict(name=a, **({"kind": k} if k else {})) for a, k in args.items()]
        if priority is not None:
            spec["priority"] = priority
        if version is not None:
            spec["version"] = str(version)
        spec.update(limits or {})

        def register(fn):
            self._types[name] = _Type(fn, spec, tries, backoff, max_backoff)
            return fn

        return register

    def stop(self):
        """Lets run return when the runs in progress have ended. It may be called from a signal handler."""
        self._stop.set()

    def run(self, signals=True):
        """Registers the types and runs jobs until stop is called, or with signals until SIGTERM or SIGINT."""
        if not self._types:
            raise ValueError("no type is registered: put @worker.type(...) before a function")
        if signals and threading.current_thread() is threading.main_thread():
            for s in (signal.SIGTERM, signal.SIGINT):
                signal.signal(s, lambda *_: self.stop())
        self.client.insist("POST", "/v1/workers", {"types": [t.spec for t in self._types.values()]}, stopped=self._stop)
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self.concurrency)]
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                t.join(0.2)

    def _serve(self):
        queues = sorted({t.spec["queue"] for t in self._types.values()})
        asked = {"types": sorted(self._types), "queues": queues, "wait": "5s", "lease": duration(self.lease), "messages": self.messages}
        delay = 0.1
        while not self._stop.is_set():
            try:
                runs = self.client.request("POST", "/v1/runs/lease", asked, timeout=30)["runs"]
                delay = 0.1
            except (Error, OSError) as e:
                self._on_error("asking for runs: %s" % e)
                self._stop.wait(delay)
                delay = min(2 * delay, 5.0)
                continue
            for raw in runs:
                self._one(raw)

    def _one(self, raw):
        run, over = Run(raw), threading.Event()
        run._tell = lambda: self._beat(run)
        kind = self._types[run.type]
        threading.Thread(target=self._keep, args=(run, over), daemon=True).start()
        try:
            status = kind.fn(run)
            if status not in (None, SUSPEND, AGAIN):
                raise TypeError("the handler of %s returned %r: return None, weir.SUSPEND or weir.AGAIN" % (run.type, status))
            work = run._work(status)
            json.dumps(work, allow_nan=False)
        except Exception as e:  # of the user's code
            self._fail(kind, run, e)
        else:
            self._commit(kind, run, work)
        finally:
            over.set()

    def _commit(self, kind, run, work):
        try:
            self._end("commit", work, True)
        except Error as e:
            if e.code not in ("fenced", "moved", "not_found"):
                self._fail(kind, run, e)
            else:
                self._on_error("run of job %s is not committed: %s" % (run.id, e))
        except OSError as e:
            self._on_error("run of job %s: no answer to its commit: %s" % (run.id, e))

    def _fail(self, kind, run, e):
        stack = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        failed = {"run": run.raw["run"], "error": "%s: %s" % (type(e).__name__, e), "stack": stack, "read": run._read, "log": run._log}
        if run.attempt < kind.tries and not isinstance(e, Permanent):
            wait = e.seconds if isinstance(e, RetryAfter) else min(kind.backoff * 2 ** min(run.attempt - 1, 60), kind.most)
            failed["retry_in"] = duration(wait)
        self._end("fail", {k: v for k, v in failed.items() if v})

    def _end(self, how, body, raises=False):
        try:
            self.client.insist("POST", "/v1/runs/" + how, body, until=time.time() + 2 * self.lease)
        except (Error, OSError) as e:
            if raises:
                raise
            self._on_error("%s of a run: %s" % (how, e))

    def _keep(self, run, over):
        while not over.wait(self.lease / 3) and not run.lost.is_set():
            self._beat(run)

    def _beat(self, run):
        body = {"run": run.raw["run"], "lease": duration(self.lease)}
        if run._progress:
            body["progress"] = run._progress
        try:
            self.client.request("POST", "/v1/runs/heartbeat", body)
        except Error as e:
            if e.code in ("fenced", "not_found"):
                run.lost.set()
        except OSError:
            pass  # the next one may come through


def _port(p):
    return {"name": p} if isinstance(p, str) else p
