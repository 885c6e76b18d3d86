// What parses the code of a handler in node: [[part, code], …] on standard input; it says what is wrong, and ends with 1 then.
'use strict'
const vm = require('vm')
const AsyncFunction = (async () => {}).constructor
const args = { body: ['payload', 'job'], beforeEach: ['batch'], afterEach: ['batch'] }
for (const [part, code] of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
  const filename = 'weir:' + part
  try {
    if (args[part]) {
      new AsyncFunction(...args[part], code) // eslint-disable-line no-new
    } else {
      new vm.Script(code, { filename }) // eslint-disable-line no-new
    }
  } catch (err) {
    let stack = err.stack
    try {
      if (args[part]) new vm.Script(`(async function (${args[part]}) {\n${code}\n})`, { filename, lineOffset: -1 }) // eslint-disable-line no-new
    } catch (again) {
      stack = again.stack
    }
    const line = new RegExp('^weir:' + part + ':(\\d+)').exec(stack)
    const last = code.split('\n').length // of what is missing at the end it is said that the line behind it, which is not the code's, is wrong
    const behind = line && Number(line[1]) > last
    const said = behind ? 'it ends too early, or its brackets do not match' : err.message
    console.log(`${part}${line ? ', line ' + Math.min(Number(line[1]), last) : ''}: ${err.name}: ${said}`)
    process.exit(1)
  }
}
