// The page with tokens: it asks for one once, and one that may only look sees no acts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { browser, faults, World } from './harness.mjs'

let world
let b
before(async () => {
  world = await World.start('--tokens')
  b = await browser()
})
after(async () => {
  await b?.close()
  await world?.stop()
})

test('a token that may only look sees no acts', async () => {
  const token = (await world.weir('token', 'create', '--role', 'read', '--name', 'looker')).split('\n')[0].trim()
  const admin = (await world.weir('token', 'create', '--role', 'operate', '--name', 'ops')).split('\n')[0].trim()
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'watched' }, admin)
  const page = await b.page(world, '#/job/watched')
  const urls = []
  page.on('request', r => urls.push(r.url()))
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.locator('.why .first').waitFor()
  await page.getByText('read only').waitFor()
  for (const path of ['#/job/watched', '#/jobs', '#/triggers', '#/queues', '#/dead', '#/tree/watched']) {
    await page.goto(`${world.url}/${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.equal(await page.getByRole('button', { name: /…$|^Send$/ }).count(), 0, path)
  }
  assert.ok(urls.length > 5 && urls.every(u => !u.includes(token)), 'the token is in no URL')
  assert.equal(await page.evaluate(() => localStorage.length), 0, 'it is kept nowhere but in the tab')
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('one that may act does', async () => {
  const token = (await world.weir('token', 'create', '--role', 'operate', '--name', 'actor')).split('\n')[0].trim()
  const page = await b.page(world, '#/job/watched')
  await page.getByLabel('Token').fill('wrong')
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.getByText(/not known/).waitFor()
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.getByRole('button', { name: 'Terminate…' }).waitFor()
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})
