// What people do on the page, in a browser: node --test e2e/
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, until, visit, World } from './harness.mjs'

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

const on = (path, fn, options) => visit(b, world, path, fn, options)

const confirm = async (page, verb) => page.locator('dialog button', { hasText: verb }).last().click()
const failing = async alias => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it.no.such + 1' }, alias, labels: { batch: 'failing' } })
  await world.api('POST', `jobs/${alias}/ports/in/in/messages`, { messages: [7] })
  await until(`${alias} fails`, async () => (await world.api('GET', `jobs/${alias}`)).status === 'failed')
}

test('watch a pipeline move', () => on('#/tree/orders', async page => {
  await page.locator('[data-node="shop/pay/bank"]').waitFor()
  assert.match(await page.locator('[data-node="shop/pay/bank"] .pin-name').first().textContent(), /in/)
  await page.getByRole('button', { name: 'List' }).click()
  const row = page.getByRole('row').filter({ hasText: 'bank' })
  const passed = async () => Number((await row.textContent()).match(/([\d,]+) passed/)[1].replaceAll(',', ''))
  const first = await until('a count', passed)
  await until('more messages pass', async () => await passed() > first + 5)
}))

test('an address that is none says so', () => on('#/nope/x', async page => {
  await page.getByText('There is no page nope here.').waitFor()
  await page.locator('main').getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}))

test('a subgraph folds and opens, and the URL keeps it', () => on('#/tree/orders', async page => {
  await page.getByRole('button', { name: 'Fold pay' }).click()
  await page.getByRole('button', { name: 'Open pay' }).waitFor()
  assert.equal(await page.locator('[data-node="shop/pay/bank"]').count(), 0)
  assert.match(page.url(), /fold=/)
  await page.getByRole('button', { name: 'Open pay' }).click()
  await page.locator('[data-node="shop/pay/bank"]').waitFor()
}))

test('keys go through the tree, and open a job', () => on('#/tree/orders', async page => {
  await page.locator('[data-node="shop/ship"]').waitFor()
  await page.locator('[data-search]').fill('ship')
  await page.locator('aside.selected', { hasText: 'ship' }).waitFor()
  await page.locator('.stage').focus()
  await page.keyboard.press('ArrowRight')
  await page.locator('aside.selected', { hasText: /label|parcel/ }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/#\/job\//)
}))

test('send a message by hand', async () => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it * 2' }, alias: 'twice' })
  await on('#/job/twice', async page => {
    await page.getByRole('button', { name: /in$/ }).click()
    await page.getByLabel(/Send a message/).fill('{"broken"')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText(/This is not JSON/).waitFor()
    await page.getByLabel(/Send a message/).fill('21')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Sent to in').waitFor()
    await page.locator('button.port', { hasText: 'out' }).click()
    await page.locator('.messages pre', { hasText: '42' }).waitFor()
  })
})

test('find why a job waits', () => on('#/', async page => {
  await page.getByRole('region', { name: 'Ran last' }).getByRole('link', { name: 'orders' }).click() // the job of this name may be above, as it is blocked
  await page.locator('[data-node="shop/orders"]').dblclick()
  await page.locator('.why .first', { hasText: /is full|waits/ }).waitFor()
  await until('it says that it waits for the bank', async () => /pay\/(check|bank)/.test(await page.locator('.why').textContent()))
}))

test('list the blocked jobs', () => on('#/jobs?blocked=true', async page => {
  await page.locator('.grid-row', { hasText: 'orders' }).getByText(/port \S+ of .* is full/).waitFor()
  const all = (await world.api('GET', 'jobs?all=true&limit=1000')).jobs
  const listed = await until('some are blocked', async () => { const { jobs } = await world.api('GET', 'jobs?blocked=true&limit=1000'); return jobs.length > 0 && jobs }) // a port is full for a time only
  assert.ok(listed.length < all.length, `${listed.length} of ${all.length}`)
  for (const j of listed) assert.match(j.reason, /^full: port/)
}))

test('retry failed ones in bulk, with a preview', async () => {
  await failing('bad-1')
  await failing('bad-2')
  await on('#/jobs?label=batch%3Dfailing&status=failed', async page => {
    await page.getByText('2 pass the filters').waitFor()
    await page.getByRole('button', { name: 'Retry failed…' }).click()
    await page.getByRole('heading', { name: 'Retry 2 jobs?' }).waitFor()
    await confirm(page, 'Retry 2')
    await page.getByText('2 of 2 retried').waitFor()
    await until('both ran again', async () => (await Promise.all(['bad-1', 'bad-2'].map(a => world.api('GET', `jobs/${a}`)))).every(j => j.errors.length > 1))
  })
})

