package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/graphfile"
)

func newCheck(s *settings) *cobra.Command {
	f := graphFlags{assume: true}
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Tell what is wrong with graph files",
		Long: `Tell everything that is wrong with graph files at once, a line for each problem in the
order of the file: what their text says, types and parameters of their components, and how the
ports are wired. With -o json the problems are a list, which is empty if there are none. FILE
ends in .yaml, .yml, .json or .fbp; - is YAML or JSON on standard input. Types of handlers and of
other programs are looked up with --redis or --server.`,
		Example: "  weir check logs.yaml\n  weir check graphs/*.fbp\n  weir check logs.yaml -o json | jq '.[0].hint'",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var errs []error
			found := []checked{}
			for _, name := range args {
				line, err := f.checkFile(c, s, name)
				if err != nil {
					errs, found = append(errs, err), append(found, problemsOf(name, err)...)
				} else if s.output != "json" {
					if _, err := fmt.Fprintln(c.OutOrStdout(), line); err != nil {
						return err
					}
				}
			}
			if s.output == "json" {
				if err := encode(c.OutOrStdout(), found, "  "); err != nil {
					return err
				}
			}
			if err := errors.Join(errs...); err != nil {
				return fileError{err}
			}
			return nil
		},
	}
	f.add(c)
	s.formats(c, "table", "json")
	return c
}

// checkFile says in a line that a graph file is right, or what is wrong with it.
func (f *graphFlags) checkFile(c *cobra.Command, s *settings, name string) (string, error) {
	g, err := f.loadKnown(c, s, name)
	if err != nil {
		return "", err
	}
	plan, err := g.Plan()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: ok, %s", name, jobCount(len(plan.Nodes)-1)), nil
}

// checked is a problem as weir check -o json prints it.
type checked struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// hinted matches a text that ends with what would be right.
var hinted = regexp.MustCompile(`^(.*?)[:;,] ((?:did you mean|use|write|connect|put|remove|rename|give|add|let|say|name|set|limit)\b.*)$`)

// problemsOf are the problems of a graph file.
func problemsOf(name string, err error) (all []checked) {
	for _, p := range graphfile.Problems(err) {
		one := checked{name, p.Line, p.Column, p.Path, p.Text, ""}
		if m := hinted.FindStringSubmatch(p.Text); m != nil {
			one.Text, one.Hint = m[1], m[2]
		}
		all = append(all, one)
	}
	if all == nil {
		all = []checked{{File: name, Text: oneLine(err)}}
	}
	return all
}
