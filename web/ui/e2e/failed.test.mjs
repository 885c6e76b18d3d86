// Jobs that failed, in a browser: what is equal is said once, and jobs have their names.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, until, visit, World } from './harness.mjs'

const each = 'weir: 1\nname: many\nnodes:\n  items: {type: each, args: {type: map, args: {expr: "it.no + 1"}, parallel: 20}}\ninputs: {in: items.in}\noutputs: {out: items.out}\n'
let world
let b
before(async () => {
  world = await World.start()
  b = await browser()
  await world.api('POST', 'graphs', { alias: 'many', graph: each })
  await world.api('POST', 'jobs/many/ports/in/in/messages', { messages: Array.from({ length: 20 }, (_, i) => i) })
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it.no + 1' }, alias: 'alone' })
  await world.api('POST', 'jobs/alone/ports/in/in/messages', { messages: [1] })
  for (let n = 1; n <= 5; n++) {
    await until(`error ${n}`, async () => { const j = await world.api('GET', 'jobs/alone'); return j.status === 'failed' && j.errors.length === n })
    if (n < 5) await world.api('POST', 'jobs/alone/retry', {})
  }
  await until('all children failed', async () => (await world.api('GET', 'count?status=failed&type=map&all=true')).count === 21)
})
after(async () => {
  await b?.close()
  await world?.stop()
})

const on = (path, fn, options) => visit(b, world, path, fn, options)

test('equal errors of a job are one, with how often and each of them on demand', () => on('#/job/alone', async page => {
  await page.getByRole('heading', { name: '5 errors' }).waitFor()
  const cards = page.locator('#errors ~ ul > li')
  assert.equal(await cards.count(), 1)
  assert.match(await cards.textContent(), /^5 times, the first .*, the last /)
  await cards.getByText('Each of them').click()
  assert.equal(await cards.locator('ol > li').count(), 5)
  assert.deepEqual(await axe(page), [])
}))

test('the overview says once of jobs of a type why they failed', () => on('#/', async page => {
  const alike = page.locator('.causes [data-kind=failed]', { hasText: 'and 20 more of type map for the same reason' })
  await alike.getByText(/cannot fetch no from int/).waitFor()
  const shown = await page.locator('.causes [data-kind=failed]').count()
  assert.ok(shown <= 4, `${shown} causes`)
  assert.deepEqual(await axe(page), [])
  await alike.getByRole('link', { name: '20 more' }).click()
  await page.getByText('21 pass the filters').waitFor()
}))

test('jobs that texts name by their IDs have their names, and lead there', async () => {
  const { id, reason } = await world.api('GET', 'jobs/many%2Fitems')
  const [failed] = reason.match(new RegExp(`${id.split('.')[0]}\\.\\d+`))
  for (const [path, where] of [['#/job/many%2Fitems', '.why .first'], ['#/job/many%2Fitems', 'pre.error'], ['#/jobs?type=each&all=true', '.grid-row']]) {
    await on(path, async page => {
      const named = page.locator(where).getByRole('link', { name: /^item_\d+$/ })
      assert.equal(await named.getAttribute('title'), failed)
      assert.ok(!(await page.locator(where).first().textContent()).includes(failed), 'the ID is not in the text')
      await named.click()
      await page.waitForURL(new RegExp(`#/job/${failed}`))
    })
  }
  await on('#/job/many', async page => {
    await page.locator('.why').getByText('Open items').getByRole('link').waitFor()
  })
})