test('look at a dead letter, edit it, and requeue it', async () => {
  await world.api('POST', 'graphs', { alias: 'letters', graph: 'weir: 1\nnodes:\n  div: {type: map, args: {expr: "it.price + 1"}, failure: dead_letter}\ninputs: {in: div.in}\noutputs: {out: div.out}\n' })
  await world.api('POST', 'jobs/letters/ports/in/in/messages', { messages: [{ cost: 3 }] })
  await on('#/dead?job=letters', async page => {
    const card = page.locator('article')
    await card.first().waitFor()
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.locator('dialog textarea').fill('{"price": 3}')
    await page.getByRole('button', { name: 'Send, and remove the letter' }).click()
    await page.getByText('No dead letters.').waitFor()
    await until('the edited message is handled', async () => (await world.api('GET', 'jobs/letters/ports/out/out/messages')).messages.some(m => m.data === 4))
  })
})

test('jobs with dead letters are marked with their number, which leads to them', async () => {
  await world.api('POST', 'graphs', { alias: 'marked', graph: 'weir: 1\nname: marked\nnodes:\n  div: {type: map, args: {expr: "it.price + 1"}, failure: dead_letter}\n  more: {type: map, args: {expr: "it"}}\nedges:\n  - div.out -> more.in\ninputs: {in: div.in}\noutputs: {out: more.out}\n' })
  await world.api('POST', 'jobs/marked/ports/in/in/messages', { messages: [{ cost: 3 }, { cost: 4 }] })
  const { letters } = await until('two dead letters', async () => { const d = await world.api('GET', 'dead?job=marked'); return d.letters.length === 2 && d })
  const asked = []
  await on('#/tree/marked?as=list', async page => {
    page.on('request', r => { if (/v1\/(dead|jobs\/[^/]+$)/.test(r.url())) asked.push(r.url()) })
    const mark = page.getByRole('row').filter({ hasText: 'div' }).getByRole('link', { name: '2 dead letters' })
    await mark.waitFor()
    assert.equal(await mark.textContent(), '† 2')
    assert.match(await mark.getAttribute('title'), /could not handle/)
    assert.equal(await page.locator('.dead-mark').count(), 1, 'other jobs have no mark')
    await page.getByRole('button', { name: 'Picture' }).click()
    await page.locator('[data-node="marked/div"] .dead-mark', { hasText: '† 2' }).waitFor()
    assert.equal(await page.locator('.dead-mark').count(), 1)
    assert.deepEqual(asked, [], 'the number comes with the tree')
    assert.deepEqual(await axe(page), [])
    await page.locator('.dead-mark').click()
    await page.waitForURL(url => decodeURIComponent(url.hash) === `#/dead?job=${letters[0].job}`)
    await page.locator('article').nth(1).waitFor()
    await world.api('POST', 'dead/discard', { job: 'marked', letters: [letters[0].id] })
    await page.goto(`${world.url}/#/jobs?all=true&type=map`)
    await page.getByRole('row').filter({ hasText: 'div' }).getByRole('link', { name: '1 dead letter' }).click()
    await page.locator('article').waitFor()
    await page.getByRole('article').getByRole('link', { name: 'div' }).click()
    await page.locator('.head .dead-mark', { hasText: '† 1' }).waitFor()
  })
})

const picky = 'weir: 1\nname: picky\nnodes:\n  validate: {type: map, args: {expr: "it.price + 1"}, failure: dead_letter}\ninputs: {in: validate.in}\noutputs: {out: validate.out}\n'

