// The colors of the page for what is drawn on a canvas, read once for each theme.

const names = ['--bg', '--card', '--line', '--text', '--faint', '--accent', '--frame', '--ok', '--warn', '--bad', '--run', '--idle', '--wire'] as const
export type Color = typeof names[number]

let known: Record<Color, string> | null = null
const listeners = new Set<() => void>()

function forget(): void {
  known = null
  for (const fn of listeners) fn()
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', forget)
new MutationObserver(forget).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })

export function palette(): Record<Color, string> {
  if (known) return known
  const style = getComputedStyle(document.documentElement)
  known = Object.fromEntries(names.map(n => [n, style.getPropertyValue(n).trim()])) as Record<Color, string>
  return known
}

export function onPalette(fn: () => void): () => void {
  listeners.add(fn)
  return () => { listeners.delete(fn) }
}

const tones: Record<string, Color> = { running: '--run', queued: '--accent', failed: '--bad', completed: '--ok', suspended: '--warn', scheduled: '--accent', waiting: '--accent' }

export const tone = (status: string, other: Color): Color => tones[status] ?? other

/** How full a bounded wire is, as a color. */
export function fill(waiting: number, limit: number): Color {
  if (limit <= 0 || waiting === 0) return '--wire'
  const share = waiting / limit
  if (share > 0.85) return '--bad'
  return share > 0.6 ? '--warn' : '--ok'
}

const widths = new Map<string, number>()

/** How wide a text is; the font must be that of g. */
export function width(g: CanvasRenderingContext2D, text: string): number {
  const key = g.font + text
  let w = widths.get(key)
  if (w === undefined) {
    if (widths.size > 5000) widths.clear()
    widths.set(key, w = g.measureText(text).width)
  }
  return w
}

const cut = new Map<string, string>()

/** As much of a text as has place, with … behind it if that is not all. */
export function fitting(g: CanvasRenderingContext2D, text: string, most: number): string {
  const key = `${most} ${g.font}${text}`
  let s = cut.get(key)
  if (s === undefined) {
    if (cut.size > 20_000) cut.clear()
    s = text.slice(0, 400)
    if (g.measureText(s).width > most) {
      let [low, high] = [0, s.length]
      while (low < high) {
        const middle = (low + high + 1) >> 1
        if (g.measureText(s.slice(0, middle) + '…').width <= most) low = middle
        else high = middle - 1
      }
      s = s.slice(0, low) + '…'
    }
    cut.set(key, s)
  }
  return s
}
