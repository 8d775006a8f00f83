package config

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"sync"

	"github.com/apportion/apportion/internal/setting"
)

//go:embed config.go
var source []byte

// comment is the comment of a section or of a field: its help, and the result for a caller that exceeds a limit.
type comment struct{ help, beyond string }

// comments returns the comments of all sections and fields, by Section and Section.Field.
var comments = sync.OnceValue(func() map[string]comment {
	all := map[string]comment{}
	for _, text := range [][]byte{source, setting.Source} {
		file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments)
		if err != nil {
			continue // Not reached: the compiler has read the file.
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				named, _ := spec.(*ast.TypeSpec)
				all[named.Name.Name] = commentOf(general.Doc)
				if section, ok := named.Type.(*ast.StructType); ok {
					for _, field := range section.Fields.List {
						all[named.Name.Name+"."+field.Names[0].Name] = commentOf(field.Doc)
					}
				}
			}
		}
	}
	return all
})

// commentOf returns the first paragraph of a comment as help, each part on one line.
func commentOf(doc *ast.CommentGroup) comment {
	paragraph, _, _ := strings.Cut(doc.Text(), "\n\n")
	help, beyond, _ := strings.Cut(paragraph, "\nBeyond it: ")
	oneLine := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	return comment{oneLine(help), oneLine(beyond)}
}
