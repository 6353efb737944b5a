// A stateless server whose tools are registered for each request, as go-sdk's examples do it, and kept in a cache of
// schemas where the release has one (cache.go).
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type address struct {
	Street  string            `json:"street" jsonschema:"the street"`
	City    string            `json:"city" jsonschema:"the city"`
	Country string            `json:"country"`
	Labels  map[string]string `json:"labels"`
}

type order struct {
	Name    string    `json:"name" jsonschema:"who orders"`
	Count   int       `json:"count"`
	Tags    []string  `json:"tags"`
	Bill    address   `json:"bill"`
	Deliver []address `json:"deliver"`
}

func tool(context.Context, *mcp.CallToolRequest, order) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
}

func main() {
	tools, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	options := serverOptions()
	made := func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, options)
		for n := range tools {
			mcp.AddTool(server, &mcp.Tool{Name: fmt.Sprintf("tool%d", n)}, tool)
		}
		return server
	}
	handler := mcp.NewStreamableHTTPHandler(made, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[2], handler))
}
