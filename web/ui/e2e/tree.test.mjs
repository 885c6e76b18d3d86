// The live tree and what hangs on it, in a browser: node --test e2e/
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

/** The picture of a tree as the server sends it. */
async function picture(job) {
  const answer = await fetch(`${world.url}/v1/jobs/${job}/live`)
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('\n\n')) text += (await reader.read()).value
  await reader.cancel()
  return JSON.parse(text.slice(text.indexOf('data: ') + 6))
}

/** Where in the browser the middle of a wire is. */
async function middle(page, p, from, to) {
  const e = p.edges.from.findIndex((a, i) => p.nodes.id[a] === from && p.nodes.id[p.edges.to[i]] === to)
  assert.ok(e >= 0, `a wire from ${from} to ${to}`)
  const [x1, y1, x2] = p.edges.points[e]
  const [a, , , d, dx, dy] = await page.locator('.react-flow__viewport').evaluate(el => getComputedStyle(el).transform.match(/[-.\d]+/g).map(Number))
  const box = await page.locator('.react-flow').boundingBox()
  return [box.x + dx + a * (x1 + x2) / 2, box.y + dy + d * y1]
}

test('a wire tells what moves on it, to the mouse and to keys', () => on('#/tree/orders', async page => {
  await page.locator('[data-node="shop/pay/bank"]').waitFor()
  const p = await picture('orders')
  const at = await middle(page, p, 'shop/pay/check', 'shop/pay/bank')
  await page.mouse.move(at[0] + 1, at[1])
  await page.mouse.move(...at)
  await page.locator('.tip', { hasText: /check\.out → bank\.in: \d+ of 20 wait \(\d+ % full\)/ }).waitFor()
  await page.mouse.click(...at)
  const wire = page.getByRole('complementary', { name: 'Selected wire' })
  await wire.getByText(/of 20 \(\d+ %\)/).waitFor()
  const passed = async () => Number((await wire.locator('dd').nth(1).textContent()).replaceAll(',', ''))
  const first = await passed()
  await until('it goes on', async () => await passed() > first)
  await wire.getByRole('button', { name: 'bank.in' }).click()
  await page.locator('.box.selected[data-node="shop/pay/bank"]').waitFor()
  await page.locator('.stage').focus()
  await page.keyboard.press('e')
  await wire.getByRole('button', { name: 'bank.in' }).waitFor()
  await page.keyboard.press('Escape')
  await wire.waitFor({ state: 'detached' })
}))

test('a selected box stays where it is, and is called the same in its card', () => on('#/tree/orders', async page => {
  for (const node of ['shop/pay/check', 'shop/parcel']) {
    const box = page.locator(`.box[data-node="${node}"]`)
    await box.waitFor()
    const place = () => box.evaluate(el => [el, el.querySelector('.box-name'), el.querySelector('.pin')].flatMap(e => [e.offsetLeft, e.offsetTop, e.offsetWidth, e.offsetHeight]))
    const before = await place()
    await page.locator('[data-search]').fill(node)
    await page.locator(`.box.selected[data-node="${node}"]`).waitFor()
    assert.deepEqual(await place(), before)
  }
  const card = page.locator('aside.selected')
  await until('one word for how it stands', async () => {
    const word = el => el.locator('.status, .box-status .faint, [title="suspended until something comes"]').first().textContent()
    return await word(card) === await word(page.locator('.box.selected'))
  })
}))

test('the small map goes where it is pressed', () => on('#/tree/orders', async page => {
  await page.locator('[data-node="shop/pay/bank"]').waitFor()
  await page.locator('.minimap').waitFor({ state: 'hidden' })
  const view = () => page.locator('.react-flow__viewport').evaluate(el => el.style.transform)
  const still = () => until('the picture stands still', async () => {
    const before = await view()
    await page.waitForTimeout(300)
    return before === await view()
  })
  await still() // it is fitted when its boxes are measured
  for (let i = 0; i < 4; i++) await page.getByRole('button', { name: 'Nearer' }).click()
  const map = page.locator('.minimap')
  await map.waitFor()
  const part = () => map.locator('.part').evaluate(el => el.style.transform)
  await still()
  const before = await part()
  const box = await map.boundingBox()
  await page.mouse.click(box.x + box.width - 20, box.y + box.height / 2)
  await until('the part moves', async () => await part() !== before)
}))

