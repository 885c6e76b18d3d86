import { useEffect, useRef, type ReactNode } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

/** A line of a chart: its name, the variable of style.css that colors it, and its values; null where there is none. */
export interface Line { label: string; color: string; values: (number | null)[]; fill?: boolean; dash?: number[] }
export interface ChartProps { title: string; times: number[]; lines: Line[]; unit: (v: number) => string; height?: number }

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

function latest(u: uPlot): void {
  if (u.cursor.idx == null) u.setLegend({ idx: u.data[0].length - 1 })
}

function options(p: ChartProps, width: number): uPlot.Options {
  const axis: uPlot.Axis = { stroke: css('--faint'), grid: { stroke: css('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui', gap: 4 }
  return {
    width, height: p.height ?? 170, padding: [10, 20, 0, 0], legend: { live: true },
    cursor: { points: { size: 6 }, sync: { key: 'overview' }, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] } },
    axes: [{ ...axis, space: 60, size: 26, incrs: [60, 120, 300], values: '{HH}:{mm}' }, { ...axis, size: 62, values: (_, ticks) => ticks.map(t => p.unit(t)) }],
    hooks: { setCursor: [latest] }, // where nothing is pointed at, the legend tells of now
    series: [
      { label: 'At', value: (_, t) => t == null ? '–' : new Date(t * 1000).toLocaleTimeString() },
      ...p.lines.map((l): uPlot.Series => ({
        label: l.label, stroke: css(l.color), width: 1.8, points: { show: false }, ...(l.dash ? { dash: l.dash } : {}),
        ...(l.fill ? { fill: `${css(l.color)}22` } : {}), value: (_, v) => v == null ? '–' : p.unit(v),
      })),
    ],
  }
}

/** A chart of values over time. A table for those who cannot see it is the view's own affair: its tiles have the numbers. */
export default function Chart(p: ChartProps): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const now = useRef(p)
  now.current = p
  useEffect(() => {
    const el = box.current
    if (!el) return
    const data = (): uPlot.AlignedData => [now.current.times, ...now.current.lines.map(l => l.values)]
    const build = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(options(now.current, el.clientWidth), data(), el)
    }
    build()
    const size = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height: now.current.height ?? 170 }))
    size.observe(el)
    const theme = new MutationObserver(build)
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', build)
    return () => { size.disconnect(); theme.disconnect(); dark.removeEventListener('change', build); plot.current?.destroy(); plot.current = null }
  }, [])
  useEffect(() => {
    plot.current?.setData([p.times, ...p.lines.map(l => l.values)])
    if (plot.current) latest(plot.current)
  }, [p.times, p.lines])
  return <div ref={box} className="chart" role="img" aria-label={p.title} />
}
