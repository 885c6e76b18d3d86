// Acts on many jobs, on graphs at work, on queues and locks; views that are saved; and what the overview leads to.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, faults, until, World } from './harness.mjs'

let world
let b
const evil = '<img src=x onerror=alert(1)>'
const pipe = 'weir: 1\nname: pipe\nnodes:\n  double: {type: map, args: {expr: "it * 2"}}\n  last: {type: map, args: {expr: it}}\nedges: [double.out -> last.in]\ninputs: {in: double.in}\noutputs: {out: last.out}\n'
before(async () => {
  world = await World.start()
  b = await browser()
  await world.api('POST', 'graphs', { alias: 'pipe', graph: pipe })
  for (let i = 0; i < 4; i++) {
    await world.api('POST', 'jobs', { type: 'map', args: { expr: `it.no + "${evil}"` }, alias: `bad-${i}`, labels: { batch: 'bad' } })
    await world.api('POST', `jobs/bad-${i}/ports/in/in/messages`, { messages: [7] })
  }
  await until('all four fail', async () => (await world.api('GET', 'count?status=failed')).count === 4)
})
after(async () => {
  await b?.close()
  await world?.stop()
})

async function on(path, fn, options) {
  const page = await b.page(world, path, options)
  page.on('dialog', () => page.faults.push('a script ran'))
  try {
    await fn(page)
    assert.deepEqual(await faults(page), [])
  } finally {
    await page.context().close()
  }
}
const confirm = (page, verb) => page.locator('dialog button', { hasText: verb }).last().click()
const runs = async alias => (await world.api('GET', `jobs/${alias}`)).errors.length

