// A job in a browser: why it waits, its messages, its runs over time, where messages came from.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, faults, until, visit, World } from './harness.mjs'

const trace = '0af7651916cd43dd8448eb211c80319c'
let world
let b
before(async () => {
  world = await World.start('--trace-url', 'https://tracing.example.com/trace/{trace_id}')
  b = await browser()
  await world.sample()
})
after(async () => {
  await b?.close()
  await world?.stop()
})

const on = (path, fn, options) => visit(b, world, path, fn, options)

const chain = 'weir: 1\nname: chain\nnodes:\n  a: {type: map, args: {expr: "it + 1"}}\n  b: {type: map, args: {expr: "it * 10"}}\nedges:\n  - a.out -> b.in\ninputs: {in: a.in}\noutputs: {out: b.out}\n'

/** A chain that has made a message of one that somebody sent. */
async function made(alias) {
  await world.api('POST', 'graphs', { alias, graph: chain })
  await world.api('POST', `jobs/${alias}/ports/in/in/messages`, { messages: [4] })
  await until('it has passed', async () => (await world.api('GET', `jobs/${alias}/ports/out/out/messages`)).messages.some(m => m.data === 50))
}

test('a message is followed back to who sent what it was made of, and over the wires of the tree', async () => {
  await made('chain')
  await on('#/job/chain', async page => {
    await page.getByRole('button', { name: '→ out' }).click()
    await page.locator('.messages pre', { hasText: '50' }).waitFor()
    await page.getByRole('link', { name: 'Where it came from' }).click()
    await page.getByRole('heading', { name: 'Where message #0 of chain.out came from' }).waitFor()
    const steps = page.locator('.origin > li')
    await until('the path', async () => await steps.count() === 4)
    const words = await until('names', async () => {
      const all = await steps.allTextContents()
      return /^b run/.test(all[1]) && /^a run/.test(all[2]) && all
    })
    assert.match(words[1], /read in5wrote out50/)
    assert.match(words[2], /read in4wrote out5/)
    assert.match(words[3], /^local sent to/)
    assert.match(page.url(), /origin=out\.out\.0/, 'a link to it can be sent')
    assert.deepEqual(await axe(page), [])
    await page.getByRole('link', { name: 'Show it in the tree' }).click()
    await page.locator('.path-words', { hasText: '#0 of out came by 3 runs and acts' }).waitFor()
    await page.locator('.box', { hasText: 'map' }).first().waitFor()
    await until('the wires are marked', () => page.locator('.stage').evaluate(el => Number(el.dataset.path) === 3))
    await page.getByRole('button', { name: 'Hide the path' }).click()
    await page.locator('.path-words').waitFor({ state: 'detached' })
  })
})

test('of what the log does not have the page says so', () => on('#/job/chain?origin=out.out.7', async page => {
  await page.locator('dialog').getByText(/has had 1 messages: none has number 7/).waitFor()
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  assert.doesNotMatch(page.url(), /origin=/)
}))

test('runs are bars over time, which keys go along', () => on('#/timeline/orders', async page => {
  const lanes = page.locator('.lane[data-lane]')
  await until('some jobs ran', async () => await lanes.count() >= 5)
  await page.locator('.lane-name', { hasText: 'check' }).waitFor()
  await page.getByLabel('live').uncheck()
  const line = page.getByRole('application', { name: /Runs over time/ })
  await line.focus()
  await page.keyboard.press('ArrowRight')
  const detail = page.getByRole('complementary', { name: 'Selected run' })
  await detail.getByRole('heading', { level: 2 }).waitFor()
  const first = await detail.textContent()
  await page.keyboard.press('ArrowDown')
  await until('another run', async () => await detail.textContent() !== first)
  await page.keyboard.press('ArrowLeft')
  assert.equal(await page.locator('.bar.chosen').count(), 1)
  await page.keyboard.press('Escape')
  await detail.waitFor({ state: 'detached' })
}))

