// The echo tool on the official Go SDK. Usage: go-sdk PORT json|sse.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type arguments struct {
	Text string `json:"text"`
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go-sdk PORT json|sse")
	}
	port, mode := os.Args[1], os.Args[2]
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Says the text again"}, echo)
	handler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: mode == "json"},
	)
	http.Handle("/mcp", handler)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}

func echo(_ context.Context, _ *mcp.CallToolRequest, given arguments) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: given.Text}}}, nil, nil
}
