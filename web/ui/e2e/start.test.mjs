// Graphs and jobs that are started from forms, which are made of their JSON Schemas.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, faults, until, World } from './harness.mjs'

let world
let b
before(async () => {
  world = await World.start()
  b = await browser()
  await until('the types are known', async () => (await world.api('GET', 'types')).length > 5)
})
after(async () => {
  await b?.close()
  await world?.stop()
})

const graph = `weir: 1
name: greet
params:
  rate: {type: int, description: messages per second}
  words: {default: [a, b]}
  polite: {type: bool, default: true}
nodes:
  slow: {type: throttle, args: {rate: "\${rate}"}}
  say: {type: emit, args: {items: "\${words}"}}
  skip: {type: filter, args: {expr: "\${polite} == true"}}
edges:
  - say.out -> slow.in.out -> skip.in
outputs: {out: skip.out}
`

async function on(path, fn) {
  const page = await b.page(world, path)
  try {
    await fn(page)
    assert.deepEqual(await faults(page), [])
  } finally {
    await page.context().close()
  }
}

const start = page => page.getByRole('button', { name: 'Start', exact: true })

test('start a graph from a form made of its parameters', () => on('#/start', async page => {
  await page.getByText('What shall run?').waitFor()
  await page.getByLabel('Graph', { exact: true }).fill('weir: 1\nname: greet\nnodez: {}\n')
  await page.getByText(/line 3.*nodez/).waitFor()
  await page.getByLabel('Graph', { exact: true }).fill(graph)
  const rate = page.getByLabel(/^rate/)
  await rate.waitFor()
  assert.deepEqual(await axe(page), [])
  await start(page).click()
  await page.getByText('rate is missing: it is required').waitFor()
  assert.ok(await rate.evaluate(e => e === document.activeElement), 'the field that is wrong has the focus')
  await rate.fill('-1')
  await start(page).click()
  await page.getByText(/line \d+, nodes.slow.args: .*let at least 1 message pass/).waitFor()
  await rate.fill('9')
  await page.locator('.graph-picture img').waitFor()
  assert.ok(await page.locator('.graph-picture img').evaluate(async i => { await i.decode(); return i.naturalWidth > 100 }), 'the picture is drawn')
  await page.getByLabel(/^words/).fill('["x", "y", "z"]')
  await page.getByLabel('Alias').fill('greeting')
  await page.getByLabel('Labels').fill('team=shop env=test')
  await start(page).click()
  await page.waitForURL(/#\/tree\//)
  const job = await world.api('GET', 'jobs/greeting')
  assert.deepEqual(job.labels, { team: 'shop', env: 'test' })
  assert.equal((await world.api('GET', 'jobs/greeting%2Fslow')).args.rate, 9)
  await until('all three words come through', async () => (await world.api('GET', 'jobs/greeting/ports/out/out/messages')).messages.length === 3)
}))

test('what is required is marked, and said by its name', () => on('#/start', async page => {
  await page.getByLabel('Graph', { exact: true }).fill('weir: 1\nname: asked\nparams:\n  who: {type: string, description: a name}\n  n: {type: int}\n  sure: {type: bool}\n  any: {type: json}\n  opt: {type: string, default: x}\nnodes:\n  all: {type: emit, args: {items: ["${who}", "${n}", "${sure}", "${any}", "${opt}"]}}\noutputs: {out: all.out}\n')
  const form = page.locator('.fields')
  await form.getByText('* required').waitFor()
  for (const name of ['who', 'n', 'sure', 'any']) {
    const field = form.locator('.rjsf-field:not(.rjsf-field-object)').filter({ has: page.locator('label', { hasText: new RegExp(`^${name}\\b`) }) })
    assert.equal(await field.locator('label .required').textContent(), '*', `${name} has a mark`)
    assert.ok(await field.locator('[required]').count() > 0, `${name} has the attribute`)
  }
  assert.equal(await form.locator('.rjsf-field', { hasText: /^opt/ }).locator('.required, [required]').count(), 0, 'opt has none')
  await start(page).click()
  for (const name of ['who', 'n', 'sure', 'any']) await form.getByText(`${name} is missing: it is required`).waitFor()
  assert.equal(await form.getByText('opt is missing').count(), 0)
  assert.deepEqual(await axe(page), [])
  await form.getByLabel(/^who/).fill('Ada')
  await form.getByLabel(/^n\b/).fill('7')
  await form.getByRole('radio', { name: 'No' }).check()
  await form.getByLabel(/^any/).fill('[1]')
  await page.getByLabel('Alias').fill('asked')
  await start(page).click()
  await page.waitForURL(/#\/tree\//)
  const { messages } = await until('all five', async () => { const m = await world.api('GET', 'jobs/asked/ports/out/out/messages'); return m.messages.length === 5 && m })
  assert.deepEqual(messages.map(m => m.data), ['Ada', 7, false, [1], 'x'])
}))

test('an alias that is there is refused in the words of the API', async () => {
  await world.api('POST', 'graphs', { alias: 'ticking', graph: 'weir: 1\nname: tick\nnodes:\n  clock: {type: every, args: {every: 1h}}\n' })
  await on('#/start', async page => {
    await page.getByRole('button', { name: 'Insert an example' }).click()
    await page.getByLabel(/^greeting/).waitFor()
    await page.getByLabel('Alias').fill('ticking')
    await start(page).click()
    await page.getByRole('alert').filter({ hasText: /has this alias/ }).waitFor()
    await page.getByLabel('If the alias exists').selectOption('take that graph')
    await start(page).click()
    await page.getByText('It was there already: this is it').waitFor()
  })
})

test('start a job of a type; what the API says of an argument stands at its field', () => on('#/start?as=job&type=map', async page => {
  await page.getByLabel(/^expr/).fill('it * 3')
  await page.getByLabel('Alias').fill('thrice')
  assert.deepEqual(await axe(page), [])
  await start(page).click()
  await page.waitForURL(/#\/tree\//)
  assert.equal((await world.api('GET', 'jobs/thrice')).args.expr, 'it * 3')
  await page.goto(`${world.url}/#/start?as=job&type=throttle`)
  await page.getByRole('button', { name: 'JSON' }).click()
  await page.getByLabel('Arguments, as JSON').fill('{"rate": "many"}')
  await start(page).click()
  await page.getByText('rate: is "many", use a whole number').waitFor()
  await page.getByRole('button', { name: 'Form' }).click()
  await page.locator('.field-errors', { hasText: 'use a whole number' }).waitFor()
}))
