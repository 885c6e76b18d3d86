package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
)

func newComponents() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "components [TYPE]",
		Short: "List the components that graph files can have, or describe one",
		Long: `List the components that graph files can have, with their In and Out ports, or describe
the ports and parameters of one. A port * stands for those that a parameter names.`,
		Example: "  weir components\n  weir components reduce\n  weir components reduce -o json",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			docs, err := component.Catalogue()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return s.show(c, docs, "", func(w io.Writer) error { return listComponents(w, docs, term.StyleOf(w)) })
			}
			d, err := findComponent(docs, args[0])
			if err != nil {
				return err
			}
			return s.show(c, d, d.Type, func(w io.Writer) error { return describe(w, d, term.StyleOf(w)) })
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

func findComponent(docs []component.Doc, typ string) (*component.Doc, error) {
	var known []string
	for i := range docs {
		if docs[i].Type == typ {
			return &docs[i], nil
		}
		known = append(known, docs[i].Type)
	}
	return nil, usageError{fmt.Errorf("there is no component %q: %s", typ, port.Suggest(typ, known))}
}

func listComponents(w io.Writer, docs []component.Doc, style term.Style) error {
	rows := [][]string{{"TYPE", "IN", "OUT", ""}}
	for _, d := range docs {
		names := map[port.Dir][]string{}
		for _, p := range d.Ports {
			names[p.Dir] = append(names[p.Dir], p.Name)
		}
		rows = append(rows, []string{
			d.Type, strings.Join(names[port.Input], " "), strings.Join(names[port.Output], " "), d.Summary,
		})
	}
	return term.Table(w, rows, style)
}

// describe draws the ports and parameters of a component.
func describe(w io.Writer, d *component.Doc, style term.Style) error {
	lines := style.Line(style.Bold(d.Type)+": ", d.Summary)
	if d.Pure {
		lines = append(lines, style.Line("", component.PureLine)...)
	}
	summary := strings.Join(lines, "\n")
	if _, err := fmt.Fprint(w, summary, "\n\n"); err != nil {
		return err
	}
	ports := [][]string{{"PORT", "MESSAGES", ""}}
	for _, p := range d.Ports {
		arrow := "← "
		if p.Dir == port.Output {
			arrow = "→ "
		}
		need := ""
		if p.Required {
			need = "must be fed"
		}
		ports = append(ports, []string{arrow + p.Name, p.Type, need})
	}
	if err := term.Table(w, ports, style); err != nil || len(d.Params) == 0 {
		return err
	}
	params := [][]string{{"PARAMETER", "TYPE", ""}}
	for _, p := range d.Params {
		params = append(params, []string{p.Name, p.Type, p.Doc})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return term.Table(w, params, style)
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of graph files, for editors",
		Long: `Print the JSON Schema of Weir's own format, in YAML and in JSON. Editors that know it
complete keys and mark mistakes while you write.`,
		Example: "  weir graph schema > graph.schema.json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(graphfile.Schema())
			return err
		},
	}
}
