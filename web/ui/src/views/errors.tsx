import type { ReactNode } from 'react'
import { num, span } from '../format'
import { Time } from '../parts/basics'
import { Words } from '../parts/words'
import type { Failure } from '../types'
import { originLink, Stack, TraceLink } from './run'

/** Errors with the same text, the latest first; what happened last comes first. */
function folded(errors: Failure[]): Failure[][] {
  const alike = new Map<string, Failure[]>()
  for (const f of [...errors].sort((a, b) => Date.parse(b.at) - Date.parse(a.at))) {
    const some = alike.get(f.message)
    if (some) some.push(f)
    else alike.set(f.message, [f])
  }
  return [...alike.values()]
}

/** When something failed, in which run, and what it had read. */
function Circumstances({ f, job }: { f: Failure; job: string }): ReactNode {
  return (
    <>
      <Time at={f.at} />{f.step !== undefined && <> · run {num(f.step)}</>}{f.try ? <> · try {num(f.try)}</> : null}
      {f.began && Date.parse(f.at) > Date.parse(f.began) && <> · after {span(Date.parse(f.at) - Date.parse(f.began))}</>}
      {f.port && <> · it read <a href={originLink(job, 'in', f.port, f.number ?? 0)}>#{num(f.number ?? 0)} of <bdi>{f.port}</bdi></a></>}
      {f.trace && <> · <TraceLink id={f.trace} /></>}
    </>
  )
}

/** The errors that are recorded of a job, equal ones as one, with what it read then, and where in the code it was. */
export function Errors({ job, errors }: { job: string; errors: Failure[] }): ReactNode {
  if (errors.length === 0) return null
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">{num(errors.length)} {errors.length === 1 ? 'error' : 'errors'}</h2>
      <ul className="list">
        {folded(errors).map(all => {
          const [f] = all
          return f && (
            <li key={f.message} className="block">
              <p className="faint">{all.length > 1 && <><b>{num(all.length)} times</b>, the first <Time at={all.at(-1)?.at} />, the last </>}<Circumstances f={f} job={job} /></p>
              <pre className="error" tabIndex={0} aria-label="Error"><Words text={f.message.slice(0, 20_000)} raw /></pre>
              {f.stack && <Stack text={f.stack} />}
              {all.length > 1 && <details className="stack"><summary>Each of them</summary><ol className="times">{all.map((one, i) => <li key={`${one.at} ${i}`} className="faint"><Circumstances f={one} job={job} /></li>)}</ol></details>}
            </li>
          )
        })}
      </ul>
    </section>
  )
}
