// The page in a program of its own: below prefixes, read-only, and behind a check of who asks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { browser, faults, World } from './harness.mjs'

const program = process.env.WEIR_MOUNTED ?? new URL('../../../bin/mounted', import.meta.url).pathname
let world
let b
let mounted
let url
before(async () => {
  world = await World.start()
  b = await browser()
  mounted = spawn(program, [`redis://127.0.0.1:${world.redisPort}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  url = String((await once(mounted.stdout, 'data'))[0]).trim()
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'watched' })
})
after(async () => {
  await b?.close()
  mounted?.kill('SIGKILL')
  await world?.stop()
})

const asked = page => { const urls = []; page.on('request', r => urls.push(r.url())); return urls }

test('below a prefix all is asked for below it, and acts work', async () => {
  const page = await b.page({ url: `${url}/ops/jobs` }, '#/job/watched')
  const urls = asked(page)
  await page.reload() // all that the page needs is asked for while we count, however fast it was before
  await page.locator('.why .first').waitFor()
  await page.goto(`${url}/ops/jobs/#/tree/watched`)
  await page.locator('[data-node]').first().waitFor()
  await page.goto(`${url}/ops/jobs/#/start?as=job&type=map`)
  await page.getByLabel(/^expr/).fill('it + 1')
  await page.getByLabel('Alias').fill('below')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.waitForURL(/#\/tree\//)
  assert.equal((await world.api('GET', 'jobs/below')).type, 'map')
  assert.deepEqual(urls.filter(u => !u.startsWith(`${url}/ops/jobs/`) && !u.startsWith('data:')), [])
  assert.ok(urls.length > 10, `${urls.length} requests`)
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('read-only shows no acts, and lets none pass', async () => {
  const page = await b.page({ url: `${url}/look` }, '#/job/watched')
  await page.locator('.why .first').waitFor()
  for (const path of ['#/', '#/jobs?all=true', '#/job/watched', '#/tree/watched', '#/triggers', '#/queues', '#/dead', '#/start', '#/admin', '#/patch/watched']) {
    await page.goto(`${url}/look/${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(?!Open a file).*…$|^Send$|^Start$/ }).count(), 0, path)
  }
  assert.equal(await page.evaluate(async () => (await fetch('v1/jobs/watched/terminate', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })).status), 403)
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('who asks is checked for the page and for what it asks', async () => {
  const page = await b.page({ url: `${url}/gate` }, '#/')
  await page.getByText('log in first').waitFor()
  await page.context().addCookies([{ name: 'session', value: 'good', url }])
  await page.goto(`${url}/gate/`)
  await page.locator('.chart canvas').first().waitFor() // all files of the view are there, which who is not known does not get
  await page.context().clearCookies()
  await page.getByText('log in first').first().waitFor()
  await page.context().close()
})