test('a part of a timeline comes nearer, by pointer, keys and buttons', () => on('#/timeline/orders', async page => {
  await until('some jobs ran', async () => await page.locator('.lane[data-lane] .bar').count() >= 20)
  const legend = page.locator('.legend')
  const all = page.getByRole('button', { name: 'All of it' })
  assert.ok(await all.isDisabled())
  const box = await page.locator('.lane[data-lane] svg').first().boundingBox()
  await page.mouse.move(box.x + box.width * 0.5, box.y + 10)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 10)
  await page.mouse.move(box.x + box.width * 0.75, box.y + 10)
  await page.locator('.marked').first().waitFor()
  await page.mouse.up()
  await legend.getByText(/\d+ runs of \d+ within/).waitFor()
  assert.ok(!await page.getByLabel('live').isChecked(), 'what is looked at stands still')
  assert.equal(await page.locator('.marked').count(), 0)
  const outside = await page.locator('.lane[data-lane] .bar').evaluateAll(bars => bars.filter(b => b.x.baseVal.value < 0 || b.x.baseVal.value + b.width.baseVal.value > 1000.01).length)
  assert.equal(outside, 0)
  await all.click()
  await legend.getByText(/· \d+ runs within/).waitFor()
  const line = page.getByRole('application', { name: /Runs over time/ })
  await line.focus()
  await page.keyboard.press('ArrowRight') // the last run of the first lane
  for (let n = 0; n < 4; n++) await page.keyboard.press('+')
  await legend.getByText(/\d+ runs of \d+ within/).waitFor()
  for (let n = 0; n < 30; n++) await page.keyboard.press('ArrowLeft')
  assert.equal(await page.locator('.bar.chosen').count(), 1, 'the view goes along with what is chosen')
  await page.keyboard.press('f')
  await legend.getByText(/· \d+ runs within/).waitFor()
  await page.getByRole('button', { name: 'Nearer' }).click()
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'Farther' }).click()
  assert.ok(await all.isDisabled())
}))

test('a timeline goes back page by page, beyond the newest 400 entries', async () => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'old', in: '1h' })
  for (let n = 0; n < 430; n += 43) await Promise.all(Array.from({ length: 43 }, (_, i) => world.api('POST', 'jobs/old/ports/in/in/messages', { messages: [n + i] })))
  await on('#/timeline/old', async page => {
    const bars = page.locator('.lane[data-lane] .bar')
    await until('the newest', async () => await bars.count() === 400)
    assert.ok(await page.getByRole('button', { name: 'Newer' }).isDisabled())
    await page.getByRole('button', { name: 'Older' }).click()
    const rest = await until('the older ones', async () => { const n = await bars.count(); return n < 400 && n })
    assert.equal(rest, 30)
    assert.ok(await page.getByRole('button', { name: 'Older' }).isDisabled(), 'there are none before them')
    assert.ok(!await page.getByLabel('live').isChecked())
    await page.getByRole('button', { name: 'Newer' }).click()
    await until('the newest again', async () => await bars.count() === 400)
    await page.getByRole('button', { name: 'Older' }).click()
    await until('the older ones again', async () => await bars.count() === 30)
    await page.getByLabel('live').check()
    await until('live is the newest', async () => await bars.count() === 400)
  })
})

