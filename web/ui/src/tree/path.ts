import type { LogLine, Picture } from '../types'

const deepest = 12 // frames that one hop may pass

/** The wires that lead from one box to another over the edges of frames only, in which graphs are drawn. */
function hop(p: Picture, out: number[][], from: number, to: number): number[] {
  const came = new Map<number, number>([[from, -1]])
  let reached = [from]
  for (let depth = 0; depth < deepest && reached.length > 0; depth++) {
    const next: number[] = []
    for (const node of reached) {
      for (const e of out[node] ?? []) {
        const end = p.edges.to[e] ?? -1
        if (p.edges.spawn[e] || came.has(end)) continue
        came.set(end, e)
        if (end === to) {
          const wires: number[] = []
          for (let at = to; at !== from;) {
            const by = came.get(at) ?? -1
            wires.push(by)
            at = p.edges.from[by] ?? from
          }
          return wires
        }
        if (p.nodes.frame[end]) next.push(end)
      }
    }
    reached = next
  }
  return []
}

/** The wires of a picture that the messages of a path passed: from each job of it to where what it sent went, if that is on the path, too. */
export function wiresOf(p: Picture, entries: LogLine[], last: string): number[] {
  const out: number[][] = p.nodes.id.map(() => [])
  p.edges.from.forEach((n, e) => out[n]?.push(e))
  const node = new Map<string, number>()
  p.nodes.job.forEach((id, i) => { if (id) node.set(id, i) })
  const ends = new Map<string, number>() // the inputs and outputs of the graph that is drawn
  p.nodes.kind.forEach((kind, i) => { if (kind === 2 || kind === 3) ends.set(`${kind === 2 ? 'in' : 'out'} ${p.nodes.label[i] ?? ''}`, i) })
  const at = (job: string, dir: string, port: string): number | undefined => job === p.root ? ends.get(`${dir} ${port}`) ?? node.get(job) : node.get(job)
  const on = new Set([last, ...entries.map(e => e.job)])
  const wires = new Set<number>()
  const seen = new Set<string>()
  for (const e of entries) {
    const wrote = e.run?.write?.[0]
    for (const m of e.run?.sent ?? []) {
      const from = at(e.job, wrote?.dir ?? '', wrote?.port ?? '')
      const to = at(m.job, m.dir, m.port)
      const key = `${from ?? ''} ${to ?? ''}`
      if (seen.has(key) || !on.has(m.job) || from === undefined || to === undefined || from === to) continue
      seen.add(key)
      for (const w of hop(p, out, from, to)) wires.add(w)
    }
  }
  return [...wires]
}
