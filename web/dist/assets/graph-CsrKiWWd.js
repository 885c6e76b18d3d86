import{i as e,n as t,t as n}from"./jsx-runtime-DyZJNswf.js";import{D as r,M as i}from"./index-CHB4GinZ.js";var a=e(t(),1),o=n(),s=`weir: 1
name: hello
params:
  greeting: {type: string, default: Hello, description: what each name is greeted with}
nodes:
  clock: {type: every, args: {every: 1s}}
  greet: {type: map, args: {expr: '"\${greeting}, number " + string(it.n)'}}
edges:
  - clock.out -> greet.in
outputs:
  greetings: greet.out
`,c=e=>typeof e==`object`&&!!e&&Object.keys(e.properties??{}).length>0;function l(){let[e,t]=(0,a.useState)(``),[n,i]=(0,a.useState)(`yaml`),[o,s]=(0,a.useState)({}),[l,u]=(0,a.useState)({schema:null,error:null});return(0,a.useEffect)(()=>{if(!e.trim()){u({schema:null,error:null});return}let t=!1,i=setTimeout(()=>{r(`POST`,`v1/graphs/params`,{graph:e,format:n}).then(e=>{t||u({schema:e,error:null})}).catch(e=>{t||u({schema:null,error:e})})},300);return()=>{t=!0,clearTimeout(i)}},[e,n]),{text:e,format:n,params:o,setParams:s,...l,setText:(e,n)=>{t(e),n&&i(n)},body:()=>({graph:e,format:n,...c(l.schema)?{params:o}:{}})}}function u({draft:e}){let t=(0,a.useId)(),n=(0,a.useRef)(null),r=t=>{let n=t?.name.split(`.`).at(-1)??``;t?.text().then(t=>e.setText(t,[`json`,`fbp`].includes(n)?n:`yaml`))};return(0,o.jsxs)(`div`,{onDragOver:e=>e.preventDefault(),onDrop:e=>{e.preventDefault(),r(e.dataTransfer.files[0])},children:[(0,o.jsxs)(`div`,{className:`row`,children:[(0,o.jsx)(`label`,{htmlFor:t,children:`Graph`}),(0,o.jsx)(`span`,{className:`grow`}),(0,o.jsxs)(`label`,{className:`inline`,children:[`Format `,(0,o.jsxs)(`select`,{value:e.format,onChange:t=>e.setText(e.text,t.target.value),children:[(0,o.jsx)(`option`,{value:`yaml`,children:`YAML`}),(0,o.jsx)(`option`,{value:`json`,children:`JSON`}),(0,o.jsx)(`option`,{value:`fbp`,children:`FBP`})]})]}),(0,o.jsx)(`input`,{ref:n,type:`file`,className:`sr`,tabIndex:-1,"aria-label":`File of a graph`,accept:`.yaml,.yml,.json,.fbp`,onChange:e=>r(e.target.files?.[0])}),(0,o.jsx)(`button`,{type:`button`,onClick:()=>n.current?.click(),children:`Open a file…`}),!e.text&&(0,o.jsx)(`button`,{type:`button`,onClick:()=>e.setText(s,`yaml`),children:`Insert an example`})]}),(0,o.jsx)(`textarea`,{id:t,"data-search":``,className:`code`,rows:16,spellCheck:!1,value:e.text,onChange:t=>e.setText(t.target.value),placeholder:`weir: 1
name: …
nodes:
  …

Paste a graph, or drop its file here. docs/graphs.md describes it; weir init writes a first one.`})]})}function d({draft:e}){let[t,n]=(0,a.useState)(``),r=e.schema?JSON.stringify(e.body()):``;return(0,a.useEffect)(()=>{if(!r){n(``);return}let e=new AbortController,t=setTimeout(()=>{i(`POST`,`v1/graphs/draw?format=svg`,r,e.signal).then(e=>e.text()).then(e=>n(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(e)}`)).catch(()=>n(``))},400);return()=>{e.abort(),clearTimeout(t)}},[r]),t?(0,o.jsx)(`div`,{className:`graph-picture`,children:(0,o.jsx)(`img`,{src:t,alt:`The jobs of the graph and the wires between them`})}):null}export{l as i,d as n,c as r,u as t};