// Package manpage writes manual pages of cobra commands. A page depends on nothing but its
// command: no time, no machine.
package manpage

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is that of programs.
const Section = "1"

// Variable is something in the environment that commands look at.
type Variable struct{ Name, Text string }

// Name is the name of a command's page.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Shown tells whether a command has a page.
func Shown(c *cobra.Command) bool {
	return !c.HasParent() || c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand()
}

// Write writes the page of a command. The environment is told in that of the root.
func Write(w io.Writer, c *cobra.Command, environment []Variable) error {
	p := &page{}
	p.line(`.TH "%s" "%s" "" "" "%s"`, strings.ToUpper(escape(Name(c))), Section, escape(c.Root().Name()))
	p.line(".SH NAME")
	p.line(`%s \- %s`, escape(Name(c)), escape(c.Short))
	p.line(".SH SYNOPSIS")
	use := strings.TrimPrefix(c.UseLine(), c.CommandPath())
	p.line(`\fB%s\fR%s`, escape(c.CommandPath()), escape(use))
	p.line(".SH DESCRIPTION")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	p.text(long)
	p.commands(c)
	p.options("OPTIONS", c.NonInheritedFlags())
	if inherited := c.InheritedFlags(); inherited.HasAvailableFlags() {
		p.line(".SH COMMON OPTIONS")
		p.text(fmt.Sprintf("Those of %s apply too: %s.", c.Root().Name(), strings.Join(names(inherited), ", ")))
	}
	if c.Example != "" {
		p.line(".SH EXAMPLES\n.nf")
		for line := range strings.SplitSeq(c.Example, "\n") {
			p.line("%s", verbatim(strings.TrimPrefix(line, "  ")))
		}
		p.line(".fi")
	}
	if !c.HasParent() {
		p.environment(environment)
	}
	p.seeAlso(c)
	_, err := io.WriteString(w, p.String())
	return err
}

type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes paragraphs.
func (p *page) text(text string) {
	for n, paragraph := range strings.Split(text, "\n\n") {
		if n > 0 {
			p.line(".PP")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			p.line("%s", verbatim(line))
		}
	}
}

func (p *page) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.line(".SH COMMANDS")
	for _, sub := range c.Commands() {
		if Shown(sub) {
			p.line(".TP\n\\fB%s\\fR(%s)\n%s", escape(Name(sub)), Section, verbatim(sub.Short))
		}
	}
}

func (p *page) options(head string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.line(".SH %s", head)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		argument, usage := pflag.UnquoteUsage(f)
		name := `\fB\-\-` + escape(f.Name) + `\fR`
		if f.Shorthand != "" {
			name = `\fB\-` + escape(f.Shorthand) + `\fR, ` + name
		}
		if argument != "" {
			name += ` \fI` + escape(argument) + `\fR`
		}
		p.line(".TP\n%s\n%s", name, verbatim(usage+initial(f)))
	})
}

// initial tells the value that a flag has by itself, if it says something.
func initial(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "[]", "0s", "0":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

func (p *page) environment(variables []Variable) {
	if len(variables) == 0 {
		return
	}
	p.line(".SH ENVIRONMENT")
	for _, v := range variables {
		p.line(".TP\n\\fB%s\\fR\n%s", escape(v.Name), verbatim(v.Text))
	}
}

func (p *page) seeAlso(c *cobra.Command) {
	if !c.HasParent() {
		return
	}
	p.line(".SH SEE ALSO")
	var refs []string
	for up := c.Parent(); up != nil; up = up.Parent() {
		refs = append(refs, fmt.Sprintf(`\fB%s\fR(%s)`, escape(Name(up)), Section))
	}
	for _, sub := range c.Commands() {
		if Shown(sub) {
			refs = append(refs, fmt.Sprintf(`\fB%s\fR(%s)`, escape(Name(sub)), Section))
		}
	}
	p.line("%s", strings.Join(refs, ", "))
}

// names are those of flags, as they are written.
func names(flags *pflag.FlagSet) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, "--"+f.Name)
		}
	})
	return out
}

// escape keeps roff from seeing anything but text in a text.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`").Replace(s)
}

// verbatim is escape for what may begin a line, where a dot or a quote is a request.
func verbatim(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + escape(line)
	}
	return escape(line)
}