test('dead letters of a job that has ended cannot go back, but go to another job', async () => {
  await world.api('POST', 'graphs', { alias: 'ended', graph: picky })
  await world.api('POST', 'jobs/ended/ports/in/in/messages', { messages: [{ cost: 3 }] })
  await world.weir('send', 'ended', 'in', '--close')
  await until('it has ended', async () => (await world.api('GET', 'jobs/ended')).status === 'completed')
  await world.api('POST', 'jobs', { type: 'map', alias: 'other', args: { expr: 'it.cost' } })
  await on('#/tree/ended', async page => {
    const box = page.locator('[data-node="picky/validate"]')
    const mark = box.locator('.dead-mark', { hasText: '† 1' })
    await mark.waitFor()
    assert.ok(await mark.evaluate(el => { const b = el.getBoundingClientRect(); return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2) === el }), 'the mark is not cut off')
    await box.locator('.box-status .status').getByText('completed').waitFor()
    await page.goto(`${world.url}/#/job/ended`)
    const why = page.getByRole('region', { name: 'Why it waits' })
    await why.getByText('weir dead discard ended/validate').waitFor()
    assert.equal(await why.getByText('Open validate').getByRole('link').count(), 1)
  })
  await on('#/dead?job=ended', async page => {
    const card = page.locator('article')
    await card.getByRole('link', { name: 'ended/validate' }).waitFor()
    await card.getByText('It cannot go back: port "in" of its job is closed.').waitFor()
    await card.getByRole('button', { name: 'Requeue to another job…' }).click()
    const dialog = page.locator('dialog')
    await dialog.getByText('Start the job or graph anew').waitFor()
    await dialog.getByRole('button', { name: 'Requeue' }).click()
    await dialog.getByRole('alert').getByText('name another job').waitFor()
    await dialog.getByLabel('To another job').fill('other')
    assert.deepEqual(await axe(page), [])
    await dialog.getByRole('button', { name: 'Requeue' }).click()
    await page.getByText('No dead letters.').waitFor()
    await until('the other job has handled it', async () => (await world.api('GET', 'jobs/other/ports/out/out/messages')).messages.some(m => m.data === 3))
  })
})

test('the overview counts dead letters, and leads to where they are requeued', async () => {
  await world.api('POST', 'dead/discard', { since: '1970-01-01T00:00:00Z' })
  for (const alias of ['counted-1', 'counted-2']) {
    await world.api('POST', 'graphs', { alias, graph: 'weir: 1\nnodes:\n  div: {type: map, args: {expr: "it.price + 1"}, failure: dead_letter}\ninputs: {in: div.in}\noutputs: {out: div.out}\n' })
    await world.api('POST', `jobs/${alias}/ports/in/in/messages`, { messages: [{ cost: 3 }, { cost: 4 }, { cost: 5 }] })
  }
  await until('six dead letters', async () => (await world.api('GET', 'dead/count')).letters === 6)
  await on('#/', async page => {
    const mark = page.locator('.head a', { hasText: '† 6 dead letters' })
    await mark.waitFor()
    await page.getByRole('region', { name: 'Needs attention first' }).getByText('† 6 dead letters of 2 jobs').waitFor()
    assert.deepEqual(await axe(page), [])
    await mark.click()
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
    await page.getByRole('button', { name: 'Requeue…' }).first().waitFor()
    await world.api('POST', 'dead/discard', { since: '1970-01-01T00:00:00Z' })
    await page.getByText('No dead letters.').waitFor()
    await page.goto(`${world.url}/#/`)
    await page.getByRole('heading', { name: 'Throughput' }).waitFor()
    await mark.waitFor({ state: 'detached' })
  })
})

test('fire a trigger, pause it and resume it', async () => {
  await world.api('POST', 'triggers', { alias: 'nightly', definition: { schedule: '30 2 * * *', launch: { type: 'emit', args: { items: [1] } } } })
  await on('#/triggers', async page => {
    await page.getByRole('button', { name: 'Fire now…' }).click()
    await page.getByRole('heading', { name: 'Fire nightly now?' }).waitFor()
    await confirm(page, 'Fire now')
    await page.getByText('nightly fires').waitFor()
    await until('it has launched a tree', async () => (await world.api('GET', 'triggers/nightly')).launches === 1)
    await page.getByText('Last tree').waitFor()
    await page.getByRole('button', { name: 'Pause…' }).click()
    await confirm(page, 'Pause')
    await page.getByText('ǁ paused').waitFor()
    await page.getByRole('button', { name: 'Resume…' }).click()
    await confirm(page, 'Resume')
    await page.getByText('● schedule').waitFor()
  })
})

test('pause a queue, and resume it', () => on('#/queues', async page => {
  await page.getByRole('button', { name: 'Pause…' }).first().click()
  await page.getByRole('heading', { name: /Pause queue/ }).waitFor()
  await confirm(page, 'Pause')
  await page.getByText('ǁ paused').waitFor()
  await page.getByRole('button', { name: 'Resume…' }).click()
  await confirm(page, 'Resume')
  await until('it is not paused', async () => (await world.api('GET', 'queues')).every(q => !q.paused))
}))

test('end a job and delete it, each after a question', async () => {
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'short' })
  await on('#/job/short', async page => {
    await page.getByRole('button', { name: 'Terminate…' }).click()
    await page.keyboard.press('Escape')
    assert.notEqual((await world.api('GET', 'jobs/short')).status, 'terminated')
    await page.getByRole('button', { name: 'Terminate…' }).click()
    await confirm(page, 'Terminate')
    await page.getByRole('button', { name: 'Delete…' }).click()
    await confirm(page, 'Delete')
    await page.waitForURL(/#\/jobs/)
    await assert.rejects(world.api('GET', 'jobs/short'), /404/)
  })
})

