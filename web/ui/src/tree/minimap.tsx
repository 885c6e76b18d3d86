import { useEffect, useRef, type PointerEvent as Point, type ReactNode } from 'react'
import { pen } from './paint'
import { seen, type Geometry, type View } from './geometry'
import type { LiveTree } from './live'
import { onPalette, palette, tone, type Color } from './palette'

const wide = 190
const high = 120
const every = 1000

interface Props { tree: LiveTree; geo: Geometry; watch: (fn: (v: View) => void) => () => void; to: (x: number, y: number) => void }

/** The whole tree in a corner, with the part that is in view: press or pull to go there. Keys do the same on the picture. */
export function Minimap({ tree, geo, watch, to }: Props): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null)
  const part = useRef<HTMLDivElement>(null)
  const again = useRef(() => {})
  const { w, h } = geo.p
  const zoom = Math.min((wide - 8) / Math.max(1, w), (high - 8) / Math.max(1, h))
  const x = (wide - w * zoom) / 2
  const y = (high - h * zoom) / 2
  useEffect(() => {
    let due = 0
    let timer = 0
    const paint = (): void => {
      timer = 0
      const began = performance.now()
      if (part.current?.parentElement?.classList.contains('whole')) return // it is not shown
      const g = canvas.current && pen(canvas.current, { x, y, zoom, w: wide, h: high })
      if (!g) return
      const n = geo.p.nodes
      const looks = new Map<Color, number[]>()
      for (let i = 0; i < n.x.length; i++) {
        const look = n.frame[i] ? '--frame' : tone(tree.lookOf(i), '--idle')
        const some = looks.get(look)
        if (some) some.push(i)
        else looks.set(look, [i])
      }
      const least = 1.5 / zoom
      const c = palette()
      for (const look of [...looks.keys()].sort((a, b) => Number(b === '--frame') - Number(a === '--frame'))) {
        g.beginPath()
        for (const i of looks.get(look) ?? []) g.rect(n.x[i] ?? 0, n.y[i] ?? 0, Math.max(least, n.w[i] ?? 0), Math.max(least, n.h[i] ?? 0))
        g.fillStyle = c[look]
        g.fill()
      }
      const end = performance.now()
      due = end + Math.max(every, 20 * (end - began))
    }
    const later = (): void => { if (!timer) timer = window.setTimeout(paint, Math.max(0, due - performance.now())) }
    again.current = later
    paint()
    const ends = [tree.subscribe(later), onPalette(paint)]
    return () => { clearTimeout(timer); for (const end of ends) end() }
  }, [tree, geo, x, y, zoom])
  useEffect(() => watch(v => {
    const el = part.current
    if (!el) return
    const [left, top, right, bottom] = seen(v)
    const [a, b] = [Math.max(0, x + left * zoom), Math.max(0, y + top * zoom)]
    el.style.transform = `translate(${a}px, ${b}px)`
    el.style.width = `${Math.max(4, Math.min(wide, x + right * zoom) - a)}px`
    el.style.height = `${Math.max(4, Math.min(high, y + bottom * zoom) - b)}px`
    const whole = left <= 0 && top <= 0 && right >= w && bottom >= h
    const shownAnew = !whole && el.parentElement?.classList.contains('whole')
    el.parentElement?.classList.toggle('whole', whole)
    if (shownAnew) again.current()
  }), [watch, x, y, zoom, w, h])
  const pull = (e: Point<HTMLDivElement>): void => {
    if (!e.buttons) return
    const at = e.currentTarget.getBoundingClientRect()
    to((e.clientX - at.left - x) / zoom, (e.clientY - at.top - y) / zoom)
  }
  return (
    <div className="minimap" aria-hidden="true" onPointerDown={e => { e.currentTarget.setPointerCapture(e.pointerId); pull(e) }} onPointerMove={pull}>
      <canvas ref={canvas} />
      <div className="part" ref={part} />
    </div>
  )
}
