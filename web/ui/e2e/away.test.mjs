// Never a blank screen: the page says that the server, or its Redis, is away, shows what it saw last, and goes on.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { browser, faults, until, World } from './harness.mjs'

let world
let b
before(async () => {
  world = await World.start()
  b = await browser()
  await world.sample()
})
after(async () => {
  await b?.close()
  await world?.stop()
})

/** Opens a page, lets something go away and come back, and sees what the page does meanwhile. */
async function survives(path, seen, changes, away, back) {
  const page = await b.page(world, path)
  const what = page.locator(seen).first()
  await what.waitFor()
  await away()
  const banner = page.locator('.banner')
  await banner.waitFor()
  assert.match(await banner.textContent(), /Trying again/)
  assert.ok(await what.isVisible(), 'what was seen stays')
  assert.ok(await page.getByRole('heading', { level: 1 }).isVisible())
  const before = await page.locator(changes).first().textContent()
  await back()
  await banner.waitFor({ state: 'detached', timeout: 45_000 })
  await until(`${path} goes on`, async () => await page.locator(changes).first().textContent() !== before, 45_000)
  assert.deepEqual(await faults(page), [])
  await page.context().close()
}

const restarts = {
  server: [() => world.stopServer(), () => world.serve()],
  Redis: [() => world.stopRedis(), () => world.startRedis()],
}
const bank = '.grid-row:has-text("bank")'
for (const [name, [away, back]] of Object.entries(restarts)) {
  test(`the tree survives a restart of the ${name}`, () => survives('#/tree/orders?as=list', bank, bank, away, back))
  test(`a job survives a restart of the ${name}`, () => survives('#/job/orders', '.why .first', '.log li:first-child', away, back))
}

test('a page that is opened while Redis is away says so, and fills when it is back', async () => {
  await world.stopRedis()
  const page = await b.page(world, '#/tree/orders')
  await page.locator('.banner, [role=alert]').first().waitFor()
  assert.ok((await page.locator('main').textContent()).trim().length > 0, 'it is not blank')
  world.startRedis()
  await page.locator('[data-node="shop/pay/bank"]').waitFor({ timeout: 45_000 })
  await page.locator('.banner').waitFor({ state: 'detached' })
  await page.context().close()
})
