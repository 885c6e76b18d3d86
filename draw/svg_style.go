package draw

import "unicode"

// svgStyle has all colours. They are spelled out, since not all viewers know variables.
const svgStyle = `
.weir text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#334155}
.weir .title{font-size:18px;font-weight:600;fill:#0f172a}
.weir .label{font-size:13px;font-weight:600;fill:#0f172a}
.weir .type,.weir .note{fill:#64748b}
.weir .port.closed,.weir .queue.unknown text,.weir .queue.empty text{fill:#94a3b8}
.weir .out{text-anchor:end}
.weir .end{font-size:13px;text-anchor:middle}
.weir .page{fill:#f8fafc}
.weir .frame{fill:#6366f1;fill-opacity:.06;stroke:#818cf8;stroke-opacity:.55;stroke-dasharray:5 4}
.weir .shadow{fill:#0f172a;fill-opacity:.07}
.weir .card{fill:#fff;stroke:#cbd5e1}
.weir .terminal{fill:#eef2ff;stroke:#a5b4fc}
.weir .wire{fill:none;stroke:#94a3b8;stroke-width:2}
.weir .wire.closed{stroke-dasharray:4 4}
.weir .head,.weir .way,.weir .joint{fill:#94a3b8}
.weir .dot{fill:#fff;stroke:#64748b;stroke-width:1.6}
.weir .dot.constant{fill:#64748b}
.weir .dot.closed{stroke:#cbd5e1}
.weir .badge{fill:#fff;stroke:#cbd5e1}
.weir .queue text{text-anchor:middle}
.weir .track{fill:#e2e8f0}
.weir .bar{fill:#10b981}
.weir .half .bar{fill:#f59e0b}
.weir .full .bar{fill:#ef4444}
.weir .full .badge{fill:#fef2f2;stroke:#fca5a5}
.weir .full text{fill:#b91c1c;font-weight:600}
.weir .running .chip{fill:#cffafe}.weir .running .state{fill:#0e7490}
.weir .completed .chip{fill:#dcfce7}.weir .completed .state{fill:#15803d}
.weir .failed .chip{fill:#fee2e2}.weir .failed .state{fill:#b91c1c}
.weir .suspended .chip{fill:#e0e7ff}.weir .suspended .state{fill:#4338ca}
.weir .waiting .chip{fill:#fef3c7}.weir .waiting .state{fill:#92400e}
.weir .ended .chip{fill:#e2e8f0}.weir .ended .state{fill:#475569}
.weir .edge-running{stroke:#06b6d4}.weir .edge-failed{stroke:#ef4444}
@media (prefers-color-scheme:dark){
.weir text{fill:#cbd5e1}
.weir .title,.weir .label{fill:#f1f5f9}
.weir .type,.weir .note{fill:#94a3b8}
.weir .port.closed,.weir .queue.unknown text,.weir .queue.empty text{fill:#64748b}
.weir .page{fill:#0b1120}
.weir .frame{fill:#818cf8;fill-opacity:.08;stroke:#6366f1;stroke-opacity:.7}
.weir .shadow{fill:#000;fill-opacity:.35}
.weir .card{fill:#1e293b;stroke:#475569}
.weir .terminal{fill:#1e1b4b;stroke:#6366f1}
.weir .wire{stroke:#64748b}
.weir .head,.weir .way,.weir .joint{fill:#64748b}
.weir .dot{fill:#1e293b;stroke:#94a3b8}
.weir .dot.constant{fill:#94a3b8}
.weir .dot.closed{stroke:#475569}
.weir .badge{fill:#0f172a;stroke:#475569}
.weir .track{fill:#334155}
.weir .full .badge{fill:#450a0a;stroke:#b91c1c}
.weir .full text{fill:#fca5a5}
.weir .running .chip{fill:#164e63}.weir .running .state{fill:#67e8f9}
.weir .completed .chip{fill:#14532d}.weir .completed .state{fill:#86efac}
.weir .failed .chip{fill:#7f1d1d}.weir .failed .state{fill:#fecaca}
.weir .suspended .chip{fill:#312e81}.weir .suspended .state{fill:#c7d2fe}
.weir .waiting .chip{fill:#78350f}.weir .waiting .state{fill:#fde68a}
.weir .ended .chip{fill:#334155}.weir .ended .state{fill:#cbd5e1}
.weir .edge-running{stroke:#22d3ee}.weir .edge-failed{stroke:#f87171}
}
`

// textWidth estimates the width of a text in pixels, rather too wide than too narrow: the
// fonts are the reader's.
func textWidth(s string, size int) int {
	hundredths := 0
	for _, r := range s {
		hundredths += runeWidth(r)
	}
	return (hundredths*size + 99) / 100
}

// runeWidth is the width of a character in hundredths of the font's size.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Po, unicode.Sm, unicode.So, unicode.Pd) || r >= 0x1f000:
		return 105
	case r == 'm' || r == 'w' || r == 'M' || r == 'W' || r == '@' || r == '%' || r > 0x2000:
		return 92
	case r == 'i' || r == 'j' || r == 'l' || r == 't' || r == 'f' || r == 'I' || r < 0x80 && unicode.IsPunct(r) && r != '_' && r != '-' && r != '#' && r != '&':
		return 36
	case unicode.IsUpper(r):
		return 70
	case r == ' ':
		return 30
	case r == 'r' || r == '-':
		return 42
	}
	return 60
}

// fitText cuts a text to that many pixels.
func fitText(s string, size, pixels int) string {
	if textWidth(s, size) <= pixels {
		return s
	}
	room := pixels - textWidth("…", size)
	for i, r := range s {
		if room -= (runeWidth(r)*size + 99) / 100; room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
