# What parses the code of a handler in Python: [[part, code], …] on standard input; it says what is wrong, and ends with 1 then.
import ast, json, sys, warnings

warnings.simplefilter("ignore")
args = {"body": "payload, job", "beforeEach": "batch", "afterEach": "batch"}
for part, code in json.load(sys.stdin):
    try:
        tree = ast.parse(code, part)
        if part in args:
            function = ast.parse("def f(%s): pass" % args[part])
            function.body[0].body = tree.body or function.body[0].body
            tree = function
        compile(tree, part, "exec")
    except (SyntaxError, ValueError) as err:
        line = getattr(err, "lineno", None)
        print("%s%s: %s: %s" % (part, ", line %d" % line if line else "", type(err).__name__, getattr(err, "msg", err)))
        sys.exit(1)