test('children that were removed have no link, and nothing asks for them in vain', async () => {
  await world.api('POST', 'graphs', { alias: 'removing', graph: 'weir: 1\nname: removing\nnodes:\n  quick: {type: each, args: {type: map, args: {expr: "it"}}}\n  slow: {type: each, args: {type: delay, args: {by: 1h}, parallel: 2}}\ninputs: {a: quick.in, b: slow.in}\noutputs: {out: quick.out}\n' })
  await world.api('POST', 'jobs/removing/ports/in/a/messages', { messages: [1, 2, 3, 4, 5, 6, 7, 8, 9] })
  await world.api('POST', 'jobs/removing/ports/in/b/messages', { messages: [1, 2] })
  await until('all have passed', async () => (await world.api('GET', 'jobs/removing/ports/out/out/messages')).messages.length === 9)
  const { entries } = await world.api('GET', 'jobs/removing/log?limit=400&tree=true')
  const runs = [...new Set(entries.filter(l => l.run).map(l => l.job))]
  const there = new Set((await world.api('GET', `names?id=${runs.join(',')}`)).map(n => n.id))
  const gone = runs.filter(id => !there.has(id))
  assert.ok(gone.length > 6 && there.size >= 4, `${gone.length} of ${runs.length} jobs of the log were removed`)
  for (const path of ['#/timeline/removing', '#/job/removing', '#/job/removing%2Fquick']) {
    await on(path, async page => {
      await page.locator('.lane[data-lane]').first().waitFor()
      await page.getByLabel('live').uncheck({ timeout: 1000 }).catch(() => undefined)
      if (!path.endsWith('quick')) {
        const lane = page.locator('.lane', { hasText: `${gone.length} removed jobs` })
        await lane.locator('rect').first().dispatchEvent('click')
        const chosen = page.getByRole('complementary', { name: 'Selected run' })
        await chosen.getByRole('heading', { name: /^#\d+ \(removed\) run/ }).waitFor()
        await page.locator('.lane-name a', { hasText: /^slow$/ }).waitFor()
        await page.locator('.lane-name a', { hasText: /^item$/ }).first().waitFor()
      }
      if (path === '#/job/removing') { // of a graph no worker type is known
        await page.locator('button.port', { hasText: 'a' }).first().click()
        await page.getByLabel(/Send a message/).waitFor()
      }
      await page.waitForTimeout(6000) // by now what is there was asked for once more
      const links = await page.locator('main a').evaluateAll(all => all.map(a => decodeURIComponent(a.hash)))
      assert.deepEqual(gone.filter(id => links.some(l => l.split(/[/?]/).includes(id))), [], `${path} has links to jobs that were removed`)
      assert.deepEqual(page.refused, [], path)
    })
  }
})

test('errors have their stack, and say what was read', async () => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it.no.such + 1' }, alias: 'broken' })
  await world.api('POST', 'jobs/broken/ports/in/in/messages', { messages: [{ order: 7 }] })
  await until('it fails', async () => (await world.api('GET', 'jobs/broken')).status === 'failed')
  await on('#/job/broken', async page => {
    await page.getByRole('heading', { name: '1 error' }).waitFor()
    await page.locator('pre.error').first().waitFor()
    await page.locator('#errors ~ ul').getByRole('link', { name: '#0 of in' }).click()
    await page.locator('.origin > li', { hasText: 'local sent to' }).waitFor()
    await page.locator('.origin code', { hasText: '{"order":7}' }).waitFor()
  })
})

test('messages are paged, and lead to their trace', async () => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'paged', in: '1h' })
  const answer = await fetch(`${world.url}/v1/jobs/paged/ports/in/in/messages`, {
    method: 'POST', headers: { 'Content-Type': 'application/json', Traceparent: `00-${trace}-b7ad6b7169203331-01` },
    body: JSON.stringify({ messages: Array.from({ length: 25 }, (_, i) => `no ${i}`) }),
  })
  assert.equal(answer.status, 200)
  await on('#/job/paged', async page => {
    await page.getByRole('button', { name: '← in' }).click()
    await page.locator('pre', { hasText: '"no 9"' }).waitFor()
    assert.equal(await page.locator('pre', { hasText: '"no 10"' }).count(), 0)
    assert.equal(await page.locator('.messages').getByRole('link', { name: /^trace/ }).first().getAttribute('href'), `https://tracing.example.com/trace/${trace}`)
    await page.getByRole('button', { name: 'Later' }).click()
    await page.getByRole('button', { name: 'Later' }).click()
    await page.locator('pre', { hasText: '"no 24"' }).waitFor()
    await page.getByText('21–25 of 25').waitFor()
    await page.getByRole('button', { name: 'Earlier' }).click()
    await page.getByRole('button', { name: 'Take up to these…' }).click()
    await page.getByRole('heading', { name: 'Take the oldest 20 of in?' }).waitFor()
    await page.locator('dialog button', { hasText: 'Take' }).last().click()
    await page.getByText('20 taken').waitFor()
    assert.deepEqual((await world.api('GET', 'jobs/paged/ports/in/in/messages')).messages.map(m => m.data), [20, 21, 22, 23, 24].map(i => `no ${i}`))
    const { from, messages } = await world.api('GET', 'jobs/paged/ports/in/in/messages?limit=2&skip=2')
    assert.deepEqual([from, messages.map(m => m.data)], [22, ['no 22', 'no 23']])
  })
})

