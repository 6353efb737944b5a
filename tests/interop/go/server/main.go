// A server of the official Go SDK; see ../../README.md.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echo struct {
	Text string `json:"text"`
}

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

func server() *mcp.Server {
	made := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	mcp.AddTool(made, &mcp.Tool{Name: "echo", Description: "Says what you say"},
		func(_ context.Context, _ *mcp.CallToolRequest, said echo) (*mcp.CallToolResult, any, error) {
			return text(said.Text), nil, nil
		})
	mcp.AddTool(made, &mcp.Tool{Name: "steps", Description: "Tells its progress"},
		func(ctx context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			for step := range 3 {
				told := &mcp.ProgressNotificationParams{
					ProgressToken: request.Params.GetProgressToken(), Progress: float64(step), Total: 2,
				}
				if err := request.Session.NotifyProgress(ctx, told); err != nil {
					return nil, nil, err
				}
			}
			return text("done"), nil, nil
		})
	made.AddResource(&mcp.Resource{Name: "text", URI: "test://static-text"},
		func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			contents := []*mcp.ResourceContents{{URI: request.Params.URI, Text: "a text"}}
			return &mcp.ReadResourceResult{Contents: contents}, nil
		})
	made.AddPrompt(&mcp.Prompt{Name: "greeting", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			greeting := &mcp.TextContent{Text: "Hello, " + request.Params.Arguments["name"]}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: greeting}}}, nil
		})
	return made
}

func main() {
	if os.Args[1] == "stdio" {
		log.Fatal(server().Run(context.Background(), &mcp.StdioTransport{}))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/mcp\n", listener.Addr())
	one := server()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, nil)
	log.Fatal(http.Serve(listener, handler))
}
