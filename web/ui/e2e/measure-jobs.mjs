// Measures how the list of jobs scrolls: node e2e/measure-jobs.mjs [JOBS=100000]. It creates so many jobs, goes down to the last one while
// pages load, and then scrolls with the wheel for five seconds, and with keys.
import { browser, World } from './harness.mjs'

const jobs = Number(process.argv[2] ?? 100_000)
const world = await World.start()
const b = await browser()
const quantile = (all, q) => [...all].sort((x, y) => x - y)[Math.min(all.length - 1, Math.floor(all.length * q))] ?? 0
try {
  for (let made = 0; made < jobs;) {
    const n = Math.min(1000, jobs - made)
    const lines = Array.from({ length: n }, (_, i) => JSON.stringify({ type: 'map', args: { expr: 'it' }, labels: { n: String(made + i) } })).join('\n')
    const answer = await fetch(`${world.url}/v1/jobs:batch`, { method: 'POST', headers: { 'Content-Type': 'application/x-ndjson' }, body: lines })
    if (!answer.ok) throw new Error(await answer.text())
    await answer.text()
    made += n
  }
  const page = await b.page(world, '#/jobs')
  await page.locator('.grid-row').nth(5).waitFor()
  const began = Date.now()
  await page.evaluate(() => { globalThis.longTasks = []; new PerformanceObserver(l => { for (const e of l.getEntries()) globalThis.longTasks.push(e.duration) }).observe({ type: 'longtask' }) })
  const loaded = () => page.evaluate(() => Number(document.querySelector('.grid').scrollHeight) / 44)
  for (;;) {
    await page.evaluate(() => { const g = document.querySelector('.grid'); g.scrollTop = g.scrollHeight })
    if (!await page.locator('.grid-foot').count()) break
    await page.waitForTimeout(20)
  }
  console.log(`${Math.round(await loaded())} rows loaded in ${((Date.now() - began) / 1000).toFixed(1)} s; heap ${Math.round(await page.evaluate(() => performance.memory.usedJSHeapSize) / 1e6)} MB; DOM ${await page.evaluate(() => document.querySelectorAll('*').length)} elements`)
  await page.evaluate(() => { document.querySelector('.grid').scrollTop = 0; globalThis.longTasks.length = 0; globalThis.frames = []; let last = performance.now(); const step = now => { globalThis.frames.push(now - last); last = now; requestAnimationFrame(step) }; requestAnimationFrame(step) })
  await page.mouse.move(640, 600)
  for (const end = Date.now() + 5000; Date.now() < end;) { await page.mouse.wheel(0, 700); await page.waitForTimeout(16) }
  const frames = await page.evaluate(() => globalThis.frames)
  const tasks = await page.evaluate(() => globalThis.longTasks)
  console.log(`scrolling: ${Math.round(frames.length / (frames.reduce((a, x) => a + x, 0) / 1000))} frames/s, p95 ${quantile(frames, 0.95).toFixed(0)} ms between frames; ${tasks.length} long tasks, the longest ${Math.round(Math.max(0, ...tasks))} ms`)
  await page.evaluate(() => { globalThis.keys = []; new PerformanceObserver(l => { for (const e of l.getEntries()) if (e.name === 'keydown') globalThis.keys.push(e.duration) }).observe({ type: 'event', durationThreshold: 16 }) })
  await page.getByRole('grid').focus()
  for (let i = 0; i < 60; i++) { await page.keyboard.press('ArrowDown'); await page.waitForTimeout(60) }
  const keys = await page.evaluate(() => globalThis.keys)
  console.log(`keys: p95 ${quantile(keys, 0.95)} ms to the next paint, of ${keys.length} that took 16 ms or more of 60`)
} finally {
  await b.close()
  await world.stop()
}
