// Jobs that wait for limits, in a browser: how many of a queue, which one a job waits for, and who has its places.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, until, visit, World } from './harness.mjs'

let world
let b
let held // the job that has the only place
before(async () => {
  world = await World.start()
  b = await browser()
  await world.api('POST', 'workers', { types: [{ type: 'Single', queue: 'narrow', max_running: 1, inputs: [{ name: 'in' }] }] })
  for (let i = 0; i < 4; i++) {
    await world.api('POST', 'jobs', { type: 'Single', queue: 'narrow', alias: `single-${i}` })
    await world.api('POST', `jobs/single-${i}/ports/in/in/messages`, { messages: [i] })
  }
  const { runs } = await world.api('POST', 'runs/lease', { queues: ['narrow'], types: ['Single'], wait: '10s', lease: '5m' })
  held = (await world.api('GET', `jobs/${runs[0].job}`)).aliases[0]
  await until('the others wait', async () => (await world.api('GET', 'queues')).find(q => q.queue === 'narrow')?.limited === 3)
})
after(async () => {
  await b?.close()
  await world?.stop()
})

const on = (path, fn, options) => visit(b, world, path, fn, options)

test('a queue says how many of its jobs wait for limits, and since when', () => on('#/queues', async page => {
  const card = page.getByRole('article', { name: 'Queue narrow' })
  await card.getByText(/^3, the first for \d/).waitFor()
  await page.getByText(/1 of 1 at once, 3 wait, the first for \d/).waitFor()
  const holder = page.getByRole('region', { name: 'Limits of runs' }).getByRole('link', { name: held })
  assert.equal(await holder.getAttribute('title'), (await world.api('GET', `jobs/${held}`)).id)
  assert.deepEqual(await axe(page), [])
}))

test('a job says that it is limited, and for which limit it waits, on its page and in lists', async () => {
  const waiting = ['single-0', 'single-1', 'single-2', 'single-3'].find(a => a !== held)
  await on(`#/job/${waiting}`, async page => {
    await page.locator('h1 ~ a.limited', { hasText: 'limited' }).waitFor()
    await page.getByText(/waits for a place of limit type:Single: 1 of 1 running/).waitFor()
    assert.deepEqual(await axe(page), [])
    await page.locator('a.limited').click()
    await page.waitForURL(/#\/queues/)
  })
  await on('#/jobs?type=Single', async page => {
    await page.locator('.grid-row', { hasText: waiting }).getByText('waits for a place of limit type:Single').waitFor()
    await until('three are limited', async () => await page.locator('.grid-row a.limited').count() === 3)
  })
})

test('the overview counts them, and tells of a queue whose limit they wait for', async () => {
  await world.api('PUT', 'queues/narrow/limit', { limit: 2 })
  await on('#/', async page => {
    await page.locator('.tile', { hasText: 'Ready' }).getByText('3 wait for a limit').waitFor()
    const cause = page.locator('.causes [data-kind=limited]', { hasText: '3 ready jobs wait for a limit in queue narrow' })
    await cause.getByText(/the first for .*; at most 2 runs of the queue go on at once/).waitFor()
    assert.deepEqual(await axe(page), [])
  })
})
