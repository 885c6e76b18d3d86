import type { ReactNode } from 'react'
import { num, span } from '../format'
import { Time } from '../parts/basics'
import type { Failure } from '../types'
import { originLink, Stack, TraceLink } from './run'

/** The errors that are recorded of a job, the latest first, with what it read then, and where in the code it was. */
export function Errors({ job, errors }: { job: string; errors: Failure[] }): ReactNode {
  if (errors.length === 0) return null
  const all = [...errors].sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">{num(all.length)} {all.length === 1 ? 'error' : 'errors'}</h2>
      <ul className="list">
        {all.map((f, i) => (
          <li key={`${f.at} ${i}`} className="block">
            <p className="faint">
              <Time at={f.at} />{f.step !== undefined && <> · run {num(f.step)}</>}{f.try ? <> · try {num(f.try)}</> : null}
              {f.began && Date.parse(f.at) > Date.parse(f.began) && <> · after {span(Date.parse(f.at) - Date.parse(f.began))}</>}
              {f.port && <> · it read <a href={originLink(job, 'in', f.port, f.number ?? 0)}>#{num(f.number ?? 0)} of <bdi>{f.port}</bdi></a></>}
              {f.trace && <> · <TraceLink id={f.trace} /></>}
            </p>
            <pre className="error" tabIndex={0} aria-label="Error">{f.message.slice(0, 20_000)}</pre>
            {f.stack && <Stack text={f.stack} />}
          </li>
        ))}
      </ul>
    </section>
  )
}
