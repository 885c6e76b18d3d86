package term

// indented is how deep JSON is laid out over lines: white space before each line of what is nested thousands deep would be thousands of
// times as large as that.
const indented = 40

// Spread lays JSON without white space out over lines, as json.Indent does. That checks each
// byte, which takes longer than all else that is done here for a tree of thousands of jobs. What
// is nested deeper than indented stays in a line.
func Spread(raw []byte, indent string) []byte {
	out := make([]byte, 0, 2*len(raw))
	depth := 0
	line := func(inner int) { // between the brackets of that depth
		if inner > indented {
			return
		}
		out = append(out, '\n')
		for range depth {
			out = append(out, indent...)
		}
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '"':
			end := i + 1
			for raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, raw[i:end+1]...)
			i = end
		case '{', '[':
			out = append(out, c)
			if raw[i+1] == c+2 { // the bracket that closes it
				out = append(out, c+2)
				i++
				continue
			}
			depth++
			line(depth)
		case '}', ']':
			depth--
			line(depth + 1)
			out = append(out, c)
		case ',':
			out = append(out, c)
			line(depth)
		case ':':
			out = append(out, ": "...)
		default:
			out = append(out, c)
		}
	}
	return out
}