test('a form made of the schema of a port sends a message', async () => {
  const order = { type: 'object', properties: { number: { type: 'integer' }, gift: { type: 'boolean' } }, required: ['number'], additionalProperties: false }
  await world.api('POST', 'workers', { types: [{ type: 'Pack', inputs: [{ name: 'order', kind: 'object', schema: order }] }] })
  await world.api('POST', 'jobs', { type: 'Pack', alias: 'pack' })
  await on('#/job/pack', async page => {
    await page.getByRole('button', { name: '← order' }).click()
    const form = page.locator('.send')
    await form.getByRole('button', { name: 'Send', exact: true }).click()
    await form.getByText('number is missing: it is required').waitFor()
    assert.equal(await form.locator('label', { hasText: 'number' }).locator('.required').textContent(), '*')
    assert.equal(await form.locator('label', { hasText: 'gift' }).locator('.required').count(), 0)
    assert.deepEqual(await form.locator('[required]').evaluateAll(all => all.map(e => e.labels[0].textContent)), ['number*'])
    await form.getByLabel(/number/).fill('7')
    await form.getByLabel(/gift/).check()
    assert.deepEqual(await axe(page), [])
    await form.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Sent to order').waitFor()
    await page.locator('.messages pre', { hasText: '"number": 7' }).waitFor()
    assert.deepEqual((await world.api('GET', 'jobs/pack/ports/in/order/messages')).messages.map(m => m.data), [{ number: 7, gift: true }])
  })
})

test('an input of a graph has the form of the port that it leads to, through graphs within it', async () => {
  const parcel = { type: 'object', properties: { weight: { type: 'number' }, to: { type: 'string' } }, required: ['weight'] }
  await world.api('POST', 'workers', { types: [{ type: 'Weigh', inputs: [{ name: 'parcel', kind: 'object', schema: parcel }] }, { type: 'Stamp', inputs: [{ name: 'count', kind: 'integer' }] }] })
  await world.api('POST', 'graphs', { alias: 'post', graph: 'weir: 1\nname: post\nnodes:\n  office: {type: office}\n  stamp: {type: Stamp}\n  any: {type: map, args: {expr: it}}\ninputs: {parcels: office.parcels, stamps: stamp.count, rest: any.in}\noutputs: {out: any.out}\ngraphs:\n  office:\n    nodes: {weigh: {type: Weigh}}\n    inputs: {parcels: weigh.parcel}\n' })
  await on('#/job/post', async page => {
    const form = page.locator('.send')
    await page.getByRole('button', { name: '← parcels' }).click()
    await form.getByLabel(/weight/).fill('1.5')
    await form.getByLabel(/^to/).fill('Berlin')
    assert.deepEqual(await axe(page), [])
    await form.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Sent to parcels').waitFor()
    const [sent] = await until('it arrives', async () => { const m = (await world.api('GET', 'jobs/post%2Foffice%2Fweigh/ports/in/parcel/messages')).messages; return m.length > 0 && m })
    assert.deepEqual(sent.data, { weight: 1.5, to: 'Berlin' })
    await page.getByRole('button', { name: '← stamps' }).click()
    await form.locator('input').first().fill('3')
    await form.getByRole('button', { name: 'Send', exact: true }).click()
    await until('a number arrives', async () => (await world.api('GET', 'jobs/post%2Fstamp/ports/in/count/messages')).messages[0]?.data === 3)
    await page.getByRole('button', { name: '← rest' }).click()
    await form.locator('textarea').waitFor()
  })
})

