package manpage

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Markdown writes one page of a command and all below it.
func Markdown(w io.Writer, root *cobra.Command, environment []Variable) error {
	p := &markdown{}
	p.line("# The %s command\n\n%s\n", root.Name(), root.Short)
	p.command(root)
	p.line("## Environment\n\n| variable | meaning |\n|---|---|")
	for _, v := range environment {
		p.line("| `%s` | %s |", v.Name, cell(v.Text))
	}
	_, err := io.WriteString(w, p.String())
	return err
}

type markdown struct{ strings.Builder }

func (p *markdown) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// cell is a text in a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "\\<", "*", "\\*").Replace(text)
}

func (p *markdown) fence(language, text string) { p.line("```%s\n%s\n```\n", language, text) }

func (p *markdown) command(c *cobra.Command) {
	if !Shown(c) {
		return
	}
	c.InitDefaultHelpFlag()
	p.line("## %s\n", c.CommandPath())
	p.fence("sh", c.UseLine())
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	p.fence("text", long)
	p.options(c.NonInheritedFlags())
	if c.Example != "" {
		var lines []string
		for line := range strings.SplitSeq(c.Example, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		p.fence("sh", strings.Join(lines, "\n"))
	}
	for _, sub := range c.Commands() {
		p.command(sub)
	}
}

func (p *markdown) options(flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.line("| flag | meaning |\n|---|---|")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		argument, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + argument)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		p.line("| `%s` | %s |", name, cell(usage+initial(f)))
	})
	p.line("")
}