test('follow goes along with what is selected', () => on('#/tree/orders?follow=1', async page => {
  await page.locator('[data-search]').fill('shop/label')
  await page.locator('aside.selected', { hasText: 'label' }).waitFor()
  await page.locator('.box.selected[data-node="shop/label"]').waitFor()
  const box = await page.locator('.react-flow').boundingBox()
  for (const [dx, dy] of [[-600, 0], [-600, 0], [-600, 0]]) { // it is pulled away, and comes back
    await page.mouse.move(box.x + 900, box.y + 60)
    await page.mouse.down()
    await page.mouse.move(box.x + 900 + dx, box.y + 60 + dy, { steps: 3 })
    await page.mouse.up()
  }
  await until('it is in the middle again', async () => {
    const at = await page.locator('[data-node="shop/label"]').boundingBox()
    return at && Math.abs(at.x + at.width / 2 - box.x - box.width / 2) < 100
  })
}))

test('many children are one box, which opens and folds', async () => {
  await world.api('POST', 'graphs', { alias: 'wide', graph: 'weir: 1\nname: wide\nnodes:\n  src: {type: emit, args: {items: [1,2,3,4,5,6]}}\n  all: {type: each, args: {type: delay, args: {by: 1h}}}\nedges:\n  - src.out -> all.in\noutputs: {out: all.out}\n' })
  await on('#/tree/wide', async page => {
    const folded = page.locator('.box', { hasText: 'each_item ×' })
    await folded.getByText(/4 suspended/).waitFor()
    const canvas = await page.locator('.canvas').boundingBox()
    await page.mouse.move(canvas.x + 40, canvas.y + 40) // what the user has moved stays in place
    await page.mouse.down()
    await page.mouse.move(canvas.x + 90, canvas.y + 70, { steps: 3 })
    await page.mouse.up()
    const box = page.locator('.box[data-node="wide/all"]')
    const before = await box.boundingBox()
    await page.getByRole('button', { name: 'Open each_item ×' }).click()
    await page.locator('[data-node="wide/all/item_0"]').waitFor()
    await until('the box that has them is where it was', async () => {
      const at = await box.boundingBox()
      return Math.abs(at.x - before.x) < 2 && Math.abs(at.y - before.y) < 2
    })
    await page.getByRole('button', { name: 'All of it' }).click()
    await page.locator('[data-node="wide/all/item_3"]').waitFor()
    await box.click()
    await page.locator('aside.selected').getByRole('button', { name: 'Fold it' }).click()
    await page.locator('[data-node="wide/all/item_3"]').waitFor({ state: 'detached' })
    await page.locator('.stage').focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('o')
    assert.equal(await page.locator('aside.selected').count(), 1, 'what is selected stays so')
  })
})

