# What a process of Python runs: see internal/sandbox, Serve, for what goes through its pipes.
import ast, json, os, sys, traceback

sys.stdout.reconfigure(line_buffering=True)  # who waits for a line, such as P: 3/5, has it when it is printed
results = os.fdopen(3, "wb", buffering=0)


class Stop(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


class Job:
    def __init__(self, id, attempt):
        self.id, self.attempt, self.status, self.error = id, attempt, 200, None

    def retry(self, why=""):
        raise Stop(199, why)

    def fail(self, why=""):
        raise Stop(400, why)


def tell(done):
    text = memoryview((json.dumps(done) + "\n").encode())
    while text:
        text = text[results.write(text):]


PARTS = "before", "beforeEach", "body", "afterEach"


def failed(id, err):
    status = getattr(err, "status", None)
    known = isinstance(status, int) and 100 <= status < 600
    text = str(err)
    if not known:  # its first line is the reason that is shown, with its place in the code
        frames = [f for f in traceback.extract_tb(err.__traceback__) if f.filename in PARTS]
        places = [(f.filename, f.lineno) for f in frames]
        if isinstance(err, SyntaxError) and err.filename in PARTS:
            places = [(err.filename, err.lineno or 0)]
        said = traceback.format_exception_only(err)
        text = "".join(said).strip().split("\n")[-1] + (" (%s:%d)" % places[-1] if places else "") + "\n"
        text += "".join(traceback.format_list(frames) + said)  # the frames of this file say nothing
    return {"id": id, "status": status if known else 500, "error": text, "thrown": not known}


def function(name, args, code):
    """Makes a function of code, which may return."""
    tree = ast.parse("def %s(%s): pass" % (name, args))
    tree.body[0].body = ast.parse(code, name).body or tree.body[0].body
    space = {}
    exec(compile(tree, name, "exec"), context, space)
    return space[name]


context = {"__name__": "__handler__"}


def one(job, start):
    if start:
        return dict(start, id=job["id"])
    j = Job(job["id"], job["try"])
    try:
        result = body(job["payload"], j)
        if type(j.status) is not int:
            raise TypeError("job.status is %r: set it to a number such as 404" % (j.status,))
        done = {"id": j.id, "status": j.status}
        if j.error is not None:
            done["error"] = str(j.error)
        if result is not None:
            done["result"] = result
            text = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            size = len(text.encode(errors="replace"))  # half a character is refused where the result is read
            if size > hello["maxResult"]:
                return {"id": j.id, "status": 413, "error": "the result has %d bytes, at most %d are kept" % (size, hello["maxResult"])}
        return done
    except Exception as err:
        return failed(job["id"], err)


def part(fn, size):
    try:
        if fn:
            fn(size)
    except Exception as err:
        return failed("", err)


def mark(id):
    """Ends what was printed for a job, or by afterEach."""
    for stream in sys.stdout, sys.stderr:
        print("\0weir %s %s" % (hello["token"], id), file=stream, flush=True)


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


hello = read()
try:
    exec(compile(hello["before"], "before", "exec"), context)
    body = function("body", "payload, job", hello["body"])
    before_each = function("beforeEach", "batch", hello["beforeEach"]) if hello["beforeEach"] else None
    after_each = function("afterEach", "batch", hello["afterEach"]) if hello["afterEach"] else None
except Exception as err:
    tell(failed("", err))
    sys.exit(0)
tell({"id": "", "status": 200})
while True:
    size = read()["batch"]
    start = part(before_each, size)
    for _ in range(size):
        job = read()
        done = one(job, start)
        mark(job["id"])
        tell(done)
    done = part(after_each, size) or {"id": "", "status": 200}
    mark("")
    tell(done)
