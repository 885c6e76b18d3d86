package draw_test

import (
	"fmt"
	"os"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/statemachine"
)

var thumbs = draw.Picture{
	Nodes: []draw.Node{
		{ID: "list", Type: "fs.List", Status: statemachine.Completed, Out: []draw.Port{{Name: "files"}}},
		{ID: "resize", Type: "img.Resize", Note: "×4", Status: statemachine.Running, In: []draw.Port{{Name: "image"}, {Name: "width", Constant: "640"}}, Out: []draw.Port{{Name: "thumb"}}},
		{ID: "thumbs", Kind: draw.Output},
	},
	Edges: []draw.Edge{
		{From: "list", FromPort: "files", To: "resize", ToPort: "image", Size: 98, Limit: 100},
		{From: "resize", FromPort: "thumb", To: "thumbs", Size: -1},
	},
}

func ExampleTerminal() {
	if err := draw.Terminal(os.Stdout, thumbs, draw.TerminalOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ╭─────────────╮          ╭───────────────────╮
	// │ list        │          │ resize            │
	// │ fs.List     │          │ img.Resize        │
	// │ ✓ completed │          │ ● running  ×4     │
	// │       files ├───98/100─▶ image       thumb ├────▶ thumbs ◇
	// ╰─────────────╯          ┤ width=640         │
	//                          ╰───────────────────╯
}

// A picture that is too wide is written in words.
func ExampleTerminal_narrow() {
	if err := draw.Terminal(os.Stdout, thumbs, draw.TerminalOptions{Width: 48}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// list  fs.List  ✓ completed
	//     → resize.image (98/100)
	// resize  img.Resize  ● running  ×4  width=640
	//     image ← list.files (98/100)  → thumbs
	// thumbs ◇  ← resize.thumb
}

func ExampleMermaid() {
	if err := draw.Mermaid(os.Stdout, thumbs); err != nil {
		fmt.Println(err)
	}
	// Output:
	// flowchart LR
	//   n0["list<br/>fs.List<br/>✓ completed"]
	//   n1["resize<br/>img.Resize<br/>● running<br/>×4<br/>width=640"]
	//   n2(["thumbs"])
	//   n0 -->|"files → image (98/100)"| n1
	//   n1 -->|"thumb → thumbs"| n2
	//   classDef running fill:#cffafe,stroke:#06b6d4,color:#164e63
	//   class n1 running
	//   classDef completed fill:#dcfce7,stroke:#22c55e,color:#14532d
	//   class n0 completed
}
