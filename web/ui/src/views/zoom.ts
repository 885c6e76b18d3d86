import { useEffect, useRef, useState, type PointerEvent as Point } from 'react'

/** A part of a timeline, in milliseconds. */
export interface Range { from: number; to: number }

const least = 2 // ms: less has nothing to tell apart

/** A range within another one, as long as it was if that has place. */
function within(r: Range, all: Range): Range {
  const length = Math.min(Math.max(least, r.to - r.from), all.to - all.from)
  const from = Math.max(all.from, Math.min(r.from, all.to - length))
  return { from, to: from + length }
}

export interface Zoom {
  /** What is in view, and what of it is being marked. */
  view: Range; marked: Range | null; zoomed: boolean
  nearer: (around?: number) => void; farther: (around?: number) => void; all: () => void
  /** Moves the view to what is out of it. */
  show: (r: Range) => void
  /** For the element with the lanes, in which `line` finds one that is as wide as the time. */
  pull: { onPointerDown: (e: Point) => void; onPointerMove: (e: Point) => void; onPointerUp: () => void; onPointerLeave: () => void; onPointerCancel: () => void }
}

/** The part of a timeline that is in view: all of it, or what was marked with a pointer or come nearer to. */
export function useZoom(whole: Range, line: string, onZoom?: () => void): Zoom {
  const [range, setRange] = useState<Range | null>(null)
  const [marked, setMarked] = useState<Range | null>(null)
  const start = useRef<number | null>(null)
  const gone = range !== null && (range.to < whole.from || range.from > whole.to)
  useEffect(() => { if (gone) setRange(null) }, [gone]) // another page of the log
  const view = range && !gone ? within(range, whole) : whole
  const to = (r: Range | null): void => { setRange(r && r.to - r.from < whole.to - whole.from ? within(r, whole) : null); if (r) onZoom?.() }
  const by = (factor: number, around: number): void => {
    const half = (view.to - view.from) * factor / 2
    to({ from: around - half, to: around + half })
  }
  const at = (e: Point): number => {
    const box = e.currentTarget.querySelector(line)?.getBoundingClientRect()
    const part = box && box.width > 0 ? (e.clientX - box.left) / box.width : 0
    return view.from + Math.max(0, Math.min(1, part)) * (view.to - view.from)
  }
  const drop = (): void => { start.current = null; if (marked) { setMarked(null); to(marked) } }
  const middle = (view.from + view.to) / 2
  return {
    view, marked, zoomed: view !== whole,
    nearer: (around = middle) => by(0.5, around), farther: (around = middle) => by(2, around), all: () => to(null),
    show: r => { if (view !== whole && (r.to < view.from || r.from > view.to)) to({ from: r.to - (view.to - view.from) / 2, to: r.to + (view.to - view.from) / 2 }) },
    pull: {
      onPointerDown: e => { if (e.button === 0 && e.pointerType !== 'touch' && e.target instanceof Element && e.target.closest(line)) start.current = at(e) },
      onPointerMove: e => {
        if (start.current === null) return
        if (e.buttons === 0) { start.current = null; setMarked(null); return }
        const [a, b] = [start.current, at(e)]
        if (marked || Math.abs(b - a) > (view.to - view.from) / 100) setMarked({ from: Math.min(a, b), to: Math.max(a, b) })
      },
      onPointerUp: drop, onPointerLeave: drop,
      onPointerCancel: () => { start.current = null; setMarked(null) },
    },
  }
}