test('the overview tells what needs attention first, a click from its cause; markup in it is text', () => on('#/', async page => {
  await page.locator('.causes [data-kind=failed]', { hasText: evil }).first().waitFor()
  assert.equal(await page.locator('img[src=x]').count(), 0)
  await page.locator('.chart canvas').first().waitFor()
  const rate = page.locator('.tile', { hasText: 'Throughput' })
  await rate.waitFor()
  await page.locator('.causes [data-kind=failed] a.button').first().click()
  await page.waitForURL(/#\/job\//)
  await page.locator('.error, pre', { hasText: evil }).first().waitFor()
}))

test('choose failed jobs by keys and pointer, and retry those alone', () => on('#/jobs?status=failed&all=true&label=batch%3Dbad', async page => {
  await page.getByText('4 pass the filters').waitFor()
  await page.locator('.grid-row', { hasText: evil }).first().waitFor()
  assert.equal(await page.locator('img[src=x]').count(), 0)
  const grid = page.getByRole('grid', { name: 'Jobs' })
  await grid.focus()
  await page.keyboard.press(' ')
  await page.keyboard.press('Shift+ArrowDown')
  await page.getByText('2 selected:').waitFor()
  await page.keyboard.press('Control+a')
  await page.getByText('4 selected:').waitFor()
  await page.getByRole('button', { name: 'Select none' }).click()
  await page.getByLabel('Select bad-3').click()
  await page.getByLabel('Select bad-2').click({ modifiers: ['Shift'] })
  const before = await Promise.all([0, 1, 2, 3].map(i => runs(`bad-${i}`)))
  await grid.focus()
  await page.keyboard.press('r')
  await page.getByRole('heading', { name: 'Retry 2 jobs?' }).waitFor()
  assert.match(await page.locator('dialog').textContent(), /bad-3.*bad-2/s)
  await confirm(page, 'Retry 2')
  await page.getByText('2 of 2 retried').waitFor()
  await until('those two ran again', async () => await runs('bad-2') > before[2] && await runs('bad-3') > before[3])
  assert.deepEqual(await Promise.all([0, 1].map(i => runs(`bad-${i}`))), before.slice(0, 2), 'the others did not')
}))

test('search, age, status and sort are in the URL; a saved view brings them back', () => on('#/jobs', async page => {
  await page.getByLabel('Search').fill('bad-')
  await page.getByText('4 pass the filters').waitFor()
  await page.getByLabel(/^Created/).selectOption('last hour')
  await page.locator('.chip', { hasText: 'failed' }).click()
  await page.getByRole('columnheader', { name: /Created/ }).getByRole('button').click()
  await until('they are in the URL', () => /q=bad-/.test(page.url()) && /age=1h/.test(page.url()) && /status=failed/.test(page.url()) && /order=created/.test(page.url()))
  await until('the oldest is the first', async () => /bad-0/.test(await page.locator('#row-0').textContent()))
  await page.getByRole('button', { name: 'Save this view' }).click()
  await page.getByLabel('Name of the view').fill('my <b>bad</b> ones')
  await page.keyboard.press('Enter')
  const url = page.url()
  await page.getByRole('link', { name: 'Trees' }).click()
  await page.getByText('5 pass the filters').waitFor()
  await page.getByRole('link', { name: 'my <b>bad</b> ones' }).click()
  await page.getByText('4 pass the filters').waitFor()
  assert.equal(new URLSearchParams(page.url().split('?')[1]).get('age'), new URLSearchParams(url.split('?')[1]).get('age'))
  await page.keyboard.press('Control+k')
  await page.locator('[cmdk-input]').fill('view my')
  await page.locator('[cmdk-item]', { hasText: /^View my/ }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Forget view my <b>bad</b> ones' }).click()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('link', { name: 'my <b>bad</b> ones' }).waitFor()
  await page.getByLabel('Search').fill('pipe/**')
  await page.locator('.chip', { hasText: 'failed' }).click()
  await page.getByText('3 pass the filters').waitFor()
}))

test('patch a graph: its difference first', () => on('#/patch/pipe', async page => {
  await page.getByText('How shall it be?').waitFor()
  const text = page.getByLabel('Graph', { exact: true })
  await text.fill(pipe.replace('it * 2', 'it * 3').replace('edges:', '  more: {type: map, args: {expr: it}}\nedges:').replace('double.out -> last.in', 'double.out -> more.in.out -> last.in'))
  await page.getByRole('region', { name: 'Added jobs' }).getByText('more').waitFor()
  await page.getByRole('region', { name: /Changed jobs/ }).getByText('it * 3').waitFor()
  await page.getByRole('region', { name: 'Removed edges' }).getByText('double.out -> last.in').waitFor()
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'Patch…' }).click()
  await page.getByRole('heading', { name: 'Patch pipe?' }).waitFor()
  await confirm(page, 'Patch')
  await page.waitForURL(/#\/tree\//)
  await page.getByText(/pipe is patched: 1 job added, 1 job changed/).waitFor()
  assert.equal((await world.api('GET', 'jobs/pipe%2Fdouble')).args.expr, 'it * 3')
  await world.api('POST', 'jobs/pipe/ports/in/in/messages', { messages: [5] })
  await until('the new job handles it', async () => (await world.api('GET', 'jobs/pipe/ports/out/out/messages')).messages.some(m => m.data === 15))
}))

test('lock a job, and take it back; end a lock of somebody else', () => on('#/job/pipe%2Flast', async page => {
  await page.getByRole('button', { name: 'Lock…' }).click()
  await page.getByLabel('For how long').fill('soon')
  await page.locator('dialog').getByRole('button', { name: 'Lock', exact: true }).click()
  await page.locator('dialog .error').waitFor()
  await page.getByLabel('For how long').fill('5m')
  await page.locator('dialog').getByRole('button', { name: 'Lock', exact: true }).click()
  await page.getByText(/locked.* until/).waitFor()
  assert.ok((await world.api('GET', 'jobs/pipe%2Flast')).lock)
  await page.getByRole('button', { name: 'Undo' }).click()
  await until('it is unlocked', async () => !(await world.api('GET', 'jobs/pipe%2Flast')).lock)
  await page.getByRole('button', { name: 'Lock…' }).waitFor() // else the button below may still be that of the first lock
  await world.api('PUT', 'jobs/pipe%2Flast/lock', { ttl: '5m' })
  await page.getByRole('button', { name: 'Unlock…' }).click()
  await confirm(page, 'Unlock')
  await until('the lock is ended', async () => !(await world.api('GET', 'jobs/pipe%2Flast')).lock)
}))

test('limit a queue and pause it, each taken back', () => on('#/queues', async page => {
  const queue = async () => (await world.api('GET', 'queues')).find(q => q.queue === 'default')
  await page.getByRole('button', { name: 'Limit…' }).click()
  await page.getByLabel('Runs at once').fill('many')
  await page.getByRole('button', { name: 'Set the limit' }).click()
  await page.getByText('many is not a number of runs').waitFor()
  await page.getByLabel('Runs at once').fill('3')
  await page.getByRole('button', { name: 'Set the limit' }).click()
  await page.getByText('of at most 3').waitFor()
  assert.equal((await queue()).limit, 3)
  await page.getByRole('button', { name: 'Undo' }).click()
  await until('it has no limit', async () => !(await queue()).limit)
  await page.getByRole('button', { name: 'Pause…' }).click()
  await confirm(page, 'Pause')
  await until('it is paused', async () => (await queue()).paused)
  await page.getByRole('button', { name: 'Undo' }).click()
  await until('it is resumed', async () => !(await queue()).paused)
}))

test('a trigger tells its next times', async () => {
  await world.api('POST', 'triggers', { alias: 'hourly', definition: { schedule: '0 * * * *', launch: { type: 'emit', args: { items: [1] } } } })
  await on('#/triggers', async page => {
    await page.getByText('Next times').click()
    await until('five times', async () => await page.locator('.times li').count() === 5)
  })
})

test('axe finds nothing on these views: light, dark, phone', async () => {
  for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { viewport: { width: 390, height: 800 } }]) {
    for (const path of ['#/', '#/jobs?all=true&type=map', '#/start', '#/start?as=job&type=throttle', '#/patch/pipe', '#/queues', '#/triggers', '#/admin', '#/admin?as=audit', '#/dead']) {
      await on(path, async page => {
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle').catch(() => undefined)
        assert.deepEqual(await axe(page), [], `${path} ${JSON.stringify(options)}`)
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} is wider than the window`)
      }, options)
    }
  }
})
