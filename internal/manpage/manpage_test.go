package manpage_test

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/manpage"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", Short: "Does it"}
	root.PersistentFlags().String("where", "", "a `PLACE`")
	c := &cobra.Command{
		Use: "do-it THING", Short: "Do it", Run: func(*cobra.Command, []string) {},
		Long:    "Do 'it':\n.hidden files too, with a \\ in them.\n\nThen stop.",
		Example: "  tool do-it x\n  'tool' do-it y",
	}
	c.Flags().IntP("number", "n", 3, "how many")
	c.Flags().Bool("fast", false, "faster")
	root.AddCommand(c)
	var b bytes.Buffer
	for _, page := range []*cobra.Command{c, root} {
		if err := manpage.Write(&b, page, []manpage.Variable{{Name: "TOOL_X", Text: "'x'"}}); err != nil {
			t.Fatal(err)
		}
	}
	want := `.TH "TOOL\-DO\-IT" "1" "" "" "tool"
.SH NAME
tool\-do\-it \- Do it
.SH SYNOPSIS
\fBtool do\-it\fR THING [flags]
.SH DESCRIPTION
Do \(aqit\(aq:
\&.hidden files too, with a \e in them.
.PP
Then stop.
.SH OPTIONS
.TP
\fB\-\-fast\fR
faster
.TP
\fB\-n\fR, \fB\-\-number\fR \fIint\fR
how many (default 3)
.SH COMMON OPTIONS
Those of tool apply too: \-\-where.
.SH EXAMPLES
.nf
tool do\-it x
\&\(aqtool\(aq do\-it y
.fi
.SH SEE ALSO
\fBtool\fR(1)
.TH "TOOL" "1" "" "" "tool"
.SH NAME
tool \- Does it
.SH SYNOPSIS
\fBtool\fR
.SH DESCRIPTION
Does it.
.SH COMMANDS
.TP
\fBtool\-do\-it\fR(1)
Do it
.SH OPTIONS
.TP
\fB\-\-where\fR \fIPLACE\fR
a PLACE
.SH ENVIRONMENT
.TP
\fBTOOL_X\fR
\&\(aqx\(aq
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}