test('how far a run says that it is', async () => {
  await world.api('POST', 'workers', { types: [{ type: 'Scan', inputs: ['page'].map(name => ({ name })) }] })
  const { id } = await world.api('POST', 'jobs', { type: 'Scan', alias: 'scan' })
  const { runs: [{ run }] } = await world.api('POST', 'runs/lease', { types: ['Scan'], wait: '10s' })
  await world.api('POST', 'runs/heartbeat', { run, progress: { done: 3, total: 5, text: 'pages' } })
  await on('#/job/scan', async page => {
    await page.getByText('3 of 5 pages').waitFor()
    assert.equal(await page.getByLabel('How far it is').evaluate(e => e.value / e.max), 0.6)
    assert.deepEqual(await axe(page), [])
    await world.api('POST', 'runs/heartbeat', { run, progress: { done: 1200, text: 'words' } })
    await page.getByText('1,200 words').waitFor()
    assert.equal(await page.getByLabel('How far it is').count(), 0)
  })
  await on(`#/tree/${id}?as=list`, async page => {
    await page.getByRole('row').filter({ hasText: '1200 words' }).waitFor()
    await world.api('POST', 'runs/heartbeat', { run, progress: { done: 4, total: 5 } })
    await page.getByRole('row').filter({ hasText: '4/5' }).waitFor()
  })
})

test('tabs of a browser share one stream', async () => {
  const page = await b.page(world, '#/tree/orders?as=list')
  const other = await page.context().newPage()
  await other.goto(`${world.url}/#/tree/orders?as=list`)
  for (const p of [page, other]) {
    const row = p.getByRole('row').filter({ hasText: 'bank' })
    await row.waitFor()
    const before = await row.textContent()
    await until('it moves', async () => await row.textContent() !== before)
    assert.deepEqual(await p.evaluate(() => performance.getEntriesByType('resource').map(e => e.name).filter(n => n.endsWith('/live'))), [], 'a tab follows no stream of its own')
  }
  await page.close()
  const row = other.getByRole('row').filter({ hasText: 'bank' })
  const before = await row.textContent()
  await until('it goes on in the other one', async () => await row.textContent() !== before)
  await other.context().close()
})

test('a tab whose shared worker cannot be loaded follows by itself', async () => {
  const page = await b.page(world, '#/')
  await page.addInitScript(() => {
    globalThis.SharedWorker = class { port = new MessageChannel().port1; constructor() { setTimeout(() => this.onerror(), 50) } }
  })
  await page.reload()
  await page.goto(`${world.url}/#/tree/orders?as=list`)
  const row = page.getByRole('row').filter({ hasText: 'bank' })
  await row.waitFor()
  const before = await row.textContent()
  await until('it moves', async () => await row.textContent() !== before)
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('axe finds nothing in a job, light, dark, and on a phone', async () => {
  for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { viewport: { width: 390, height: 800 } }]) {
    for (const path of ['#/job/broken', '#/timeline/orders', '#/job/chain?origin=out.out.0']) {
      await on(path, async page => {
        await page.locator('.why .first, .lane[data-lane], .origin > li').first().waitFor()
        if (path.includes('timeline')) { await page.getByRole('application').focus(); await page.keyboard.press('ArrowRight') }
        assert.deepEqual(await axe(page), [], `${path} ${JSON.stringify(options)}`)
        if (options.viewport) assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} is wider than a phone`)
      }, options)
    }
  }
})

test('a timer whose time has come goes on now, and was not a while ago', async () => {
  await world.api('POST', 'jobs', { type: 'delay', alias: 'later', args: { by: '30m' } })
  await world.api('POST', 'jobs/later/ports/in/in/messages', { messages: [1] })
  await until('it waits for its time', async () => (await world.api('GET', 'jobs/later')).next_at)
  await on('#/job/later', async page => {
    await page.getByText(/which is in (29|30) m/).first().waitFor()
    await page.clock.setFixedTime(Date.now() + 3_600_000)
    await page.reload()
    await page.getByText(/which is now/).first().waitFor()
    await page.getByText(/goes on now/).first().waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), /(which is|goes on|Goes on)\s+\d+ \w+ ago/)
  })
})
