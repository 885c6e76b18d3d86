// Takes the pictures of docs/images: node e2e/shots.mjs [FOLDER [NAME,NAME…]]
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { browser, until, World } from './harness.mjs'

const into = process.argv[2] ?? '../../docs/images'
const only = process.argv[3]?.split(',')
await mkdir(into, { recursive: true })
const world = await World.start()
const b = await browser()
try {
  await world.sample()
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it.missing.field + 1' }, alias: 'invoices' })
  await world.api('POST', 'jobs/invoices/ports/in/in/messages', { messages: [7] })
  await world.api('POST', 'triggers', { alias: 'nightly', definition: { schedule: '30 2 * * *', zone: 'Europe/Berlin', launch: { type: 'map', args: { expr: 'it' } } } })
  const shot = async (name, path, options, wait = 2500) => {
    if (only && !only.includes(name)) return
    const page = await b.page(world, path, options)
    await page.waitForTimeout(wait)
    await page.screenshot({ path: join(into, `${name}.png`) })
    await page.context().close()
  }
  await new Promise(done => setTimeout(done, 6000))
  const dark = { colorScheme: 'dark' }
  const wide = { viewport: { width: 1280, height: 640 } }
  await shot('tree', '#/tree/orders', wide, 4000)
  await shot('tree-dark', '#/tree/orders', { ...wide, ...dark }, 4000)
  await shot('job', '#/job/orders%2Forders')
  await shot('jobs', '#/jobs?all=true')
  await shot('timeline', '#/timeline/orders', {}, 3000)
  const { messages, from } = await until('a message', async () => { const m = await world.api('GET', 'jobs/orders/ports/out/tracked/messages'); return m.messages.length > 0 && m })
  await shot('origin', `#/job/orders?origin=out.tracked.${from + messages.length - 1}`, {}, 3000)
  await shot('job-failed', '#/job/invoices')
  await shot('phone', '#/tree/orders', { viewport: { width: 390, height: 800 }, deviceScaleFactor: 2 })
  await shot('overview', '#/', {}, 30_000) // by now the charts have something to show
} finally {
  await b.close()
  await world.stop()
}
