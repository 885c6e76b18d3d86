// Takes the pictures of docs/images: node e2e/shots.mjs FOLDER
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { browser, until, World } from './harness.mjs'

const into = process.argv[2] ?? '../../docs/images'
await mkdir(into, { recursive: true })
const world = await World.start()
const b = await browser()
try {
  await world.sample()
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it.missing.field + 1' }, alias: 'invoices' })
  await world.api('POST', 'jobs/invoices/ports/in/in/messages', { messages: [7] })
  await world.api('POST', 'triggers', { alias: 'nightly', definition: { schedule: '30 2 * * *', zone: 'Europe/Berlin', launch: { type: 'map', args: { expr: 'it' } } } })
  const shot = async (name, path, options, wait = 2500) => {
    const page = await b.page(world, path, options)
    await page.waitForTimeout(wait)
    await page.screenshot({ path: join(into, `${name}.png`) })
    await page.context().close()
  }
  await new Promise(done => setTimeout(done, 6000))
  const dark = { colorScheme: 'dark' }
  await shot('overview', '#/', {}, 9000)
  await shot('tree', '#/tree/orders', {}, 4000)
  await shot('tree-dark', '#/tree/orders', dark, 4000)
  await shot('job', '#/job/orders%2Forders')
  await shot('jobs', '#/jobs?all=true')
  await shot('phone', '#/tree/orders', { viewport: { width: 390, height: 800 }, deviceScaleFactor: 2 })
} finally {
  await b.close()
  await world.stop()
}
