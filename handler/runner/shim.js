// What a process of node runs: see internal/sandbox, Serve, for what goes through its pipes.
'use strict'
const fs = require('fs')
const vm = require('vm')
const AsyncFunction = (async () => {}).constructor
globalThis.require = require
let hello, body, beforeEach, afterEach, token

function tell (done) {
  const text = Buffer.from(JSON.stringify(done) + '\n')
  for (let at = 0; at < text.length;) at += fs.writeSync(3, text, at)
}

function failed (id, err) {
  const known = Boolean(err) && Number.isInteger(err.status) && err.status >= 100 && err.status < 600
  const error = String((err && (known ? err.message : reason(err))) || err)
  return { id, status: known ? err.status : 500, error, thrown: !known }
}

// reason is what was thrown, with its place in the code behind its first line, and the frames of the code: those of this file say nothing.
function reason (err) {
  if (!err.stack) return ''
  const said = String(err).split('\n')[0]
  const stack = String(err.stack).split('\n').filter(line => !/^ +at .*(\[eval\]|node:)/.test(line)).join('\n')
  const at = /^(?: +at (?:async )?(?:.* \()?)?((?:before|beforeEach|body|afterEach):\d+)\b/m.exec(stack)
  const rest = stack.startsWith(said) ? stack.slice(said.length) : '\n' + stack
  return said + (at ? ` (${at[1]})` : '') + rest
}

// compile makes a function of a part of the code, whose lines have the numbers that they have there.
function compile (part, args, code) {
  new AsyncFunction(args, code) // eslint-disable-line no-new -- which says what is wrong with the code alone
  return vm.runInThisContext(`(async function (${args}) {\n${code}\n})`, { filename: part, lineOffset: -1 })
}

async function one (job, start) {
  if (start) return { ...start, id: job.id }
  const j = {
    id: job.id, try: job.try, status: 200,
    retry (why) { throw Object.assign(new Error(why), { status: 199 }) },
    fail (why) { throw Object.assign(new Error(why), { status: 400 }) }
  }
  try {
    const result = await body(job.payload, j)
    if (!Number.isInteger(j.status)) throw new TypeError(`job.status is ${JSON.stringify(j.status)}: set it to a number such as 404`)
    const done = { id: job.id, status: j.status }
    if (result !== undefined) done.result = result
    if (j.error !== undefined) done.error = String(j.error)
    return fit(done)
  } catch (err) {
    return failed(job.id, err)
  }
}

// fit takes a result out that is too large.
function fit (done) {
  const size = done.result === undefined ? 0 : Buffer.byteLength(JSON.stringify(done.result) || '')
  if (size <= hello.maxResult) return done
  return { id: done.id, status: 413, error: `the result has ${size} bytes, at most ${hello.maxResult} are kept` }
}

async function part (fn, size) {
  try {
    if (fn) await fn({ size })
  } catch (err) {
    return failed('', err)
  }
}

// mark ends what was printed for a job, or by afterEach.
function mark (id) {
  for (const stream of [process.stdout, process.stderr]) stream.write('\0weir ' + token + ' ' + id + '\n')
}

// lines gives one line of standard input after the other.
async function * lines () {
  let rest = []
  for await (const chunk of process.stdin) {
    let from = 0
    for (let to; (to = chunk.indexOf(10, from)) >= 0; from = to + 1) {
      rest.push(chunk.subarray(from, to))
      yield Buffer.concat(rest).toString()
      rest = []
    }
    rest.push(chunk.subarray(from))
  }
}

async function main () {
  const input = lines()
  const read = async () => {
    const line = await input.next()
    if (line.done) process.exit(0)
    return JSON.parse(line.value)
  }
  hello = await read()
  token = hello.token
  try {
    if (hello.before) await vm.runInThisContext(hello.before, { filename: 'before' })
    body = compile('body', 'payload, job', hello.body)
    if (hello.beforeEach) beforeEach = compile('beforeEach', 'batch', hello.beforeEach)
    if (hello.afterEach) afterEach = compile('afterEach', 'batch', hello.afterEach)
  } catch (err) {
    return tell(failed('', err))
  }
  tell({ id: '', status: 200 })
  for (;;) {
    const { batch } = await read()
    const start = await part(beforeEach, batch)
    for (let n = 0; n < batch; n++) {
      const job = await read()
      const done = await one(job, start)
      mark(job.id)
      tell(done)
    }
    const done = (await part(afterEach, batch)) || { id: '', status: 200 }
    mark('')
    tell(done)
  }
}
main()