test('all of it stays in view while the tree grows, until who looks moves the picture', async () => {
  await world.api('POST', 'graphs', { alias: 'grows', graph: 'weir: 1\nname: grows\nnodes:\n  all: {type: each, args: {type: delay, args: {by: 1h}}}\ninputs: {in: all.in}\noutputs: {out: all.out}\n' })
  const grow = () => world.api('POST', 'jobs/grows/ports/in/in/messages', { messages: [1] })
  await on('#/tree/grows', async page => {
    await page.locator('[data-node="grows/all"]').waitFor()
    const canvas = await page.locator('.canvas').boundingBox()
    const inView = async node => {
      const box = page.locator(`[data-node="${node}"]`) // far out of view it is no element
      const at = await box.count() && await box.boundingBox()
      return at && at.x >= canvas.x && at.x + at.width <= canvas.x + canvas.width && at.y >= canvas.y && at.y + at.height <= canvas.y + canvas.height
    }
    const pull = async far => {
      await page.mouse.move(canvas.x + 900, canvas.y + 60)
      await page.mouse.down()
      await page.mouse.move(canvas.x + 900 - far, canvas.y + 60, { steps: 4 })
      await page.mouse.up()
    }
    await pull(800)
    await until('it is pulled away', async () => !await inView('grows/all'))
    await page.getByRole('button', { name: 'All of it' }).click()
    await grow()
    await page.locator('[data-node="grows/all/item_0"]').waitFor()
    await until('all of it, with the new job', async () => await inView('grows/all') && await inView('grows/all/item_0'))
    await page.getByRole('button', { name: 'Nearer' }).click()
    await pull(300)
    await until('it is pulled away', async () => !await inView('grows/all'))
    const item = page.locator('[data-node="grows/all/item_0"]')
    const own = await item.boundingBox()
    await grow()
    await until('the page has another job', async () => {
      const p = await picture('grows')
      return p.nodes.id.includes('grows/all/item_1') && await page.getByText(`${p.jobs} jobs`, { exact: true }).count()
    })
    const now = await item.boundingBox()
    assert.ok(Math.abs(now.x - own.x) < 2 && Math.abs(now.y - own.y) < 2, `a box in view was at ${own.x}, ${own.y} and is at ${now.x}, ${now.y}`)
  })
})

test('a tree of 2,000 jobs is few elements, as picture and as list', async () => {
  const lane = Array.from({ length: 19 }, (_, i) => `      s${i}: {type: map, args: {expr: it}}`).join('\n')
  const chain = Array.from({ length: 19 }, (_, i) => i === 0 ? 's0.out' : i === 18 ? 's18.in' : `s${i}.in.out`).join(' -> ')
  const lanes = Array.from({ length: 100 }, (_, i) => `  l${i}: {type: lane}`).join('\n')
  await world.api('POST', 'graphs', { alias: 'large', graph: `weir: 1\nname: large\nnodes:\n${lanes}\ngraphs:\n  lane:\n    nodes:\n${lane}\n    edges:\n      - ${chain}\n    inputs: {in: s0.in}\n    outputs: {out: s18.out}\n` })
  await on('#/tree/large', async page => {
    await page.getByText('2,001 jobs').waitFor()
    await page.locator('canvas[data-far=true]').waitFor()
    const count = () => page.evaluate(() => document.querySelectorAll('*').length)
    assert.ok(await count() < 400, `${await count()} elements`)
    const white = await page.locator('canvas').first().evaluate(el => new Set(el.getContext('2d').getImageData(0, 0, el.width, el.height).data).size)
    assert.ok(white > 3, 'something is drawn')
    await page.locator('.stage').focus()
    await page.keyboard.press('ArrowRight')
    await page.locator('aside.selected').waitFor()
    await page.locator('[data-search]').fill('l42/s7')
    await page.locator('.box.selected[data-node="large/l42/s7"]').waitFor()
    assert.ok(await count() < 3500, `${await count()} elements`)
    await page.locator('[data-search]').fill('')
    await page.getByRole('button', { name: 'List' }).click()
    await page.locator('.grid-row').nth(5).waitFor()
    await page.locator('.grid').focus()
    await page.keyboard.press('End')
    await page.getByRole('row').filter({ hasText: 's18' }).last().waitFor()
    assert.ok(await count() < 1500, `${await count()} elements`)
  })
})

const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }

test('on a phone the picture begins where it can be read, and fingers move and enlarge it within its box', () => on('#/tree/orders', async page => {
  await page.locator('[data-node="shop/clock"]').waitFor()
  const within = async () => {
    const at = await page.locator('.canvas').boundingBox()
    const boxes = await page.locator('.box').evaluateAll(all => all.map(el => { const r = el.getBoundingClientRect(); return [el.dataset.node, r.left, r.right, r.top, r.bottom] }))
    return boxes.filter(([, l, r, t, u]) => l < at.x || r > at.x + at.width || t < at.y || u > at.y + at.height).map(([id]) => id)
  }
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= innerWidth)
  const size = (node, what) => page.locator(`[data-node="${node}"] ${what}`).first().evaluate(el => parseFloat(getComputedStyle(el).fontSize) * el.getBoundingClientRect().height / el.offsetHeight)
  await until('its first job is in view', async () => !(await within()).includes('shop/clock')) // the picture settles first
  for (const what of ['.box-name', '.box-type', '.box-status']) await until(`${what} can be read`, async () => await size('shop/clock', what) >= 9)
  await page.locator('.minimap:not(.whole)').waitFor()
  assert.ok(await fits(), 'nothing is wider than the phone')
  const cdp = await page.context().newCDPSession(page)
  const view = () => page.locator('.react-flow__viewport').evaluate(el => getComputedStyle(el).transform.match(/[-.\d]+/g).map(Number))
  const touch = (type, ...points) => cdp.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) })
  const first = await view()
  await touch('touchStart', [150, 450], [250, 450])
  for (let d = 10; d <= 80; d += 10) await touch('touchMove', [150 - d, 450], [250 + d, 450])
  await touch('touchEnd')
  await until('two fingers enlarge it', async () => (await view())[0] > 1.5 * first[0])
  const large = await view()
  await touch('touchStart', [300, 450])
  for (let d = 10; d <= 120; d += 10) await touch('touchMove', [300 - d, 450 - d / 2])
  await touch('touchEnd')
  await until('a finger moves it', async () => { const v = await view(); return v[4] < large[4] - 60 && v[5] < large[5] - 30 })
  assert.equal(await page.evaluate(() => document.querySelector('main').scrollTop + scrollY), 0, 'the page stays where it is')
  assert.ok(await fits(), 'nothing is wider than the phone')
  await page.getByRole('button', { name: 'All of it' }).tap()
  await until('all of it is in view', async () => (await within()).length === 0)
  assert.ok(await page.locator('[data-node="shop/orders"] .box-name').evaluate(el => el.getBoundingClientRect().height / el.textContent.length > 1), 'a box has its name')
}, phone))

test('on a phone the picture of a graph that is started is fitted, and has its full size within its box', () => on('#/start', async page => {
  const chain = Array.from({ length: 9 }, (_, i) => `  step_${i}: {type: map, args: {expr: it}}`).join('\n')
  await page.getByLabel('Graph', { exact: true }).fill(`weir: 1\nname: long\nnodes:\n${chain}\nedges:\n  - step_0.out -> ${Array.from({ length: 7 }, (_, i) => `step_${i + 1}.in.out`).join(' -> ')} -> step_8.in\ninputs: {in: step_0.in}\n`)
  const picture = page.locator('.graph-picture')
  await picture.locator('img').waitFor()
  const room = () => picture.evaluate(el => [el.scrollWidth - el.clientWidth, document.querySelector('main').scrollWidth - innerWidth])
  assert.deepEqual(await room(), [0, 0], 'fitted')
  await page.getByRole('button', { name: 'Full size' }).tap()
  await until('it is larger than its box', async () => (await room())[0] > 300)
  assert.equal((await room())[1], 0, 'and the page is no wider')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'All of it' }).tap()
  await until('fitted again', async () => (await room())[0] === 0)
}, phone))

test('axe finds nothing in the tree with a wire selected, on a phone, light and dark', async () => {
  for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { viewport: { width: 390, height: 800 } }]) {
    await on('#/tree/orders', async page => {
      await page.locator('.box').first().waitFor()
      await page.locator('.stage').focus()
      await page.keyboard.press('e')
      await page.locator('aside.selected').waitFor()
      assert.deepEqual(await axe(page), [], JSON.stringify(options))
    }, options)
  }
})
