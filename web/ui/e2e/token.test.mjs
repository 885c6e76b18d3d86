// The page with tokens: it asks for one once, and one that may only look sees no acts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axe, browser, faults, until, World } from './harness.mjs'

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
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'watched', in: '1h' }, admin)
  await world.api('POST', 'jobs/watched/ports/in/in/messages', { messages: [7] }, admin)
  const page = await b.page(world, '#/job/watched')
  const urls = []
  page.on('request', r => urls.push(r.url()))
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.locator('.why .first').waitFor()
  await page.getByText('read only').waitFor()
  for (const path of ['#/job/watched', '#/', '#/jobs', '#/triggers', '#/queues', '#/dead', '#/tree/watched', '#/start', '#/admin', '#/admin?as=audit', '#/patch/watched', '#/timeline/watched']) {
    await page.goto(`${world.url}/${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^(?!Open a file).*…$|^Send$|^Start$|^Make/ }).count(), 0, path)
  }
  await page.goto(`${world.url}/#/job/watched`)
  await page.getByRole('button', { name: '← in' }).click()
  await page.locator('.messages pre', { hasText: '7' }).waitFor()
  assert.equal(await page.locator('.port-panel').getByRole('button', { name: /Take|Close|Send/ }).count(), 0, 'it looks into a port, and changes nothing there')
  await page.getByRole('link', { name: 'Where it came from' }).click()
  await page.locator('.origin > li', { hasText: 'ops sent to' }).waitFor()
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
  await page.waitForTimeout(4000) // the page asks again meanwhile, and leaves what is typed as it is
  assert.equal(await page.getByLabel('Token').inputValue(), token)
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.getByRole('button', { name: 'Terminate…' }).waitFor()
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('an admin makes a token, sees what was done with it, and revokes it', async () => {
  const admin = (await world.weir('token', 'create', '--role', 'admin', '--name', 'root')).split('\n')[0].trim()
  const page = await b.page(world, '#/admin')
  await page.getByLabel('Token').fill(admin)
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.getByRole('button', { name: 'Make a token…' }).click()
  await page.getByLabel('Who holds it').fill('ci')
  await page.getByLabel(/operate starts/).check()
  await page.getByLabel('Valid for').fill('someday')
  await page.getByRole('button', { name: 'Make it' }).click()
  await page.getByText(/"someday" is no time/).waitFor()
  await page.getByLabel('Valid for').fill('12h')
  await page.getByRole('button', { name: 'Make it' }).click()
  const text = (await page.getByLabel('The token', { exact: true }).textContent()).trim()
  await page.getByRole('button', { name: 'I have it' }).click()
  assert.ok(!(await page.content()).includes(text), 'it is shown once')
  await world.api('POST', 'jobs', { type: 'map', args: { expr: 'it' }, alias: 'made-by-ci' }, text)
  assert.deepEqual(await axe(page), [])
  await page.getByRole('link', { name: 'Audit' }).click()
  await page.getByLabel('By', { exact: true }).fill('ci')
  await page.keyboard.press('Enter')
  await page.getByRole('row').filter({ hasText: 'create-job' }).getByText('ci').waitFor()
  assert.equal(await page.getByRole('row').filter({ hasText: 'create-token' }).count(), 0, 'it is filtered')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('link', { name: 'Tokens' }).click()
  await page.getByRole('button', { name: 'Revoke the token of ci…' }).click()
  await page.locator('dialog button', { hasText: 'Revoke' }).last().click()
  await page.getByText('The token of ci is revoked').waitFor()
  await until('it is refused', () => world.api('GET', 'me', undefined, text).then(() => false, e => /401/.test(e.message)))
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})