test('the palette goes everywhere, and ? lists the keys', () => on('#/', async page => {
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.locator('[cmdk-input]').fill('dead')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('u')
  await page.getByRole('heading', { name: 'Queues', exact: true }).waitFor()
}))

test('the palette has the keyboard whenever it opens, and gives it back', () => on('#/jobs', async page => {
  await page.locator('.grid-row').nth(1).waitFor()
  const has = selector => page.evaluate(s => document.activeElement?.matches(s) ?? false, selector)
  const opened = async (how, open) => {
    await open()
    await page.locator('[cmdk-input]').waitFor()
    await until(`the input has the focus, opened ${how}`, () => has('[cmdk-input]'), 2000)
    await page.keyboard.type('queues')
    assert.equal(await page.locator('[cmdk-input]').inputValue(), 'queues', how)
  }
  const closed = async to => {
    await page.keyboard.press('Escape')
    await page.locator('[cmdk-input]').waitFor({ state: 'detached' })
    await until(`${to} has the focus again`, () => has(to), 2000)
  }
  const keys = () => page.keyboard.press('Control+k')
  await opened('from nowhere', keys)
  await closed('body')
  const field = page.locator('[data-search]')
  for (const turn of ['once', 'twice']) {
    await field.focus()
    await opened(`from a field, ${turn}`, keys)
    await keys()
    await until('the input keeps the focus', () => has('[cmdk-input]'), 2000)
    await closed('[data-search]')
  }
  await opened('by a click', () => page.getByRole('button', { name: 'Commands and keys' }).click())
  await closed('button[aria-label="Commands and keys"]')
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
  await opened('over the keys', keys)
  await closed('button[aria-label="Commands and keys"]')
}))

test('hostile names and messages are text', async () => {
  const evil = '<img src=x onerror=alert(1)>\u202Egnp.exe'
  let deep = 0
  for (let i = 0; i < 1000; i++) deep = [deep]
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'evil', labels: { x: '"><script>alert(1)</script>' } })
  await world.api('POST', 'jobs/evil/ports/out/out/messages', { messages: [evil, deep] })
  await world.api('POST', 'jobs/evil/ports/out/out/messages', { messages: ['x'.repeat(1_000_000)] }) // by itself: the log leaves out what is so large
  await on('#/job/evil', async page => {
    page.on('dialog', () => page.faults.push('a script ran'))
    await page.getByText('"><script>alert(1)</script>').waitFor()
    await page.locator('button.port', { hasText: 'out' }).click()
    await page.locator('pre', { hasText: '<img src=x onerror=alert(1)>' }).waitFor()
    await page.getByRole('button', { name: 'Show all of it' }).last().click()
    await until('all of it is shown', async () => (await page.locator('.messages pre').last().textContent()).length > 1_000_000)
    assert.equal(await page.locator('img[src=x]').count(), 0)
    await page.goto(`${world.url}/#/job/evil?origin=out.out.0`)
    await page.getByRole('heading', { name: /Where message #0/ }).waitFor()
    await page.locator('.origin code', { hasText: '<img src=x' }).waitFor()
    assert.equal(await page.locator('img[src=x]').count(), 0)
  })
})

test('axe finds nothing on any view, light and dark', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const path of ['#/', '#/jobs?all=true', '#/tree/orders', '#/tree/orders?as=list', '#/job/orders', '#/job/bad-1', '#/timeline/orders', '#/triggers', '#/queues', '#/dead']) {
      await on(path, async page => {
        await page.getByRole('heading', { level: 1 }).waitFor()
        if (path.includes('/tree/')) await page.locator('.box, .grid-row').first().waitFor()
        assert.deepEqual(await axe(page), [], `${path} ${colorScheme}`)
      }, { colorScheme })
    }
  }
})

test('first load is at most 300 kB', async () => {
  const page = await b.page(world, '#/')
  let bytes = 0
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  session.on('Network.loadingFinished', e => { bytes += e.encodedDataLength })
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.goto('about:blank') // what is still on its way to the page before is not counted
  bytes = 0
  await page.goto(`${world.url}/#/tree/orders`)
  await page.locator('[data-node="shop/ship"]').waitFor()
  await page.context().close()
  console.log(`first load of a tree: ${Math.round(bytes / 1000)} kB`)
  assert.ok(bytes > 50_000 && bytes < 300_000, `${bytes} bytes`)
})
